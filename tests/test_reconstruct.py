import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise_distances

import manifoldknn.reconstruct as reconstruct
import oracles
from manifoldknn.neighbors import Neighbors
from manifoldknn.reconstruct import NearestLabeled, combined, reconstructed_weights
from manifoldknn.simplex import simplex_weights


class BruteIndex:
    """What `reconstructed_weights` asks of a neighbour search: all distances, sorted."""

    def __init__(self, X, metric="euclidean"):
        self.X, self.metric = X, metric
        self.n_samples = X.shape[0]

    def rows(self, chosen):
        return self.X[chosen]

    def query(self, Q, n_neighbors):
        D = pairwise_distances(Q, self.X, metric=self.metric)
        order = np.argsort(D, axis=1, kind="stable")[:, :n_neighbors]
        return Neighbors(order, np.take_along_axis(D, order, axis=1))


def random_known(rng, n_samples, n_voters, n_kept, spread=5.0, unreached=0.0):
    """Walk weights of samples that keep `n_kept` of `n_voters`, in the form `NearestLabeled`."""
    weights = np.sort(rng.random((n_samples, n_kept)), axis=1)[:, ::-1]
    weights = weights / weights[:, :1]
    voters = np.array([rng.permutation(n_voters)[:n_kept] for _ in range(n_samples)])
    log_scale = rng.normal(scale=spread, size=n_samples)
    lost = rng.random(n_samples) < unreached
    weights[lost], log_scale[lost] = 0.0, -np.inf
    return NearestLabeled(weights, voters, log_scale)


def literal_logs(z, indices, known):
    """log Σ z_i w̄(x_i, j) for each voter j of one row, term by term; absent where it is 0."""
    terms = defaultdict(list)
    for share, i in zip(z, indices):
        for weight, voter in zip(known.weights[i], known.voters[i]):
            if share > 0 and weight > 0:
                terms[int(voter)].append(math.log(share) + math.log(weight) + known.log_scale[i])
    logs = {}
    for voter, values in terms.items():
        top = max(values)
        logs[voter] = top + math.log(math.fsum(math.exp(v - top) for v in values))
    return logs


def assert_equals_literal(answer, z, indices, known):
    n_kept = known.weights.shape[1]
    assert answer.weights.shape[0] == len(z)
    for row, logs in enumerate(map(literal_logs, z, indices, [known] * len(z))):
        weights, voters = answer.weights[row], answer.voters[row]
        assert len(set(voters.tolist())) == len(voters)
        assert (np.diff(weights) <= 0).all()
        if not logs:
            assert answer.log_scale[row] == -np.inf
            assert (weights == 0).all()
            continue
        top = max(logs.values())
        assert answer.log_scale[row] == pytest.approx(top, rel=1e-12, abs=1e-9)
        assert weights[0] == 1
        expected = [math.exp(logs.get(int(v), -math.inf) - top) for v in voters]
        np.testing.assert_allclose(weights, expected, atol=1e-9)
        heaviest = sorted((math.exp(v - top) for v in logs.values()), reverse=True)[:n_kept]
        np.testing.assert_allclose(weights[: len(heaviest)], heaviest, atol=1e-9)


def convex(rng, m, k):
    z = rng.dirichlet(np.ones(k), size=m)
    z[rng.random((m, k)) < 0.3] = 0.0
    z[:, 0] += 1e-3
    return z / z.sum(axis=1, keepdims=True)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_voters=st.integers(1, 12),
    n_kept=st.integers(1, 12),
    k=st.integers(1, 6),
    spread=st.sampled_from([0.0, 3.0, 400.0, 1e6]),
    unreached=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_combination_equals_a_loop_over_terms(seed, n_voters, n_kept, k, spread, unreached):
    rng = np.random.default_rng(seed)
    known = random_known(rng, 9, n_voters, min(n_kept, n_voters), spread, unreached)
    z, indices = convex(rng, 7, k), rng.integers(0, 9, (7, k))
    assert_equals_literal(combined(z, indices, known), z, indices, known)


def test_the_heavier_neighbour_decides_by_hundreds_of_orders_of_magnitude():
    known = NearestLabeled(
        np.array([[1.0, 0.5], [1.0, 0.25]]), np.array([[0, 1], [1, 0]]), np.array([-900.0, 0.0])
    )
    answer = combined(np.array([[0.999, 0.001]]), np.array([[0, 1]]), known)
    assert answer.voters.tolist() == [[1, 0]]
    np.testing.assert_allclose(answer.weights, [[1.0, 0.25]])
    assert answer.log_scale[0] == pytest.approx(math.log(0.001))


@pytest.mark.parametrize("level", [-1e5, -750.0, 0.0, 750.0])
def test_scales_that_no_float_holds(level):
    known = NearestLabeled(
        np.array([[1.0, 0.5], [1.0, 0.5]]),
        np.array([[0, 1], [1, 0]]),
        np.array([level, level + math.log(3.0)]),
    )
    answer = combined(np.array([[0.5, 0.5]]), np.array([[0, 1]]), known)
    # 0: ½ + ½·3·½ = 1.25; 1: ½·½ + ½·3 = 1.75.
    assert answer.voters.tolist() == [[1, 0]]
    np.testing.assert_allclose(answer.weights, [[1.0, 1.25 / 1.75]])
    assert answer.log_scale[0] == pytest.approx(level + math.log(1.75), abs=1e-9)


