import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.search.neighbors as neighbors_module
import oracles
from manifoldknn.search.flat import FlatSearch
from manifoldknn.search.neighbors import ExactIndex


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(20, 120),
    d=st.integers(1, 12),
    count=st.integers(2, 12),
    size=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]),
    close=st.sampled_from([1e-9, 1e-5, 1e-2, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_who_is_certain_misses_nobody(n, d, count, size, close, seed):
    """Clusters much narrower than their distance are what single precision cannot see."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, d))[rng.integers(0, 4, n)] + close * rng.normal(size=(n, d))
    X = size * (X - X.mean(axis=0))
    search = FlatSearch(X)
    found, squares = search.candidates(X, count)
    with np.errstate(under="ignore"):
        away = np.sqrt(np.square((X[:, None] - X) / size).sum(axis=2)) * size
    farthest = np.partition(np.take_along_axis(away, found, axis=1), count // 2, axis=1)
    farthest = farthest[:, count // 2]
    for row in np.flatnonzero(search.certain(X, farthest, squares)):
        within = np.flatnonzero(away[row] <= farthest[row])
        assert set(within.tolist()) <= set(found[row].tolist())


def test_ordinary_rows_are_certain():
    X = np.random.default_rng(0).normal(size=(500, 10))
    search = FlatSearch(X - X.mean(axis=0))
    moved = X - X.mean(axis=0)
    found, squares = search.candidates(moved, 20)
    away = np.linalg.norm(moved[:, None] - moved[found], axis=2)
    assert search.certain(moved, np.sort(away, axis=1)[:, 10], squares).mean() > 0.99


@pytest.mark.parametrize(
    ("dtype", "close"),
    [(np.float32, 1e-4), (np.float32, 1.0), (np.float64, 1e-6), (np.float64, 1e-4)],
)
def test_exact_search_is_exact_with_it(monkeypatch, dtype, close):
    """Doubtful rows are searched again in double precision."""
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 100)
    monkeypatch.setattr(neighbors_module, "TREE_TRIED_DIMENSIONS", 0)
    monkeypatch.setattr(neighbors_module, "_FLAT_DIMENSIONS", 1)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 12))[rng.integers(0, 6, 300)] + close * rng.normal(size=(300, 12))
    X = X.astype(dtype)
    index = ExactIndex(X)
    assert index._flat is not None
    found = index.among_samples(9)
    lists = oracles.nearest(X.astype(np.float64), 9)
    assert (found.indices == lists).all()
    query = index.query(X, 10)
    assert (query.distances[:, 0] == 0).all()
    np.testing.assert_allclose(query.distances[:, 1:], found.distances)


def test_without_faiss_the_answer_is_the_same(monkeypatch):
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 100)
    monkeypatch.setattr(neighbors_module, "TREE_TRIED_DIMENSIONS", 0)
    monkeypatch.setattr(neighbors_module, "_FLAT_DIMENSIONS", 1)
    X = np.random.default_rng(2).normal(size=(400, 11))
    with_it = ExactIndex(X).among_samples(12)
    monkeypatch.setattr(neighbors_module, "_FLAT_DIMENSIONS", np.inf)
    index = ExactIndex(X)
    assert index._flat is None
    without = index.among_samples(12)
    assert (with_it.indices == without.indices).all()
    assert (with_it.distances == without.distances).all()


def test_equal_rows_only():
    X = np.zeros((30, 3))
    found, squares = FlatSearch(X).candidates(X, 5)
    assert found.shape == (30, 5)
    assert not FlatSearch(X).certain(X, np.zeros(30), squares).any()


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("manifoldknn.search.flat._ROWS", 64)
    X = np.random.default_rng(3).normal(size=(300, 30)).astype(np.float32)
    one, two = (FlatSearch(X, n_jobs=jobs).candidates(X, 9) for jobs in (1, 2))
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()
