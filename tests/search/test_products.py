"""Candidates from products: the true neighbours are always among them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.base.distances import squared_norms
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.products import candidates_by_products


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float32, np.float64]),
    far=st.sampled_from([0.0, 1.0, 1e3]),
    close=st.sampled_from([1.0, 1e-3, 1e-6]),
    size=st.sampled_from([1e-30, 1e-13, 1.0, 1e14, 1e19, 1e30]),
    k=st.integers(1, 8),
)
def test_no_neighbour_is_lost_to_rounding(seed, dtype, far, close, size, k):
    """Many rows nearer together than products of single precision can tell."""
    rng = np.random.default_rng(seed)
    X = (size * (far + close * rng.normal(size=(80, 5)))).astype(dtype)
    Q = (size * (far + close * rng.normal(size=(7, 5)))).astype(dtype)
    candidates = candidates_by_products(Q, X, squared_norms(X), k)
    D = np.linalg.norm(Q[:, None].astype(float) - X[None].astype(float), axis=2)
    for row, distances in zip(candidates, D):
        limit = np.sort(distances)[k - 1]
        assert set(np.flatnonzero(distances < limit)) <= set(row)
        assert (np.sort(distances[np.unique(row)])[:k] == np.sort(distances)[:k]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows_are_answered_as_many(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20)).astype(dtype)
    X[100:120] = X[50]  # more equal rows than spare candidates
    Q = np.concatenate([X[:60], rng.normal(size=(60, 20)).astype(dtype)])
    index = ExactIndex(X)
    many = index.query(Q, 7)
    for row in (0, 50, 59, 80, 119):
        one = index.query(Q[row : row + 1], 7)
        np.testing.assert_array_equal(one.distances[0], many.distances[row])
        if row != 50:
            np.testing.assert_array_equal(one.indices[0], many.indices[row])
    # Among equal rows, those that come first.
    assert index.query(Q[50:51], 7).indices[0].tolist() == [50, 100, 101, 102, 103, 104, 105]


def test_as_many_neighbours_as_samples():
    X = np.arange(6.0).reshape(3, 2)
    assert candidates_by_products(X[:2], X, squared_norms(X), 3).tolist() == [[0, 1, 2]] * 2
