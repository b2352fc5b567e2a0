import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import manifoldknn.bridges as bridges
import manifoldknn.edges as edges
from manifoldknn.bridges import short_joining_edges
from manifoldknn.neighbors import ExactIndex
from manifoldknn.spanning import joining_edges


def clusters(n_parts, d, seed, size=40, spread=1.0):
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(n_parts), rng.integers(1, size, n_parts))
    centres = rng.normal(size=(n_parts, d)) * 5
    return centres[parts] + spread * rng.normal(size=(len(parts), d)), parts


def joins_everything(low, high, parts):
    n = parts.max() + 1
    graph = sparse.coo_array((np.ones(len(low)), (parts[low], parts[high])), shape=(n, n))
    return csgraph.connected_components(graph, directed=False)[0] == 1


@pytest.mark.parametrize("n_parts", [2, 3, 20, 120])
@pytest.mark.parametrize(("d", "spread", "longer"), [(2, 1.0, 1.5), (2, 0.05, 1.1), (10, 1.0, 1.1)])
def test_joins_with_edges_almost_as_short_as_the_shortest(n_parts, d, spread, longer):
    X, parts = clusters(n_parts, d, seed=n_parts + d, spread=spread)
    low, high, length = short_joining_edges(X, parts)
    best = joining_edges(X, parts, metric="euclidean")[2]
    assert len(low) == n_parts - 1
    assert (low < high).all()
    assert joins_everything(low, high, parts)
    np.testing.assert_allclose(length, np.linalg.norm(X[low] - X[high], axis=1), rtol=1e-12)
    assert best.sum() <= length.sum() * (1 + 1e-12)
    assert length.sum() <= longer * best.sum()


def test_one_row_stands_for_a_part_where_parts_are_many(monkeypatch):
    monkeypatch.setattr(bridges, "MOST_PARTS", 10)
    X, parts = clusters(60, 3, seed=0, size=5)
    low, high, _ = short_joining_edges(X, parts)
    assert len(low) == 59
    assert joins_everything(low, high, parts)


def test_large_problems_take_this_way_and_stay_connected(monkeypatch):
    X, parts = clusters(12, 4, seed=1, size=90)
    X = X * 0.01 + 50 * np.random.default_rng(2).normal(size=(12, 4))[parts]
    exact = edges.pruned_edges(X, ExactIndex(X).among_samples(30), 10, metric="euclidean")
    monkeypatch.setattr(edges, "EXACT_WORK", 0)
    short = edges.pruned_edges(X, ExactIndex(X).among_samples(30), 10, metric="euclidean")
    assert len(short[0]) == len(exact[0])
    assert exact[2].sum() <= short[2].sum() <= 1.05 * exact[2].sum()
