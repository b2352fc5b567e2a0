import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.vote.sharpness import best_sharpness, usual_sharpness


def hidden_logs(seed, n, n_classes, spread):
    """log f of hidden rows, right more often than not; some reached by few classes or by none."""
    rng = np.random.default_rng(seed)
    given = rng.integers(0, n_classes, n)
    logs = spread * rng.normal(size=(n, n_classes))
    logs[np.arange(n), given] += spread * (rng.random(n) < 0.8)
    logs[rng.random(logs.shape) < 0.1] = -np.inf
    logs[rng.random(n) < 0.1] = -np.inf
    return logs, given


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 25),
    st.integers(1, 5),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([0.1, 1.0, 30.0]),
)
@example(5, 5, 5, 0.01, 30.0)  # two hills, of which a coarse grid takes the lower one
def test_no_point_of_a_fine_grid_is_likelier(seed, n, n_classes, spread, ratio):
    logs, given = hidden_logs(seed, n, n_classes, spread)
    prior = np.random.default_rng(seed).dirichlet(np.full(n_classes, 5.0))
    usual = ratio / spread
    found = best_sharpness(logs, given, prior, usual)
    f = np.exp(logs)
    expected = oracles.sharpness(f, given, prior, usual)

    def height(sharpness):
        return oracles.posterior(f, given, prior, usual, np.log(sharpness))

    # So near the top that it is within 1 %; of two hills as high as each other, either will do.
    assert height(found) >= height(expected) - 1e-6
    assert height(found) >= max(height(1.01 * found), height(found / 1.01))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 5))
def test_the_usual_sharpness_is_two_over_the_median_gap(seed, n, n_classes):
    logs, _ = hidden_logs(seed, n, n_classes, 1.0)
    expected = oracles.usual_sharpness(np.exp(logs), np.full(n, -1))
    for shift in (0.0, np.random.default_rng(seed).normal(size=(n, 1)) * 100):
        assert usual_sharpness(logs + shift) == pytest.approx(expected, rel=1e-9)


def test_nothing_to_learn_from():
    assert usual_sharpness(np.empty((0, 3))) == 1.0
    assert usual_sharpness(np.zeros((4, 1))) == 1.0
    assert usual_sharpness(np.array([[0.0, -np.inf]])) == 1.0
    nobody = np.full((2, 2), -np.inf)
    assert best_sharpness(nobody, np.array([0, 1]), np.array([0.5, 0.5]), 0.3) == 0.3
    assert np.isfinite(usual_sharpness(np.zeros((3, 2))))  # all gaps are 0


def test_classes_count_equally():
    """A class with a hundred labels says no more than one with one: twice all rows, same answer."""
    logs = np.log([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    given, prior = np.array([0, 0, 1]), np.array([0.5, 0.5])
    many = np.repeat([0, 1, 2], [1, 1, 2])  # both classes half of the weight, as before
    f = np.exp(logs)[many]
    found = best_sharpness(logs[many], given[many], prior, 1.0)
    assert found == pytest.approx(oracles.sharpness(f, given[many], prior, 1.0), rel=2e-3)
    uneven = np.repeat([0, 1, 2], [50, 1, 1])
    flat = best_sharpness(logs[uneven], given[uneven], prior, 1.0)
    even = best_sharpness(logs[[0, 2]], np.array([0, 1]), prior, 1.0)
    assert flat > even  # 52 labels outweigh the prior more than two do
