"""Ratios of residuals, their limit, and the paper's error of weights, each by hand."""

import pickle

import numpy as np
import pytest

from manifoldknn.offmanifold import (
    OwnResiduals,
    checked_rows,
    oddities,
    relative_weight_error,
    usual_limit,
)
from manifoldknn.reconstruct import Reconstruction
from manifoldknn.voters import NearestLabeled


def test_oddities_follow_their_formula():
    rng = np.random.default_rng(0)
    residuals, spacings, own = rng.random(9), rng.random(9), rng.random((9, 4, 2))
    for row, odd in enumerate(oddities(residuals, spacings, own)):
        r = np.sqrt(sum(x**2 for x in own[row, :, 0]) / 4)
        s = sum(own[row, :, 1]) / 4
        assert odd == pytest.approx(max(residuals[row] / (r + s), spacings[row] / (2 * s)))


def test_repeated_rows_have_no_scale():
    """Among copies of one row a copy is as usual as can be, anything else infinitely odd."""
    found = oddities(np.array([0.0, 1e-9]), np.array([0.0, 1e-9]), np.zeros((2, 3, 2)))
    assert found.tolist() == [0.0, np.inf]


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
        return Reconstruction(None, None, rows * 1.0, rows * 10.0)

    own = OwnResiduals(9)
    assert own.of(np.array([3, 1, 3]), reconstructed).tolist() == [[3, 30], [1, 10], [3, 30]]
    assert own.of(np.array([3, 4]), reconstructed).tolist() == [[3, 30], [4, 40]]
    assert asked == [1, 3, 4]


def test_what_is_remembered_is_not_written_down():
    own = OwnResiduals(9)
    fresh = pickle.dumps(own)
    own.of(np.arange(9), lambda rows: Reconstruction(None, None, rows * 1.0, rows * 1.0))
    own.limit = 2.0
    assert pickle.dumps(own) == fresh
    assert pickle.loads(fresh).limit is None


def test_error_of_weights_by_hand():
    """Voters in different orders, scales far apart, one voter that a side does not keep."""
    truth = NearestLabeled(
        np.array([[1.0, 0.5], [1.0, 0.25]]), np.array([[0, 2], [1, 0]]), np.log([4.0, 1e-3])
    )
    rebuilt = NearestLabeled(
        np.array([[1.0, 0.5], [1.0, 0.25]]), np.array([[2, 0], [1, 2]]), np.log([2.0, 2e-3])
    )
    T = np.array([[4.0, 0.0, 2.0], [0.25e-3, 1e-3, 0.0]])
    R = np.array([[1.0, 0.0, 2.0], [0.0, 2e-3, 0.5e-3]])
    expected = 100 * ((T - R) ** 2).sum() / (T**2).sum()
    assert relative_weight_error(truth, rebuilt, 3) == pytest.approx(expected)


def test_error_of_weights_beyond_floats():
    """Weights of 1e-500 have an error like any other."""
    near = NearestLabeled(np.ones((1, 1)), np.zeros((1, 1), int), np.array([-1200.0]))
    twice = NearestLabeled(np.ones((1, 1)), np.zeros((1, 1), int), np.array([-1200.0 + np.log(2)]))
    assert relative_weight_error(near, twice, 1) == pytest.approx(100.0)
    nobody = NearestLabeled(np.zeros((1, 1)), np.zeros((1, 1), int), np.array([-np.inf]))
    assert relative_weight_error(nobody, nobody, 1) == 0.0
