import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise_distances

from manifoldknn.graph import partsearch
from manifoldknn.graph.kernels import GRAPH
from manifoldknn.graph.partsearch import MetricSearch, ProductSearch, pair_distances


def search_of_parts(X, parts, *, metric, n_jobs=None):
    return GRAPH.part_search(X, parts, metric, n_jobs)


METRICS = ["euclidean", "cosine", "manhattan", "chebyshev", "correlation", "hamming"]


def made(n, d, n_parts, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    parts = np.unique(rng.integers(0, n_parts, n), return_inverse=True)[1].astype(np.intp)
    return (rng.normal(size=(n, d)) + 3.0).astype(dtype), parts


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    n_parts=st.integers(1, 8),
    metric=st.sampled_from(METRICS),
    form=st.sampled_from(["double", "single", "sparse"]),
    block=st.sampled_from([1, 7, 1024]),
    seed=st.integers(0, 2**32 - 1),
)
def test_nearest_members_are_those_of_all_distances(n, n_parts, metric, form, block, seed):
    X, parts = made(n, 5, n_parts, seed, np.float32 if form == "single" else np.float64)
    if form == "sparse" and metric in ("euclidean", "cosine", "manhattan"):
        X = sparse.csr_array(np.where(X > 3.0, X, [0.5, 0.0, 0.0, 0.0, 0.0]))
    asked = np.random.default_rng(seed + 1).integers(0, parts.max() + 1, n)
    usual, partsearch._BLOCK_ROWS = partsearch._BLOCK_ROWS, block
    try:
        search = search_of_parts(X, parts, metric=metric, n_jobs=1)
        found = search.nearest_to_rows(asked, np.arange(n))
    finally:
        partsearch._BLOCK_ROWS = usual
    D = pairwise_distances(X, metric=metric)
    least = np.where(parts[None, :] == asked[:, None], D, np.inf).min(axis=1)
    assert (parts[found] == asked).all()
    np.testing.assert_allclose(D[np.arange(n), found], least, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_threads_make_no_difference(metric):
    X, parts = made(9000, 6, 3, seed=0, dtype=np.float32)
    asked, looking = np.arange(2000) % 3, np.arange(2000)
    one, two = (
        search_of_parts(X, parts, metric=metric, n_jobs=n_jobs).nearest_to_rows(asked, looking)
        for n_jobs in (1, 2)
    )
    assert (one == two).all()


@pytest.mark.parametrize("block", [1, 4, 1024])
def test_centres_are_the_means_of_rows_of_length_one(block, monkeypatch):
    monkeypatch.setattr(partsearch, "_BLOCK_ROWS", block)
    X, parts = made(50, 4, 6, seed=1)
    X[3] = 0.0
    units = X / np.where(X.any(axis=1), np.linalg.norm(X, axis=1), 1.0)[:, None]
    for metric, rows in (("euclidean", X), ("cosine", units)):
        search = search_of_parts(X, parts, metric=metric)
        means = [rows[parts == part].mean(axis=0) for part in range(parts.max() + 1)]
        np.testing.assert_allclose(search.centres(np.arange(parts.max() + 1)), means, rtol=1e-12)
        assert (parts[search.stand_ins()] == np.arange(parts.max() + 1)).all()


def test_products_only_where_they_serve():
    X, parts = made(20, 3, 2, seed=2)
    assert isinstance(search_of_parts(X, parts, metric="cosine"), ProductSearch)
    assert isinstance(search_of_parts(X, parts, metric="manhattan"), MetricSearch)
    assert isinstance(search_of_parts(sparse.csr_array(X), parts, metric="cosine"), MetricSearch)


def test_far_from_the_origin_single_precision_still_tells_neighbours_apart():
    """Products of the rows as they are would have no digits left for the differences."""
    X, parts = made(400, 3, 4, seed=3)
    X = (X + 3e3).astype(np.float32)
    found = search_of_parts(X, parts, metric="euclidean").nearest_to_rows(
        (parts + 1) % 4, np.arange(400)
    )
    D = pairwise_distances(X.astype(np.float64) - 3e3)
    least = np.where(parts[None, :] == ((parts + 1) % 4)[:, None], D, np.inf).min(axis=1)
    np.testing.assert_allclose(D[np.arange(400), found], least, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    n_parts=st.integers(2, 12),
    metric=st.sampled_from(METRICS),
    block=st.sampled_from([1, 7, 1024]),
    seed=st.integers(0, 2**32 - 1),
)
def test_nearest_strangers_are_those_of_all_distances(n, n_parts, metric, block, seed):
    X, parts = made(n, 5, n_parts, seed)
    parts = np.arange(n) % 2 if parts.max() == 0 else parts
    usual, partsearch._BLOCK_ROWS = partsearch._BLOCK_ROWS, block
    try:
        search = search_of_parts(X, parts, metric=metric, n_jobs=1)
        found = search.nearest_strangers()
    finally:
        partsearch._BLOCK_ROWS = usual
    every = np.arange(parts.max() + 1)
    rows = search.rows(np.arange(n))
    D = pairwise_distances(
        search.centres(every), rows, metric="euclidean" if metric == "cosine" else metric
    )
    assert (parts[found] != every).all()
    least = np.where(parts[None, :] == every[:, None], np.inf, D).min(axis=1)
    np.testing.assert_allclose(D[every, found], least, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("metric", [*METRICS, lambda x, y: abs(x - y).sum()])
def test_pairs_are_measured_as_all_pairs_are(metric):
    X, _ = made(30, 4, 1, seed=4)
    one, other = np.random.default_rng(5).integers(0, 30, (2, 21))
    expected = pairwise_distances(X, metric=metric)[one, other]
    found = pair_distances(X, one, other, metric=metric)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)
