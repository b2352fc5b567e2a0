"""Weighted kNN against the formula, row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from manifoldknn.baselines import WeightedKNNClassifier
from manifoldknn.baselines.weighted import KERNELS


@parametrize_with_checks([WeightedKNNClassifier(), WeightedKNNClassifier(kernel="gaussian")])
def test_sklearn_check(estimator, check):
    check(estimator)


def kernel_value(kernel, D, k):
    """As printed in the report of 2004 and, for the Gaussian, done in the R package kknn."""
    D = min(max(D, 1e-6), 1 - 1e-6)
    if kernel == "rectangular":
        return 0.5
    if kernel == "triangular":
        return 1 - D
    if kernel == "epanechnikov":
        return 3 / 4 * (1 - D**2)
    if kernel == "biweight":
        return 15 / 16 * (1 - D**2) ** 2
    if kernel == "triweight":
        return 35 / 32 * (1 - D**2) ** 3
    if kernel == "cosine":
        return np.pi / 4 * np.cos(np.pi / 2 * D)
    if kernel == "inverse":
        return 1 / abs(D)
    return norm.pdf(D * abs(norm.ppf(1 / (2 * (k + 1)))))


def literal(X, y, q, k, kernel):
    distance = [float(np.sqrt(np.sum((np.asarray(x) - q) ** 2))) for x in X]
    order = sorted(range(len(X)), key=lambda i: (distance[i], i))
    scale = distance[order[k]]
    votes = dict.fromkeys(sorted(set(y.tolist())), 0.0)
    for i in order[:k]:
        D = distance[i] / scale if scale > 0 else 0.0
        votes[y[i]] += kernel_value(kernel, D, k)
    total = sum(votes.values())
    return [v / total for v in votes.values()]


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_shares_equal_the_formula(kernel, seed, k, duplicates):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    if duplicates:
        X[6:] = X[:6]
    Q = np.vstack([rng.normal(size=(4, 3)), X[:3]])
    found = WeightedKNNClassifier(k, kernel=kernel).fit(X, y).predict_proba(Q)
    expected = [literal(X, y, q, k, kernel) for q in Q]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_rectangular_kernel_is_plain_knn():
    rng = np.random.default_rng(0)
    X, y, Q = rng.normal(size=(60, 4)), rng.integers(0, 3, 60), rng.normal(size=(40, 4))
    found = WeightedKNNClassifier(7, kernel="rectangular").fit(X, y).predict_proba(Q)
    np.testing.assert_allclose(found, KNeighborsClassifier(7).fit(X, y).predict_proba(Q))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_samples_than_neighbours(n):
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n)
    clf = WeightedKNNClassifier(5).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), y)
    np.testing.assert_allclose(clf.predict_proba([[0.3]]).sum(axis=1), 1)


def test_neighbours_all_equally_far_share_the_vote():
    X = [[1.0, 0], [-1, 0], [0, 1], [0, -1]]
    shares = WeightedKNNClassifier(3).fit(X, [0, 0, 1, 1]).predict_proba([[0.0, 0]])
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3]])


def test_rows_that_are_all_the_same():
    X = np.ones((6, 2))
    shares = WeightedKNNClassifier(3).fit(X, [0, 1, 1, 0, 1, 1]).predict_proba(X[:1])
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number"),
        ({"kernel": "round"}, "kernel='round' must be one of 'rectangular'"),
        ({"metric": "far"}, "metric='far'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        WeightedKNNClassifier(**options).fit([[0.0], [1.0]], [0, 1])
