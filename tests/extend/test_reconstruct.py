import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise_distances

import manifoldknn.extend.reconstruct as reconstruct
import oracles
from manifoldknn.extend.reconstruct import coordinates, reconstruction
from manifoldknn.extend.simplex import simplex_weights
from manifoldknn.search.neighbors import Neighbors


class BruteIndex:
    """What `reconstruction` asks of a neighbour search: all distances, sorted."""

    def __init__(self, X, metric="euclidean"):
        self.X, self.metric = X, metric
        self.n_samples = X.shape[0]

    def rows(self, chosen):
        return self.X[chosen]

    def query(self, Q, n_neighbors):
        D = pairwise_distances(Q, self.X, metric=self.metric)
        order = np.argsort(D, axis=1, kind="stable")[:, :n_neighbors]
        return Neighbors(order, np.take_along_axis(D, order, axis=1))


def assert_literal(made, Q, X, k):
    """Nearest rows by brute force, then the combination that `simplex_weights` finds."""
    distances = oracles.distance_matrix(np.vstack([Q, X]))[: len(Q), len(Q) :]
    for i, row in enumerate(distances):
        near = sorted(range(len(X)), key=lambda j, row=row: (row[j], j))[:k]
        assert made.indices[i].tolist() == near
        z = simplex_weights(Q[i : i + 1], X[near][None])[0]
        np.testing.assert_allclose(made.z[i], z, atol=1e-12)
        left = np.sqrt(((Q[i] - z @ X[near]) ** 2).sum())
        np.testing.assert_allclose(made.residuals[i], left, atol=1e-9)
        np.testing.assert_allclose(made.spacings[i], row[near[0]], atol=1e-12)
        away = [row[j] for j in near if row[j] > 0]
        np.testing.assert_allclose(made.gaps[i], away[0] if away else 0.0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 20),
    k=st.integers(1, 8),
    as_sparse=st.booleans(),
)
def test_new_rows_equal_brute_force(seed, d, k, as_sparse):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(25, d)), rng.normal(size=(6, d))
    X[20:] = X[:5]
    Q[0] = X[3]  # twice there, and equal to both
    wrap = sparse.csr_array if as_sparse else np.asarray
    assert_literal(reconstruction(wrap(Q), BruteIndex(wrap(X)), n_neighbors=k), Q, X, k)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_sample_is_all_of_itself(metric, wrap):
    X = np.random.default_rng(0).normal(size=(40, 6))
    made = reconstruction(wrap(X), BruteIndex(wrap(X), metric=metric), n_neighbors=6)
    np.testing.assert_array_equal(made.indices[:, 0], np.arange(40))
    np.testing.assert_array_equal(made.z, np.eye(6)[np.zeros(40, dtype=int)])


def test_cosine_ignores_the_length_of_rows():
    rng = np.random.default_rng(1)
    index, Q = BruteIndex(rng.normal(size=(30, 4)), metric="cosine"), rng.normal(size=(5, 4))
    short, long = (reconstruction(c * Q, index, n_neighbors=5) for c in (1.0, 50.0))
    assert (short.indices == long.indices).all()
    np.testing.assert_allclose(short.z, long.z, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(coordinates(Q, "cosine"), axis=1), 1.0)


def test_neighbours_that_are_known_are_not_searched(monkeypatch):
    rng = np.random.default_rng(3)
    index, Q = BruteIndex(rng.normal(size=(30, 4))), rng.normal(size=(5, 4))
    searched, found = reconstruction(Q, index, n_neighbors=5), index.query(Q, 5)
    monkeypatch.setattr(index, "query", lambda *_: pytest.fail("searched"))
    np.testing.assert_array_equal(
        reconstruction(Q, index, n_neighbors=5, found=found).z, searched.z
    )


@pytest.mark.parametrize("n_bytes", [1, 5000])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chunks_and_threads_change_nothing(monkeypatch, n_bytes, n_jobs):
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(30, 3)), rng.normal(size=(17, 3))
    whole = reconstruction(Q, BruteIndex(X), n_neighbors=5)
    monkeypatch.setattr(reconstruct, "_CHUNK_BYTES", n_bytes)
    parts = reconstruction(Q, BruteIndex(X), n_neighbors=5, n_jobs=n_jobs)
    for name in ("indices", "z", "residuals", "spacings", "gaps"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
