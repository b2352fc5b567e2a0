import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from scipy.sparse import csgraph

import oracles
from manifoldknn.graph.edges import pruned_edges, union_edges
from manifoldknn.graph.kernels import GRAPH
from manifoldknn.search.neighbors import ExactIndex, Neighbors
from strategies import problems


def literal_neighbors(X, k):
    """Neighbour lists with ties broken by index, which an index need not do at its rim."""
    lists = np.array(oracles.nearest(X, k))
    D = oracles.distance_matrix(X)
    return Neighbors(lists, np.take_along_axis(D, lists, axis=1))


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_samples=70))
def test_pruned_and_union_equal_their_definitions(problem):
    X = problem.X
    n = len(X)
    for k in (1, 2, 5, 10):
        k = min(k, n - 1)
        lists = oracles.nearest(X, n - 1)
        candidates = literal_neighbors(X, min(max(30, k), n - 1))
        low, high, length = pruned_edges(X, candidates, k, metric="euclidean")
        assert set(zip(low.tolist(), high.tolist())) == oracles.third_rule(
            oracles.distance_matrix(X), lists, "pruned", k
        )
        np.testing.assert_allclose(length, oracles.distance_matrix(X)[low, high], rtol=1e-12)
        low, high, _ = union_edges(literal_neighbors(X, k))
        assert set(zip(low.tolist(), high.tolist())) == oracles.union_pairs(lists, k)
        assert (low < high).all()
        assert (np.diff(low * n + high) > 0).all()


@pytest.mark.parametrize("k", [1, 2, 31, 32, 90, 150])
def test_lists_of_any_length(k):
    """Ranks of both ends share an integer, whose type depends on how many there are."""
    rng = np.random.default_rng(k)
    D = rng.random((160, 160))
    D += D.T
    np.fill_diagonal(D, np.inf)
    lists = np.argsort(D, axis=1)[:, :k]
    neighbors = Neighbors(lists, np.take_along_axis(D, lists, axis=1))
    low, high, length, rank_low, rank_high = GRAPH.ranked_pairs(neighbors)
    place = np.full(D.shape, k)
    np.put_along_axis(place, lists, np.arange(k), axis=1)
    expected = np.nonzero(np.triu(np.minimum(place, place.T) < k))
    assert (low == expected[0]).all()
    assert (high == expected[1]).all()
    assert (length == D[low, high]).all()
    assert (np.minimum(rank_low, k) == place[low, high]).all()
    assert (np.minimum(rank_high, k) == place[high, low]).all()


def test_who_is_listed_twice_counts_once():
    """As somebody's own lists may do; the nearer place counts."""
    lists = np.array([[1, 1, 2], [0, 2, 0], [1, 0, 0], [2, 2, 2]])
    distances = np.array([[1.0, 1.0, 3.0], [1.0, 2.0, 4.0], [2.0, 3.0, 3.0], [5.0, 5.0, 5.0]])
    low, high, length, rank_low, rank_high = GRAPH.ranked_pairs(Neighbors(lists, distances))
    assert list(zip(low.tolist(), high.tolist())) == [(0, 1), (0, 2), (1, 2), (2, 3)]
    assert length.tolist() == [1.0, 3.0, 2.0, 5.0]
    assert rank_low[:3].tolist() == [0, 2, 1]
    assert rank_low[3] > 3
    assert rank_high.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("spread", [0.0, 1e-3])
def test_pruned_graph_of_far_clusters_is_connected(spread):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 3)) * 100
    X = np.repeat(centres, 50, axis=0) + spread * rng.normal(size=(300, 3))
    index = ExactIndex(X)
    low, high, _ = pruned_edges(X, index.among_samples(30), 10, metric="euclidean")
    graph = sparse.coo_array((np.ones(len(low)), (low, high)), shape=(300, 300))
    assert csgraph.connected_components(graph, directed=False)[0] == 1
    crossing = low // 50 != high // 50
    assert crossing.sum() == 5
