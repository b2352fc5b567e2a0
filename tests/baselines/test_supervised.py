"""The supervised baselines: each learns, and each can be tuned on a few labels."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import ParameterGrid

from manifoldknn.baselines import SUPERVISED, supervised
from manifoldknn.model_selection import tuned


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    few = np.random.default_rng(0).permutation(150)[:60]
    return X, y, few


@pytest.mark.parametrize("name", SUPERVISED)
def test_tuned_on_few_labels_it_classifies_the_rest(name, iris):
    X, y, few = iris
    baseline = supervised(name, n_neighbors=3)
    choice = tuned(baseline.estimator, baseline.grid, X[few], y[few], transductive=False)
    assert set(choice.params) == set(baseline.grid)
    rest = np.setdiff1d(np.arange(150), few)
    assert choice.estimator.fit(X[few], y[few]).score(X[rest], y[rest]) > 0.9
    assert choice.error < 0.15


@pytest.mark.parametrize("name", SUPERVISED)
def test_the_first_of_the_grid_is_the_default(name):
    baseline = supervised(name)
    if baseline.grid:
        first = next(iter(ParameterGrid({k: v[:1] for k, v in baseline.grid.items()})))
        params = baseline.estimator.get_params()
        assert all(params[key] == value for key, value in first.items())


@pytest.mark.parametrize("name", SUPERVISED)
def test_seeded(name, iris):
    X, y, few = iris
    answers = [
        supervised(name, random_state=3).estimator.fit(X[few], y[few]).predict(X) for _ in "ab"
    ]
    np.testing.assert_array_equal(*answers)


def test_validation_prunes_a_tree_that_has_learnt_noise():
    """Labels that depend on one threshold, a quarter of them wrong: the full tree learns all."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = (X[:, 0] > 0.5) ^ (rng.uniform(size=300) < 0.25)
    baseline = supervised("dt")
    choice = tuned(baseline.estimator, baseline.grid, X, y, transductive=False)
    pruned = choice.estimator.fit(X, y)
    full = baseline.estimator.fit(X, y)
    assert choice.params["ccp_alpha"] > 0
    assert pruned.get_n_leaves() < full.get_n_leaves() / 5
    new = rng.uniform(size=(500, 3))
    right = new[:, 0] > 0.5
    assert pruned.score(new, right) > full.score(new, right) + 0.1


def test_unknown_name():
    with pytest.raises(ValueError, match="name='svc' must be one of 'knn'"):
        supervised("svc")
