import time

import numpy as np
import pytest

import manifoldknn.neighbors as neighbors_module
import oracles
from manifoldknn.neighbors import ExactIndex
from manifoldknn.treesearch import TreeSearch


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_finds_the_nearest(n_jobs):
    X = np.random.default_rng(0).normal(size=(200, 5))
    distances, indices = TreeSearch(X, n_jobs=n_jobs).kneighbors(X, 7)
    assert (indices[:, 0] == np.arange(200)).all()
    assert (indices[:, 1:] == oracles.nearest(X, 6)).all()
    np.testing.assert_allclose(distances, np.linalg.norm(X[:, None] - X[indices], axis=2))


def test_a_slow_search_loses_and_a_quick_one_wins():
    X = np.random.default_rng(0).normal(size=(500, 3))
    tree = TreeSearch(X, n_jobs=1)
    assert tree.is_quicker(X, lambda *_: time.sleep(0.2))
    assert not tree.is_quicker(X, lambda *_: None)


@pytest.mark.parametrize("wins", [True, False])
def test_whichever_wins_the_answer_is_the_same(monkeypatch, wins):
    """Also with ties: integers on a grid."""
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 100)
    X = np.random.default_rng(1).integers(0, 4, size=(300, 9)).astype(float)
    monkeypatch.setattr(TreeSearch, "is_quicker", lambda *_: wins)
    index = ExactIndex(X)
    assert (index._flat is None) == wins
    assert isinstance(index._search, TreeSearch) == wins
    assert (index.among_samples(8).indices == oracles.nearest(X, 8)).all()
    found = index.query(X[:50], 5)
    plain = ExactIndex(X, n_jobs=1).query(X[:50], 5)
    assert (found.indices == plain.indices).all()
