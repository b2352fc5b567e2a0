import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

import manifoldknn.graph.spanning as spanning
import oracles
from manifoldknn.graph.joining import joining_edges
from manifoldknn.graph.spanning import _stable_order, in_spanning_forest


def kruskal(pairs, length, n, parts=None):
    parts = parts or oracles.Parts(n)
    return {p for p in sorted(pairs, key=lambda p: (length[p], p)) if parts.join(*p)}


@settings(max_examples=80, deadline=None)
@given(n=st.integers(2, 25), share=st.floats(0.05, 1), seed=st.integers(0, 2**32 - 1))
def test_forest_equals_kruskal(n, share, seed):
    """Lengths from a small set, 0 among them, so that ties are everywhere."""
    rng = np.random.default_rng(seed)
    length = rng.integers(0, 4, (n, n)).astype(float)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < share]
    pairs = pairs or [(0, 1)]
    low = np.array([p[0] for p in pairs], dtype=np.intp)
    high = np.array([p[1] for p in pairs], dtype=np.intp)
    for filtered_edges in (0, 10**6):
        usual, spanning._FILTERED_EDGES = spanning._FILTERED_EDGES, filtered_edges
        try:
            kept = in_spanning_forest(low, high, length[low, high], n)
        finally:
            spanning._FILTERED_EDGES = usual
        assert {p for p, k in zip(pairs, kept) if k} == kruskal(pairs, length, n)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 30),
    n_parts=st.integers(1, 8),
    grid=st.booleans(),
    as_sparse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_joining_equals_kruskal_over_all_pairs(n, n_parts, grid, as_sparse, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float) if grid else rng.normal(size=(n, 2))
    labels = np.unique(rng.integers(0, n_parts, n), return_inverse=True)[1].astype(np.intp)
    low, high, length = joining_edges(
        sparse.csr_array(X) if as_sparse else X, labels, metric="euclidean"
    )
    D = oracles.distance_matrix(X)
    parts = oracles.Parts(n)
    for i in range(n):
        parts.join(i, int(np.flatnonzero(labels == labels[i])[0]))
    everything = [(i, j) for i in range(n) for j in range(i + 1, n)]
    assert set(zip(low.tolist(), high.tolist())) == kruskal(everything, D, n, parts)
    np.testing.assert_allclose(length, D[low, high], rtol=1e-12)


def test_joining_in_another_metric():
    X = np.array([[0.0, 0.0], [3.0, 3.0], [5.0, 0.0]])
    low, high, length = joining_edges(X, np.array([0, 1, 2]), metric="manhattan")
    assert list(zip(low, high, length)) == [(0, 2, 5.0), (1, 2, 5.0)]


def test_many_parts_become_one():
    X = np.random.default_rng(0).normal(size=(400, 20))
    low, high, _ = joining_edges(X, np.arange(400), metric="euclidean")
    graph = sparse.coo_array((np.ones(len(low)), (low, high)), shape=(400, 400))
    assert len(low) == 399
    assert csgraph.connected_components(graph, directed=False)[0] == 1


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.5]), min_size=1, max_size=200))
def test_equal_lengths_keep_their_order(values):
    length = np.array(values)
    assert (_stable_order(length) == np.argsort(length, kind="stable")).all()
