import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.search.neighbors as neighbors_module
import oracles
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.treesearch import TreeSearch


def test_finds_the_nearest():
    X = np.random.default_rng(0).normal(size=(200, 5))
    indices, beyond = TreeSearch(X).candidates(X, 7)
    assert (indices[:, 0] == np.arange(200)).all()
    assert (indices[:, 1:] == oracles.nearest(X, 6)).all()
    last = np.linalg.norm(X - X[indices[:, -1]], axis=1)
    assert (beyond <= last).all()
    np.testing.assert_allclose(beyond, last)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(20, 120),
    d=st.integers(1, 12),
    count=st.integers(2, 12),
    size=st.sampled_from([1e-160, 1e-30, 1.0, 1e160]),
    close=st.sampled_from([1e-15, 1e-12, 1e-9, 1e-2, 1.0]),
    away=st.sampled_from([0.0, 1.0, 1e6]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_whoever_is_missing_is_at_least_as_far_as_said(n, d, count, size, close, away, dtype, seed):
    """Narrow clusters far from the origin are what turning the axes may blur."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, d))[rng.integers(0, 4, n)] + close * rng.normal(size=(n, d)) + away
    if dtype == np.float32:
        size = np.clip(size, 1e-30, 1e30)
    X, Q = (size * X).astype(dtype), (size * (X[:9] + rng.normal(size=(9, d)))).astype(dtype)
    search = TreeSearch(X)
    for rows in (X, Q):
        found, beyond = search.candidates(rows, count)
        with np.errstate(under="ignore"):
            difference = rows[:, None].astype(np.longdouble) - X
            distances = np.sqrt(np.square(difference).sum(axis=2))
        missing = np.ones(distances.shape, dtype=bool)
        np.put_along_axis(missing, found, False, axis=1)
        assert (np.where(missing, distances, np.inf) >= beyond[:, None]).all()


def test_ordinary_rows_need_no_second_look():
    X = np.random.default_rng(0).normal(size=(500, 10)) + 100.0
    found, beyond = TreeSearch(X).candidates(X, 20)
    distances = np.sort(np.linalg.norm(X[:, None] - X[found], axis=2), axis=1)
    assert (distances[:, 15] < beyond).all()


def test_equal_rows_and_constant_columns():
    found, beyond = TreeSearch(np.zeros((30, 3))).candidates(np.zeros((4, 3)), 5)
    assert found.shape == (4, 5)
    assert (beyond <= 0).all()
    X = np.random.default_rng(0).normal(size=(90, 3))
    X[:, 1] = 7.0
    assert (TreeSearch(X).candidates(X, 5)[0][:, 1:] == oracles.nearest(X, 4)).all()


def test_a_slow_search_loses_and_a_quick_one_wins():
    X = np.random.default_rng(0).normal(size=(500, 3))
    tree = TreeSearch(X)
    assert tree.is_quicker(X, lambda *_: time.sleep(0.2), 1)
    assert not tree.is_quicker(X, lambda *_: None, 1)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("wins", [True, False])
def test_whichever_wins_the_answer_is_the_same(monkeypatch, wins, n_jobs):
    """Also with ties: integers on a grid."""
    monkeypatch.setattr(neighbors_module, "_TREE_ROWS", 70)
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 100)
    X = np.random.default_rng(1).integers(0, 4, size=(300, 9)).astype(float)
    monkeypatch.setattr(TreeSearch, "is_quicker", lambda *_: wins)
    index = ExactIndex(X, n_jobs=n_jobs)
    assert (index._tree is not None) == wins
    assert (index.among_samples(8).indices == oracles.nearest(X, 8)).all()
    found = index.query(X[:50], 5)
    plain = ExactIndex(X, n_jobs=1).query(X[:50], 5)
    assert (found.indices == plain.indices).all()
