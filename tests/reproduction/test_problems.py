"""Problems: draws of labels, and what methods share, against plain computations."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from experiment_kit import blobs
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.reproduction import problems
from manifoldknn.reproduction.problems import SYNTHETIC, Problem, drawn, synthetic


def test_draws_follow_the_stated_recipe():
    truth = np.array([1, 0, 1, 2, 0, 2, 1, 2, 0, 0])
    y = drawn(truth, 2, seed=7)
    rng = np.random.default_rng(7)
    for c in range(3):
        chosen = rng.choice([i for i in range(10) if truth[i] == c], 2, replace=False)
        assert sorted(np.flatnonzero(y == c)) == sorted(chosen)
    assert np.sum(y < 0) == 4
    assert (y[y >= 0] == truth[y >= 0]).all()


def test_a_class_with_too_few_rows_is_refused():
    with pytest.raises(ValueError, match="larger sample"):
        drawn(np.array([0, 0, 1]), 2, seed=0)


@pytest.mark.parametrize("protocol", ["b1", "b3", "b10", "r3", "r10"])
def test_draws_are_those_of_the_design(protocol):
    truth = np.random.default_rng(1).choice(4, 300, p=[0.4, 0.3, 0.2, 0.1])
    rng, m = np.random.default_rng(5), int(protocol[1:])
    rows = [np.flatnonzero(truth == c) for c in range(4)]
    if protocol[0] == "b":
        chosen = np.concatenate([rng.choice(of_class, m, replace=False) for of_class in rows])
    else:
        one = np.array([rng.choice(of_class) for of_class in rows])
        others = np.setdiff1d(np.arange(300), one)
        chosen = np.concatenate([one, rng.choice(others, (m - 1) * 4, replace=False)])
    y = drawn(truth, protocol, 5)
    assert set(np.flatnonzero(y >= 0)) == set(chosen)
    assert len(chosen) == 4 * m
    assert (y[chosen] == truth[chosen]).all()


def test_neighbours_found_before_change_no_answer():
    problem = blobs(spread=3.0)
    for vote in ("classes", "neighbors"):
        y = drawn(problem.truth, "r3", 2)
        fresh = ManifoldKNNClassifier(vote=vote).fit(problem.X, y)
        found = problem.fitted(ManifoldKNNClassifier(vote=vote), y)
        np.testing.assert_array_equal(found.label_distributions_, fresh.label_distributions_)


def test_neighbours_and_spacing():
    problem = blobs(60)
    search = NearestNeighbors(n_neighbors=31, algorithm="brute").fit(problem.X)
    distances, indices = search.kneighbors(problem.X)
    np.testing.assert_array_equal(problem.near.indices, indices[:, 1:])
    np.testing.assert_allclose(problem.spacing, np.median(distances[:, 7]))
    assert problem.linked(4).indices.shape == (60, 4)


def test_few_samples_have_few_neighbours():
    problem = Problem(np.arange(5.0)[:, None] ** 2, np.array([0, 0, 1, 1, 1]))
    assert problem.near.indices.shape == (5, 4)
    np.testing.assert_allclose(problem.spacing, np.median(problem.near.distances[:, 3]))
    assert problem.spreading_graph(7).shape == (5, 5)


@pytest.mark.parametrize("n_neighbors", [7, 10])
def test_the_spreading_graph_is_that_of_scikit_learn(n_neighbors):
    problem = blobs(60)
    expected = kneighbors_graph(problem.X, n_neighbors, mode="connectivity", include_self=True)
    found = problem.spreading_graph(n_neighbors)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_synthetic_sets_are_made_once():
    for name in SYNTHETIC:
        assert synthetic(name, 3) is synthetic(name, 3)
        assert synthetic(name, 3).X.shape == (400, 2)
        assert not np.array_equal(synthetic(name, 3).X, synthetic(name, 4).X)


def test_real_sets_are_read_once_and_scaled_if_wished(monkeypatch):
    class Data:
        def __init__(self, scale):
            self.X, self.y = np.eye(4) * (1 if scale else 9), np.array([0, 0, 1, 1])

    asked = []

    def load(name, scale):
        asked.append((name, scale))
        return Data(scale)

    monkeypatch.setattr(problems, "load_paper", load)
    problems.real.cache_clear()
    try:
        assert problems.real("usps") is problems.real("usps")
        assert problems.real("usps").X.max() == 1
        assert problems.real("usps", scaled=False).X.max() == 9
        assert asked == [("usps", True), ("usps", False)]
    finally:
        problems.real.cache_clear()
