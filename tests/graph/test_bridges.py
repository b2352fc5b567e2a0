from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.metrics import pairwise_distances

import manifoldknn.graph.joining as bridges
from manifoldknn.graph.joining import joining_edges
from manifoldknn.graph.kernels import GRAPH

short_joining_edges = partial(bridges.short_joining_edges, kernels=GRAPH)


def clusters(n_parts, d, seed, size=40, spread=1.0):
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(n_parts), rng.integers(1, size, n_parts))
    centres = rng.normal(size=(n_parts, d)) * 5
    return centres[parts] + spread * rng.normal(size=(len(parts), d)), parts


def giant_and_outliers(n_parts, d, seed, size=2000):
    """One part in the middle, nearest to all others, and small ones around it."""
    rng = np.random.default_rng(seed)
    parts = rng.permutation(np.concatenate([np.zeros(size, int), 1 + np.arange(n_parts * 9) // 9]))
    centres = 4 * rng.normal(size=(n_parts + 1, d))
    centres[0] = 0
    spread = np.where(parts == 0, 1.0, 0.3)[:, None]
    return centres[parts] + spread * rng.normal(size=(len(parts), d)), parts


def words(n_parts, seed, size=30, n_columns=400):
    """Sparse rows: those of a part share most of their columns."""
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(n_parts), rng.integers(2, size, n_parts))
    topics = rng.integers(0, n_columns, (n_parts, 12))
    own = topics[parts][np.arange(len(parts))[:, None], rng.integers(0, 12, (len(parts), 10))]
    columns = np.where(
        rng.random(own.shape) < 0.7, own, rng.integers(0, n_columns, (len(parts), 10))
    )
    rows = np.repeat(np.arange(len(parts)), 10).astype(np.int32)
    values = rng.random(rows.size) + 0.1
    return sparse.csr_array(
        (values, (rows, columns.ravel().astype(np.int32))), shape=(len(parts), n_columns)
    ), parts


def joins_everything(low, high, parts):
    n = parts.max() + 1
    graph = sparse.coo_array((np.ones(len(low)), (parts[low], parts[high])), shape=(n, n))
    return csgraph.connected_components(graph, directed=False)[0] == 1


def assert_almost_the_shortest(X, parts, metric, longer):
    low, high, length = short_joining_edges(X, parts, metric=metric)
    best = joining_edges(X, parts, metric=metric)[2]
    assert len(low) == parts.max()
    assert (low < high).all()
    assert (np.diff(low * len(parts) + high) > 0).all()
    assert joins_everything(low, high, parts)
    true = pairwise_distances(X, metric=metric)[low, high]
    np.testing.assert_allclose(length, true, rtol=1e-6, atol=1e-9)
    assert best.sum() <= length.sum() * (1 + 1e-9)
    assert length.sum() <= longer * best.sum()


@pytest.mark.parametrize("n_parts", [2, 3, 20, 120])
@pytest.mark.parametrize(("d", "spread", "longer"), [(2, 1.0, 1.5), (2, 0.05, 1.1), (10, 1.0, 1.1)])
def test_joins_with_edges_almost_as_short_as_the_shortest(n_parts, d, spread, longer):
    X, parts = clusters(n_parts, d, seed=n_parts + d, spread=spread)
    assert_almost_the_shortest(X, parts, "euclidean", longer)
    low, high, length = short_joining_edges(X, parts)
    np.testing.assert_allclose(length, np.linalg.norm(X[low] - X[high], axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("d", "metric"),
    [(d, metric) for d in (3, 32) for metric in ("euclidean", "manhattan", "chebyshev")]
    + [(d, "cosine") for d in (8, 32)],  # in three, directions would lie among those of the large
)
def test_outlying_parts_are_joined_to_a_large_one_between_them(d, metric):
    X, parts = giant_and_outliers(40, d, seed=d)
    assert_almost_the_shortest(X, parts, metric, longer=1.1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("n_parts", [2, 30])
def test_sparse_rows(metric, n_parts):
    X, parts = words(n_parts, seed=n_parts)
    assert_almost_the_shortest(X, parts, metric, longer=1.25)


def test_a_metric_of_ones_own():
    X, parts = clusters(6, 3, seed=0, size=8, spread=0.1)
    assert_almost_the_shortest(X, parts, lambda x, y: np.abs(x - y).sum(), longer=1.1)


def literal_back_and_forth(D, from_centres, parts, one, other):
    ours, theirs = np.flatnonzero(parts == one), np.flatnonzero(parts == other)
    a, b = ours[np.argmin(from_centres[other, ours])], -1
    for _ in range(bridges.STEPS):
        b = theirs[np.argmin(D[a, theirs])]
        a = ours[np.argmin(D[b, ours])]
    return a, b


@settings(max_examples=30, deadline=None)
@given(n_parts=st.integers(2, 12), d=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_all_together_go_where_each_would_go_alone(n_parts, d, seed):
    X, parts = clusters(n_parts, d, seed, size=20)
    search = GRAPH.part_search(X, parts, "euclidean", 1)
    one, other = np.array([(i, j) for i in range(n_parts) for j in range(n_parts) if i != j]).T
    found = bridges._back_and_forth(search, one, other)
    D = pairwise_distances(X)
    means = np.array([X[parts == part].mean(axis=0) for part in range(n_parts)])
    from_centres = pairwise_distances(means, X)
    expected = [literal_back_and_forth(D, from_centres, parts, i, j) for i, j in zip(one, other)]
    assert found.tolist() == [list(pair) for pair in expected]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_threads_make_no_difference(metric):
    X, parts = giant_and_outliers(30, 8, seed=1, size=5000)
    X = X.astype(np.float32)
    one, two = (short_joining_edges(X, parts, metric=metric, n_jobs=n) for n in (1, 2))
    for ours, theirs in zip(one, two):
        assert (ours == theirs).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_one_row_stands_for_a_part_where_parts_are_many(metric, monkeypatch):
    monkeypatch.setattr(bridges, "MOST_PARTS", 10)
    X, parts = clusters(60, 3, seed=0, size=5)
    low, high, _ = short_joining_edges(X, parts, metric=metric)
    assert len(low) == 59
    assert joins_everything(low, high, parts)


def test_no_row_stands_for_a_large_part_seen_from_small_ones(monkeypatch):
    monkeypatch.setattr(bridges, "MOST_PARTS", 10)
    X, parts = giant_and_outliers(40, 16, seed=2)
    assert_almost_the_shortest(X, parts, "euclidean", longer=1.1)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_parts_beside_a_hollow_one_are_joined_to_it(metric):
    """The centre of a ring is far from parts around it, which are near each other."""
    rng = np.random.default_rng(3)
    angle = 2 * np.pi * rng.random(1500)
    ring = 10 * np.column_stack([np.cos(angle), np.sin(angle)])
    around = 2 * np.pi * (np.arange(60) + 0.5) / 60
    others = 10.3 * np.column_stack([np.cos(around), np.sin(around)])
    X = np.concatenate([ring, np.repeat(others, 5, axis=0)])
    X[1500:] += 0.01 * rng.normal(size=(300, 2))
    parts = np.concatenate([np.zeros(1500, int), 1 + np.arange(300) // 5])
    assert_almost_the_shortest(X, parts, metric, longer=1.1)