def test_unreached_neighbours_add_nothing():
    known = NearestLabeled(
        np.array([[1.0, 0.5], [0.0, 0.0]]), np.array([[1, 0], [0, 1]]), np.array([2.0, -np.inf])
    )
    answer = combined(np.array([[0.25, 0.75], [0.0, 1.0]]), np.array([[0, 1], [0, 1]]), known)
    assert answer.voters[0].tolist() == [1, 0]
    np.testing.assert_allclose(answer.weights, [[1.0, 0.5], [0.0, 0.0]])
    assert answer.log_scale[0] == pytest.approx(2 + math.log(0.25))
    assert answer.log_scale[1] == -np.inf


def test_a_neighbour_without_share_does_not_set_the_scale():
    known = NearestLabeled(np.array([[1.0], [1.0]]), np.array([[0], [1]]), np.array([0.0, -2000.0]))
    answer = combined(np.array([[0.0, 1.0]]), np.array([[0, 1]]), known)
    assert answer.voters.tolist() == [[1]]
    assert answer.log_scale[0] == pytest.approx(-2000.0)


@pytest.mark.parametrize("n_voters", [4, 60])  # short and long rows are sorted differently
def test_equal_voters_stand_in_the_order_of_their_numbers(n_voters):
    weights = np.where(np.arange(n_voters) % 2, 1.0, 0.5)  # odd voters are heavier
    voters = np.random.default_rng(0).permutation(n_voters)[None, :]
    known = NearestLabeled(weights[voters], voters, np.zeros(1))
    answer = combined(np.ones((1, 1)), np.zeros((1, 1), dtype=int), known)
    assert answer.voters.tolist() == [[*range(1, n_voters, 2), *range(0, n_voters, 2)]]


def test_voters_that_only_some_neighbours_keep_compete_for_the_places():
    known = NearestLabeled(
        np.array([[1.0, 0.9], [1.0, 0.9]]), np.array([[0, 1], [2, 3]]), np.array([0.0, 0.0])
    )
    answer = combined(np.array([[0.6, 0.4]]), np.array([[0, 1]]), known)
    assert answer.voters.tolist() == [[0, 1]]
    np.testing.assert_allclose(answer.weights, [[1.0, 0.9]])


def literal_reconstruction(Q, X, k):
    """Nearest rows by brute force, then the combination that `simplex_weights` finds."""
    distances = oracles.distance_matrix(np.vstack([Q, X]))[: len(Q), len(Q) :]
    indices = np.array(
        [sorted(range(len(X)), key=lambda j, row=row: (row[j], j))[:k] for row in distances]
    )
    return simplex_weights(Q, X[indices]), indices


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 20),
    k=st.integers(1, 8),
    as_sparse=st.booleans(),
)
def test_new_rows_equal_brute_force(seed, d, k, as_sparse):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(25, d)), rng.normal(size=(6, d))
    known = random_known(rng, 25, 7, 5, spread=50.0, unreached=0.2)
    wrap = sparse.csr_array if as_sparse else np.asarray
    answer = reconstructed_weights(wrap(Q), BruteIndex(wrap(X)), known, n_neighbors=k)
    assert answer.voters.shape == (6, 5)
    assert_equals_literal(answer, *literal_reconstruction(Q, X, k), known)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_sample_gets_exactly_its_own_weights(metric, wrap):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    known = random_known(rng, 40, 8, 8, spread=300.0, unreached=0.2)
    index = BruteIndex(wrap(X), metric=metric)
    answer = reconstructed_weights(wrap(X), index, known, n_neighbors=6)
    np.testing.assert_array_equal(answer.weights, known.weights)
    np.testing.assert_array_equal(answer.log_scale, known.log_scale)
    reached = np.isfinite(known.log_scale)
    np.testing.assert_array_equal(answer.voters[reached], known.voters[reached])


def test_cosine_ignores_the_length_of_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    known = random_known(rng, 30, 6, 6)
    index = BruteIndex(X, metric="cosine")
    Q = rng.normal(size=(5, 4))
    short, long = (reconstructed_weights(c * Q, index, known, n_neighbors=5) for c in (1.0, 50.0))
    assert (short.voters == long.voters).all()
    np.testing.assert_allclose(short.weights, long.weights, atol=1e-9)


@pytest.mark.parametrize("n_bytes", [1, 5000])
def test_chunks_change_nothing(monkeypatch, n_bytes):
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(30, 3)), rng.normal(size=(17, 3))
    known = random_known(rng, 30, 6, 4, unreached=0.2)
    index = BruteIndex(X)
    whole = reconstructed_weights(Q, index, known, n_neighbors=5)
    monkeypatch.setattr(reconstruct, "_CHUNK_BYTES", n_bytes)
    parts = reconstructed_weights(Q, index, known, n_neighbors=5)
    np.testing.assert_array_equal(parts.weights, whole.weights)
    np.testing.assert_array_equal(parts.voters, whole.voters)
    np.testing.assert_array_equal(parts.log_scale, whole.log_scale)
