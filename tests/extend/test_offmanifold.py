"""Ratios of residuals, their limit, and the paper's error of weights, each by hand."""

import pickle

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.extend.offmanifold import (
    OwnResiduals,
    checked_rows,
    oddities,
    relative_error,
    usual_limit,
)
from manifoldknn.extend.reconstruct import Reconstruction
from manifoldknn.vote.similarities import Similarities


def test_oddities_follow_their_formula():
    rng = np.random.default_rng(0)
    residuals, spacings, own = rng.random(9), rng.random(9), rng.random((9, 4, 3))
    for row, odd in enumerate(oddities(residuals, spacings, own)):
        r = np.sqrt(sum(x**2 for x in own[row, :, 0]) / 4)
        s = sum(own[row, :, 2]) / 4
        assert odd == pytest.approx(max(residuals[row] / (r + s), spacings[row] / (2 * s)))


def test_repeated_rows_are_judged_by_those_that_differ():
    """Neighbours without any gap do not count; if none has one, what is typical does."""
    own = np.zeros((1, 4, 3))
    own[0, :2, 2] = 1.0, 3.0
    ones = np.ones(1)
    assert oddities(ones, ones, own).tolist() == [0.5]  # s̄ = 2, not 1
    found = oddities(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.zeros((2, 3, 3)), typical=0.1)
    assert found.tolist() == [0.0, 10.0]


def doubled(X):
    return np.vstack([X, X])


def half_doubled(X):
    return np.vstack([X, X[: len(X) // 2]])


def few_places(X):
    return np.vstack([np.repeat(X[:20], 20, axis=0), X[20:40]])


@pytest.mark.parametrize("repeat", [doubled, half_doubled, few_places])
def test_repeated_samples_neither_hide_nor_make_odd_rows(repeat):
    rng = np.random.default_rng(0)
    X = repeat(rng.normal(size=(400, 3)))
    clf = ManifoldKNNClassifier().fit(
        X, np.where(np.arange(len(X)) < 10, np.arange(len(X)) % 2, -1)
    )
    assert clf.is_off_manifold([[30.0, 30.0, 30.0], [1e6, 0.0, 0.0]]).all()
    assert not clf.is_off_manifold(X[:50]).any()
    if repeat is not few_places:
        assert clf.is_off_manifold(rng.normal(size=(300, 3))).mean() < 0.1


def test_an_outlier_among_few_samples_does_not_set_the_limit():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(59, 3)), [[50.0, 50.0, 50.0]]])
    clf = ManifoldKNNClassifier().fit(X, [0, 1] + [-1] * 58)
    assert clf.is_off_manifold([[-50.0, 0.0, 0.0], [10.0, 10.0, 10.0], [500.0, 0.0, 0.0]]).all()
    assert clf.is_off_manifold()[59]
    assert clf.is_off_manifold(rng.normal(size=(200, 3))).mean() < 0.15


def test_one_in_a_hundred_is_beyond_the_limit():
    values = np.linspace(0, 10, 1001)
    assert (values > usual_limit(values)).mean() == pytest.approx(0.01, abs=0.001)
    assert usual_limit(np.zeros(50)) == 0.5  # where all rows lie between others


def test_the_rows_that_set_the_limit():
    assert checked_rows(100).tolist() == list(range(100))
    rows = checked_rows(5000)
    assert len(np.unique(rows)) == 512
    np.testing.assert_array_equal(rows, checked_rows(5000))


def test_every_sample_is_reconstructed_once():
    asked = []

    def reconstructed(rows):
        asked.extend(rows.tolist())
        return Reconstruction(None, None, rows * 1.0, rows * 10.0, rows * 2.0)

    own = OwnResiduals(9)
    assert own.of(np.array([3, 1, 3]), reconstructed).tolist() == [
        [3, 30, 6],
        [1, 10, 2],
        [3, 30, 6],
    ]
    assert own.of(np.array([3, 4]), reconstructed).tolist() == [[3, 30, 6], [4, 40, 8]]
    assert asked == [1, 3, 4]


def test_what_is_remembered_is_not_written_down():
    own = OwnResiduals(9)
    fresh = pickle.dumps(own)
    own.of(np.arange(9), lambda rows: Reconstruction(None, None, *[rows * 1.0] * 3))
    own.limit = 2.0
    assert pickle.dumps(own) == fresh
    assert pickle.loads(fresh).limit is None


def test_error_of_weights_by_hand():
    T = np.array([[4.0, 1e-9, 2.0], [0.25e-3, 1e-3, 1e-20]])
    R = np.array([[1.0, 1e-4, 2.0], [1e-9, 2e-3, 0.5e-3]])
    truth, rebuilt = (Similarities.from_logarithms(np.log(side)) for side in (T, R))
    expected = 100 * ((T - R) ** 2).sum() / (T**2).sum()
    assert relative_error(truth, rebuilt) == pytest.approx(expected)


def test_error_of_weights_beyond_floats():
    """Weights of 1e-500 have an error like any other."""
    near = Similarities.from_logarithms(np.array([[-1200.0]]))
    twice = Similarities.from_logarithms(np.array([[-1200.0 + np.log(2)]]))
    assert relative_error(near, twice) == pytest.approx(100.0)
    nobody = Similarities.from_logarithms(np.array([[-np.inf]]))
    assert relative_error(nobody, nobody) == 0.0
