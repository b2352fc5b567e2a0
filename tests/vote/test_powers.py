import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.vote.sharpness import best_powers
from vote.test_sharpness import hidden_logs


def problem(seed, n, n_classes, spread):
    logs, given = hidden_logs(seed, n, n_classes, spread)
    rng = np.random.default_rng(seed + 1)
    s = rng.dirichlet(np.full(n_classes, 0.7), n)
    s[np.arange(n), given] += rng.choice([0.0, 0.5])
    return logs, np.log(oracles.partner_shares(s / s.sum(axis=1, keepdims=True))), given


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(1, 12),
    st.integers(2, 4),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([0.1, 1.0, 30.0]),
)
def test_no_point_of_a_fine_grid_is_likelier(seed, n, n_classes, spread, ratio):
    logs, said, given = problem(seed, n, n_classes, spread)
    prior = np.random.default_rng(seed).dirichlet(np.full(n_classes, 5.0))
    usual = ratio / spread
    found = best_powers(logs, said, given, prior, usual)
    f, s = np.exp(logs), np.exp(said)
    expected = oracles.powers(f, s, given, prior, usual)

    def height(sharpness, weight):
        return oracles.joint_posterior(f, s, given, prior, usual, np.log(sharpness), weight)

    best = height(*found)
    assert best >= height(*expected) - 1e-6
    for factor, step in ((1.01, 0.0), (1 / 1.01, 0.0), (1.0, 0.01), (1.0, -0.01)):
        assert best >= height(factor * found[0], max(0.0, found[1] + step)) - 1e-9


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12))
def test_a_sharpness_that_is_given_stays(seed, n):
    logs, said, given = problem(seed, n, 3, 1.0)
    prior, f, s = np.full(3, 1 / 3), np.exp(logs), np.exp(said)
    sharpness, weight = best_powers(logs, said, given, prior, 0.7, free=False)
    assert sharpness == 0.7

    def height(weight):
        return oracles.joint_posterior(f, s, given, prior, 0.7, np.log(0.7), weight)

    assert height(weight) >= max(height(point) for point in np.arange(0, 8, 0.05)) - 1e-6


def test_nothing_to_learn_from():
    nobody, said = np.full((2, 2), -np.inf), np.log([[0.9, 0.1], [0.2, 0.8]])
    assert best_powers(nobody, said, np.array([0, 1]), np.full(2, 0.5), 0.3) == (0.3, 0.0)


def test_who_knows_everything_speaks():
    """γ is 0 where the graph is always right, and large where it is blind and the partner right."""
    truth = np.repeat([0, 1], 20)
    sure = np.where(np.eye(2)[truth] > 0, 0.0, -5.0)
    blind = np.random.default_rng(0).normal(size=(40, 2))
    wrong = np.log(np.where(np.eye(2)[truth][::-1] > 0, 0.9, 0.1))
    right = np.log(np.where(np.eye(2)[truth] > 0, 0.9, 0.1))
    prior = np.full(2, 0.5)
    assert best_powers(sure, wrong, truth, prior, 1.0)[1] == 0.0
    sharpness, weight = best_powers(blind, right, truth, prior, 1.0)
    assert weight > 1
    assert sharpness < 0.8


@pytest.mark.parametrize("shift", [0.0, -900.0])
def test_any_scale_of_the_row(shift):
    logs, said, given = problem(3, 20, 3, 1.0)
    found = best_powers(logs + shift, said, given, np.full(3, 1 / 3), 1.0)
    assert found == pytest.approx(best_powers(logs, said, given, np.full(3, 1 / 3), 1.0), rel=1e-6)
