"""Convex weights and votes for new rows by PyTorch are those of NumPy, to rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extend.test_simplex import (
    assert_feasible,
    degenerate_problems,
    kkt_violation,
    objectives,
    random_problem,
    scales,
)
from manifoldknn.extend.simplex import simplex_weights

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device import extend  # noqa: E402
from manifoldknn.device.extend import (  # noqa: E402
    KnownSimilarities,
    device_similarities,
    torch_simplex_weights,
)
from manifoldknn.device.search.index import TorchIndex  # noqa: E402
from manifoldknn.extend.reconstruct import reconstruction  # noqa: E402
from manifoldknn.search.neighbors import ExactIndex  # noqa: E402
from manifoldknn.vote.similarities import Similarities, combined  # noqa: E402
from manifoldknn.vote.votes import ClassVote, NeighborVote  # noqa: E402


def weights(X, neighbors, device="cpu"):
    m, k, d = neighbors.shape
    samples = torch.as_tensor(np.ascontiguousarray(neighbors).reshape(m * k, d), device=device)
    near = torch.arange(m * k, device=device).reshape(m, k)
    return torch_simplex_weights(torch.as_tensor(X, device=device), samples, near).cpu().numpy()


@settings(max_examples=50, deadline=None)
@given(
    m=st.integers(1, 30),
    k=st.integers(1, 12),
    d=st.integers(1, 20),
    exponent=st.integers(-90, 90),
    seed=st.integers(0, 2**32 - 1),
)
def test_optimal_and_equal_to_numpy(m, k, d, exponent, seed):
    X, neighbors = (part * 10.0**exponent for part in random_problem(m, k, d, seed))
    z = weights(X, neighbors)
    assert_feasible(z)
    assert kkt_violation(X, neighbors, z) < 1e-13
    if k <= d:  # otherwise several weightings may reach the same point
        np.testing.assert_allclose(z, simplex_weights(X, neighbors), atol=1e-9)


@pytest.mark.parametrize("problem", degenerate_problems(), ids=lambda case: case[0])
def test_every_kind_of_dependence(problem):
    _, X, neighbors = problem
    z, expected = weights(X, neighbors), simplex_weights(X, neighbors)
    assert_feasible(z)
    unit = scales(X, neighbors)
    unit = np.where(unit > 0, unit, 1)
    values = (objectives(X, neighbors, one) / unit for one in (z, expected))
    np.testing.assert_allclose(*values, atol=1e-13)
    assert kkt_violation(X, neighbors, z) < max(1e-13, 2 * kkt_violation(X, neighbors, expected))


def test_a_point_equal_to_a_neighbor_has_all_weight_on_the_first_such():
    X, neighbors = random_problem(50, 6, 4)
    neighbors[:, 3], neighbors[:, 5] = X, X
    np.testing.assert_array_equal(weights(X, neighbors), np.tile(np.eye(6)[3], (50, 1)))


def test_single_precision_samples_are_taken_as_they_are():
    X, neighbors = (part.astype(np.float32) for part in random_problem(40, 5, 8))
    expected = simplex_weights(X, neighbors)
    np.testing.assert_allclose(weights(X, neighbors), expected, atol=1e-12)


def test_least_squares_solve_what_runs_out_of_iterations(monkeypatch):
    X, neighbors = random_problem(8, 6, 10)
    honest = extend.active_set
    monkeypatch.setattr(extend, "active_set", lambda gram, _, kernels: honest(gram, 1, kernels))
    z = weights(X, neighbors)
    assert_feasible(z)
    np.testing.assert_allclose(z, simplex_weights(X, neighbors), atol=1e-7)


CPU = torch.device("cpu")
VOTE = ClassVote(np.full(4, 0.25), 2.0)


def known(n, n_columns, dtype=np.float32, seed=0, decades=300):
    """Random similarities over hundreds of decades, some rows unreached, some columns too."""
    rng = np.random.default_rng(seed)
    logs = -decades * np.log(10) * rng.random((n, 1)) - 9 * rng.random((n, n_columns))
    logs[rng.random((n, n_columns)) < 0.2] = -np.inf
    logs[rng.random(n) < 0.3] = -np.inf
    return Similarities.from_logarithms(logs, dtype)


def opened(X, metric="euclidean"):
    index = TorchIndex(X, metric=metric, device=CPU)
    assert index.device_rows is not None
    return index


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_combined_similarities(dtype):
    rng = np.random.default_rng(1)
    table = known(50, 12, dtype)
    z = rng.dirichlet(np.ones(4), size=200) * (rng.random((200, 4)) < 0.7)
    z[:, 0] += 1 - z.sum(axis=1)
    z[:50] = np.eye(4)[0]
    near = np.argsort(rng.random((200, 50)), axis=1)[:, :4]
    expected = combined(z, near, table)
    here = KnownSimilarities(table, opened(rng.random((50, 3))).device_rows)
    logs, scale = here.combined(torch.from_numpy(z), torch.from_numpy(near))
    unreached = torch.isneginf(scale)
    assert logs.numpy().dtype == dtype
    assert (unreached.numpy() == expected.unreached).all()
    assert unreached.any()
    np.testing.assert_allclose(np.exp(logs.numpy()), np.exp(expected.logs), atol=1e-6)
    np.testing.assert_allclose(scale.numpy(), expected.log_scale, rtol=1e-6)
    if dtype == np.float32:  # all weight on one row: its own numbers, to the last bit
        assert (logs[:50].numpy() == table.logs[near[:50, 0]]).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("vote", [VOTE, NeighborVote(np.full(4, 0.25), np.arange(9) % 4, 3)])
def test_votes_of_new_rows(metric, vote):
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(300, 6)), rng.normal(size=(500, 6))
    Q[:20] = X[:20]
    table = known(300, 4 if vote is VOTE else 9, decades=5)
    made = reconstruction(Q, ExactIndex(X, metric=metric), n_neighbors=7)
    expected = combined(made.z, made.indices, table)
    index = opened(X, metric)
    here = KnownSimilarities(table, index.device_rows)
    parts = list(device_similarities(Q, index, here, 7))
    shares = np.concatenate([vote.shares(found.logs) for _, found, _ in parts])
    np.testing.assert_allclose(shares, vote.shares(expected.logs), atol=1e-5)
    nobody = np.concatenate([found.unreached for _, found, _ in parts])
    assert (nobody == expected.unreached).all()
    z, near, spacings = (np.concatenate([part[2][i] for part in parts]) for i in range(3))
    np.testing.assert_allclose(z, made.z, atol=1e-6)
    assert (near == made.indices).all()
    np.testing.assert_allclose(spacings, made.spacings, atol=1e-6)
    assert (spacings[:20] == 0).all()


def test_chunks_shrink_when_memory_runs_out(monkeypatch):
    rng = np.random.default_rng(3)
    X, Q = rng.normal(size=(200, 4)), rng.normal(size=(300, 4))
    index = opened(X)
    honest = extend.torch_simplex_weights
    sizes = []

    def full(points, samples, near):
        sizes.append(len(points))
        if len(points) > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return honest(points, samples, near)

    here = KnownSimilarities(known(200, 4, decades=5), index.device_rows)
    expected = list(device_similarities(Q, index, here, 5))
    assert len(expected) == 1
    monkeypatch.setattr(extend, "torch_simplex_weights", full)
    parts = list(device_similarities(Q, index, here, 5))
    assert len(parts) > 7
    assert sizes[0] == 300
    np.testing.assert_allclose(
        np.concatenate([part[1].logs for part in parts]), expected[0][1].logs, atol=1e-7
    )


def test_new_rows_that_are_not_finite_are_refused():
    X = np.random.default_rng(4).normal(size=(50, 3))
    index = opened(X)
    here = KnownSimilarities(known(50, 4), index.device_rows)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        list(device_similarities(X, index, here, 5))
