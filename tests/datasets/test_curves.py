"""Drawing around curves: bridges across the gap, speed, sizes."""

import numpy as np
import pytest

from manifoldknn.datasets.curves import around_curves, at_constant_speed, split_sizes


def line(height):
    return lambda u: np.column_stack([10 * u, np.full_like(u, height)])


def drawn(sizes=(40, 40), noise=0.0, n_bridges=3, seed=0):
    shares = ((0.1, 0.5, 0.9),) * 2
    return around_curves((line(0.0), line(1.0)), sizes, shares, noise, seed, n_bridges)


def test_bridges_cross_the_gap_in_equal_steps_and_belong_to_the_nearer_curve():
    X, y, labeled = drawn()
    between = (X[:, 1] > 0) & (X[:, 1] < 1)
    assert between.sum() == 12
    np.testing.assert_allclose(np.unique(X[between, 1].round(9)), [0.2, 0.4, 0.6, 0.8])
    np.testing.assert_array_equal(y[between], X[between, 1] > 0.5)
    assert np.bincount(y).tolist() == [40, 40]
    assert not between[labeled].any()


def test_bridges_stand_apart():
    X, _, _ = drawn(n_bridges=5, sizes=(100, 100))
    feet = np.sort(np.unique(X[(X[:, 1] > 0) & (X[:, 1] < 1), 0].round(6)))
    assert len(feet) == 5
    assert np.diff(feet).min() > 0.5
    assert (np.floor(feet / 2) == np.arange(5)).all()  # one in each fifth


def test_bridges_stand_only_where_the_gap_is_narrow():
    def slope(u):
        return np.column_stack([10 * u, 1 + 5 * u])

    X, _, _ = around_curves((line(0.0), slope), (60, 60), ((0.1,), (0.1,)), 0.0, 0, 4)
    crossing = (X[:, 1] > 1e-9) & (X[:, 1] < 1 + 0.5 * X[:, 0] - 1e-9)
    assert crossing.sum() == 16
    assert X[crossing, 0].max() < 2


def test_without_bridges_nothing_else_is_drawn():
    X, y, labeled = drawn(n_bridges=0)
    assert set(np.unique(X[:, 1])) == {0.0, 1.0}
    assert np.bincount(y).tolist() == [40, 40]
    assert y[labeled].tolist() == [0, 0, 0, 1, 1, 1]


def test_constant_speed():
    parabola = at_constant_speed(lambda u: np.column_stack([u, u**2]))
    steps = np.linalg.norm(np.diff(parabola(np.linspace(0, 1, 500)), axis=0), axis=1)
    np.testing.assert_allclose(steps, steps.mean(), rtol=1e-3)
    np.testing.assert_allclose(parabola(np.array([0.0, 1.0])), [[0, 0], [1, 1]], atol=1e-12)


@pytest.mark.parametrize("n_bridges", [-1, 1.5, "2", True, None])
def test_bad_bridges_are_refused(n_bridges):
    with pytest.raises(ValueError, match=r"n_bridges=.* must be a whole number"):
        drawn(n_bridges=n_bridges)


def test_too_many_bridges_for_the_samples():
    with pytest.raises(ValueError, match="raise n_samples to 46 or lower n_bridges"):
        drawn(sizes=(10, 20), n_bridges=10)


def test_split_sizes():
    assert split_sizes(9) == (5, 4)
    with pytest.raises(ValueError, match="at least 6 or a pair of ints of at least 3"):
        split_sizes(5)
