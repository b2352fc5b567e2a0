"""Naive Bayes with kernel densities against sums of bumps written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import log, npdf
from scipy.stats import norm
from sklearn.utils.estimator_checks import parametrize_with_checks

import manifoldknn.baselines.kernel_nb as module
from manifoldknn.baselines import KernelNaiveBayes


@parametrize_with_checks(
    [KernelNaiveBayes(), KernelNaiveBayes(bandwidth="normal"), KernelNaiveBayes(bandwidth=0.5)]
)
def test_sklearn_check(estimator, check):
    check(estimator)


def width(values):
    """The rule of MATLAB's ksdensity: median absolute deviation, else the range."""
    values = np.asarray(values)
    s = np.median(np.abs(values - np.median(values))) / norm.ppf(0.75)
    if s == 0:
        s = values.max() - values.min()
    return s * (4 / (3 * len(values))) ** (1 / 5)


def shared_width(values, n):
    return np.std(values, ddof=1) * (4 / (3 * n)) ** (1 / 5) if np.ptp(values) > 0 else 0.0


def literal(X, y, q, rule, scale=1.0):
    joint = []
    for c in np.unique(y):
        rows = X[y == c]
        value = np.log(len(rows) / len(X))
        for j in range(X.shape[1]):
            shared = shared_width(X[:, j], len(rows))
            h = scale * ((width(rows[:, j]) or shared) if rule == "normal" else shared)
            if h > 0:
                bumps = [npdf(float(q[j]), float(x), float(h)) for x in rows[:, j]]
                value += float(log(sum(bumps) / len(rows)))  # numbers that cannot underflow
        joint.append(value)
    return joint


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["shared", "normal"]), st.sampled_from([0.5, 2.0]))
def test_log_densities_equal_the_formula(seed, rule, scale):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 3
    X[y == 1, 0] = 0.25  # constant in one class
    X[::2, 1] = 0.0  # mostly one value
    X[:, 3] = 7.0  # constant everywhere
    clf = KernelNaiveBayes(bandwidth=rule, bandwidth_scale=scale).fit(X, y)
    Q = rng.normal(size=(5, 4))
    expected = [literal(X, y, q, rule, scale) for q in Q]
    np.testing.assert_allclose(clf.predict_joint_log_proba(Q), expected, rtol=1e-9)
    np.testing.assert_array_equal(clf.predict(Q), np.argmax(expected, axis=1))


def test_rows_far_from_everything_are_still_told_apart():
    X, y = np.array([[0.0], [0.1], [10.0], [10.1]]), [0, 0, 1, 1]
    clf = KernelNaiveBayes(bandwidth=0.1).fit(X, y)
    assert clf.predict([[-1e6], [1e6]]).tolist() == [0, 1]
    assert np.isfinite(clf.predict_joint_log_proba([[1e6]])).all()
    np.testing.assert_allclose(clf.predict_proba([[-1e6]]), [[1, 0]])


def test_one_label_per_class_has_the_width_of_the_whole_feature():
    clf = KernelNaiveBayes(bandwidth="normal").fit([[0.0], [1.0], [4.0]], [0, 1, 2])
    np.testing.assert_allclose(clf.bandwidth_, np.full((3, 1), shared_width([0.0, 1.0, 4.0], 1)))
    assert clf.predict([[0.4], [3.0]]).tolist() == [0, 2]


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    clf = KernelNaiveBayes().fit(X, y)
    whole = clf.predict_joint_log_proba(X)
    monkeypatch.setattr(module, "_CHUNK", 200)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), whole, rtol=1e-12)


def test_priors():
    X, y = [[0.0], [0.2], [0.4], [1.0]], [0, 0, 0, 1]
    np.testing.assert_allclose(np.exp(KernelNaiveBayes().fit(X, y).class_log_prior_), [0.75, 0.25])
    for prior in (None, "equal"):
        equal = KernelNaiveBayes(class_prior=prior).fit(X, y)
        np.testing.assert_allclose(np.exp(equal.class_log_prior_), [0.5, 0.5])
    given_ = KernelNaiveBayes(class_prior=[1, 3]).fit(X, y)
    np.testing.assert_allclose(np.exp(given_.class_log_prior_), [0.25, 0.75])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0}, "bandwidth=0 must be a positive, finite number or 'shared' or 'normal'"),
        ({"bandwidth": "wide"}, "bandwidth='wide' must be"),
        ({"bandwidth_scale": -1}, "bandwidth_scale=-1 must be a positive"),
        ({"class_prior": [1, 2, 3]}, r"class_prior=\[1, 2, 3\] must be .* each of the 2 classes"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        KernelNaiveBayes(**options).fit([[0.0], [1.0]], [0, 1])
