"""Rows off the surface of their neighbours stand out."""

import numpy as np
import pytest
import scipy.optimize
from scipy import sparse

from manifoldknn.neighbors import ExactIndex
from manifoldknn.offmanifold import new_row_scores, residuals, sample_scores


def slow_residual(x, around):
    """‖x - Σ z_i x_i‖ by a general solver."""
    k = len(around)
    best = scipy.optimize.minimize(
        lambda z: np.sum((x - z @ around) ** 2),
        np.full(k, 1 / k),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.sqrt(best.fun)


def test_residuals_and_scores_as_defined():
    X = np.random.default_rng(0).normal(size=(40, 3))
    index = ExactIndex(X)
    found = index.among_samples(5)
    expected = [slow_residual(x, X[n]) for x, n in zip(X, found.indices)]
    scores, own = sample_scores(index, found)
    np.testing.assert_allclose(own, expected, atol=1e-4)
    usual = np.median(own[found.indices], axis=1)
    floor = 0.1 * np.median(own[own > 0])
    np.testing.assert_allclose(scores, own / np.maximum(usual, floor))


def test_an_outlier_stands_out_at_any_scale():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(300)])
    X = np.vstack([circle + 0.01 * rng.normal(size=(300, 3)), [[1.0, 0.0, 0.5]]])
    for scale in (1e-6, 1.0, 1e6):
        index = ExactIndex(scale * X)
        scores, _ = sample_scores(index, index.among_samples(10))
        assert scores.argmax() == 300
        assert scores[300] > 5
        assert np.median(scores[:300]) < 2


def test_new_rows():
    rng = np.random.default_rng(1)
    X = rng.random((200, 2)) @ rng.normal(size=(2, 5))
    index = ExactIndex(X)
    new = np.vstack([X[:5], X[:5] + rng.normal(size=5)])
    scores = new_row_scores(new, index, 8)
    assert (scores[:5] == 0).all()
    assert (scores[5:] > 3).all()
    _, own = sample_scores(index, index.among_samples(8))
    found = index.query(new, 8).indices
    floor = 0.1 * np.median(own[np.unique(found)])
    usual = np.maximum(np.median(own[found], axis=1), floor)
    np.testing.assert_allclose(scores, residuals(new, index, found) / usual)


def test_repeated_rows_and_sparse_and_cosine():
    X = np.repeat(np.random.default_rng(0).random((20, 4)), 3, axis=0)
    index = ExactIndex(X)
    scores, own = sample_scores(index, index.among_samples(4))
    assert (scores == 0).all()
    assert (own == 0).all()
    dense = ExactIndex(X[::3], metric="cosine")
    thin = ExactIndex(sparse.csr_array(X[::3]), metric="cosine")
    found = dense.among_samples(4)
    np.testing.assert_allclose(
        residuals(dense.X, dense, found.indices), residuals(thin.X, thin, found.indices)
    )
    assert residuals(dense.X, dense, found.indices) == pytest.approx(
        residuals(5 * dense.X, dense, found.indices)
    )
