import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import manifoldknn.base.distances as distances_module
import oracles
from manifoldknn.base.distances import (
    distance_blocks,
    euclidean_lists,
    euclidean_pairs,
    largest_value,
    row_blocks,
    squared_norms,
)


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_pair_distances_neither_overflow_nor_underflow(scale):
    A = np.array([[3.0, 0.0], [1.0, 1.0]]) * scale
    B = np.array([[0.0, 4.0], [1.0, 1.0]]) * scale
    rows = np.array([0, 1, 1])
    cols = np.array([0, 1, 0])
    expected = np.array([5.0, 0.0, np.sqrt(10.0)]) * scale
    np.testing.assert_allclose(euclidean_pairs(A, B, rows, cols), expected, rtol=1e-14)


def test_distance_blocks_cover_the_rows_asked_for():
    X = np.random.default_rng(6).normal(size=(30, 4))
    rows = np.array([3, 7, 29])
    parts = list(distance_blocks(X, rows, metric="euclidean"))
    assert np.concatenate([part for part, _ in parts]).tolist() == rows.tolist()
    D = np.vstack([block for _, block in parts])
    np.testing.assert_allclose(D, oracles.distance_matrix(X)[rows], atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_distances_to_lists_are_those_of_pairs(monkeypatch, form, dtype, scale):
    monkeypatch.setattr(distances_module, "_PAIR_BYTES", 500)
    monkeypatch.setattr(distances_module, "_LIST_BYTES", 500)
    rng = np.random.default_rng(0)
    X, Q = ((scale * rng.normal(size=(n, 3))).astype(dtype) for n in (40, 17))
    lists = rng.integers(0, 40, (17, 5))
    found = euclidean_lists(form(Q), form(X), lists)
    expected = euclidean_pairs(form(Q), form(X), np.repeat(np.arange(17), 5), lists.ravel())
    assert (found.ravel() == expected).all()
    exact = np.linalg.norm(Q[:, None].astype(float) - X[lists].astype(float), axis=2)
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    assert (euclidean_lists(form(Q), form(X), lists, n_jobs=2) == found).all()
    assert euclidean_lists(form(X), form(X), np.arange(40)[:, None]).max() == 0


def test_very_wide_sparse_rows_are_measured_many_at_a_time(monkeypatch):
    """Chunks are as large as what the rows store, not as their columns."""
    rng = np.random.default_rng(1)
    narrow = sparse.random_array((60, 40), density=0.2, format="csr", rng=rng)
    columns = np.sort(rng.choice(1_000_000, 40, replace=False))
    wide = sparse.csr_array((narrow.data, columns[narrow.indices], narrow.indptr), (60, 1_000_000))
    steps = []
    usual = distances_module.sparse.issparse
    monkeypatch.setattr(distances_module.sparse, "issparse", lambda x: steps.append(1) or usual(x))
    lists = rng.integers(0, 60, (60, 30))
    found = euclidean_lists(wide, wide, lists)
    assert len(steps) < 50
    dense = narrow.toarray()
    np.testing.assert_allclose(found, euclidean_lists(dense, dense, lists), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("metric", "resolution"),
    [("euclidean", 0.0), ("euclidean", 1e-9), ("cosine", 0.0), ("manhattan", 0.0)],
)
def test_distance_blocks_over_blocks_of_samples(monkeypatch, form, dtype, metric, resolution):
    monkeypatch.setattr(distances_module, "_CHUNK_BYTES", 1000)
    monkeypatch.setattr(distances_module, "_ROW_BYTES", 400)
    X = np.random.default_rng(6).normal(size=(50, 4)).astype(dtype)
    rows = np.array([3, 7, 8, 9, 11, 49])
    blocks = list(distance_blocks(form(X), rows, metric=metric, resolution=resolution))
    assert len(blocks) == 3
    found = np.vstack([block for _, block in blocks])
    names = {"euclidean": "euclidean", "cosine": "cosine", "manhattan": "cityblock"}
    expected = cdist(X[rows].astype(float), X.astype(float), names[metric])
    np.testing.assert_allclose(found, expected, atol=1e-3 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bray_curtis_of_rows_of_zeros_and_of_opposites(dtype):
    """In `pairwise_distances` these are 0/0 and x/0."""
    X = np.array([[1, -2], [0, 0], [0, 0], [-1, 2], [2, 3]], dtype=dtype)
    ((_, found),) = distance_blocks(X, np.arange(5), metric="braycurtis")
    expected = [
        [0, 1, 1, 1, 6 / 8], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1], [1, 1, 1, 0, 4 / 8],
        [6 / 8, 1, 1, 4 / 8, 0],
    ]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("X", [np.ones((70, 30)), sparse.eye_array(70, 10**6, format="csr")])
def test_row_blocks_cover_all_rows_once(monkeypatch, X):
    monkeypatch.setattr(distances_module, "_ROW_BYTES", 8 * 30 * 8)
    starts = [block.start for block in row_blocks(X)]
    ends = [block.stop for block in row_blocks(X)]
    assert starts == [0, *ends[:-1]]
    assert ends[-1] == 70
    assert len(starts) == (9 if isinstance(X, np.ndarray) else 1)


def test_largest_value_and_norms():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    assert largest_value(X) == np.abs(X).max()
    assert largest_value(-np.ones((2, 2))) == 1
    np.testing.assert_allclose(squared_norms(X), (X.astype(float) ** 2).sum(axis=1), rtol=1e-14)
