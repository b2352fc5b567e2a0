"""Methods of the experiments against estimators fitted plainly and against literal loops."""

import warnings

import numpy as np
import pytest
from sklearn.semi_supervised import LabelSpreading

from experiment_kit import blobs
from manifoldknn import ManifoldKNNClassifier, constrained_graph, tired_random_walk
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.model_selection import tuned
from manifoldknn.reproduction import methods
from manifoldknn.reproduction.methods import (
    BEYOND,
    DEFAULT,
    GEODESIC_LINKS,
    GUIDED_SVM,
    NEAREST,
    NEIGHBORS,
    OF_THE_PAPER,
    PUBLISHED,
    SPREADING,
    available,
    error_of,
)
from manifoldknn.reproduction.problems import Problem, drawn, synthetic, tuned_sigma


def answers(method, problem, y, k=3, seed=0):
    return methods._ANSWERS[method](problem, y, k, seed)


def test_every_name_has_a_function():
    ours = {PUBLISHED, DEFAULT, NEIGHBORS}
    assert set(methods._ANSWERS) == {*OF_THE_PAPER, GUIDED_SVM, *ours, *BEYOND}
    assert set(NEAREST) < set(OF_THE_PAPER)


@pytest.mark.parametrize(
    "method", [*OF_THE_PAPER, GUIDED_SVM, PUBLISHED, DEFAULT, NEIGHBORS, *SPREADING]
)
@pytest.mark.parametrize("per_class", [1, 3])
def test_methods_answer_everything_and_repeat_themselves(method, per_class):
    problem = blobs(90)
    y = drawn(problem.truth, per_class, 1)
    first = answers(method, problem, y, k=per_class)
    assert first.shape == y.shape
    assert set(np.unique(first)) <= {0, 1, 2}
    np.testing.assert_array_equal(first, answers(method, problem, y, k=per_class))
    assert 100 * np.mean((first != problem.truth)[y < 0]) == error_of(
        method, problem, y, k=per_class, seed=0
    )


def test_labelled_rows_do_not_count_as_errors_or_successes():
    problem = blobs(90)
    y = drawn(problem.truth, 3, 0)
    wrong = (answers("kNN", problem, y) != problem.truth) & (y < 0)
    assert error_of("kNN", problem, y, k=3, seed=0) == 100 * wrong.sum() / 81


def test_knn_is_a_literal_vote():
    problem = blobs(60)
    y = drawn(problem.truth, 4, 2)
    labeled = np.flatnonzero(y >= 0)
    found = answers("kNN", problem, y, k=3)
    for row in np.flatnonzero(y < 0):
        order = np.argsort([np.sum((problem.X[row] - problem.X[j]) ** 2) for j in labeled])
        votes = np.bincount(y[labeled[order[:3]]], minlength=3)
        assert found[row] == np.argmax(votes)


@pytest.mark.parametrize("method", ["SVM", GUIDED_SVM, "NB", "DT"])
def test_supervised_methods_are_tuned_on_the_labelled_rows(method):
    problem = blobs(120, spread=3.0)
    y = drawn(problem.truth, 6, 3)
    labeled = np.flatnonzero(y >= 0)
    baseline = methods.baseline(method, k=5, seed=3)
    choice = tuned(
        baseline.estimator,
        baseline.grid,
        problem.X[labeled],
        y[labeled],
        transductive=False,
        random_state=3,
    )
    expected = choice.estimator.fit(problem.X[labeled], y[labeled]).predict(problem.X)
    found = answers(method, problem, y, seed=3)
    np.testing.assert_array_equal(found[y < 0], expected[y < 0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3])
def test_geodesic_is_the_tuned_estimator(seed, k):
    problem = synthetic("two circles", seed)
    y = drawn(problem.truth, 4, seed)
    grid = {"graph_neighbors": list(GEODESIC_LINKS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choice = tuned(GeodesicKNNClassifier(k), grid, problem.X, y, random_state=seed)
        expected = choice.estimator.fit(problem.X, y).transduction_
    np.testing.assert_array_equal(answers("gkNN", problem, y, k, seed), expected)


def test_geodesic_answers_islands_by_the_nearest_label():
    island = np.linspace(0, 1, 30)
    X = np.concatenate([island, island + 100, island + 205])[:, None]
    truth = np.repeat([0, 1, 1], 30)
    y = np.full(90, -1)
    y[[0, 5, 30, 35]] = truth[[0, 5, 30, 35]]
    found = answers("gkNN", Problem(X, truth), y, k=1)
    np.testing.assert_array_equal(found, truth)


def test_as_published_is_the_full_graph_and_a_dense_inverse():
    problem = blobs(80)
    y = drawn(problem.truth, 3, 1)
    W = constrained_graph(problem.X, y, graph="full", sigma=tuned_sigma(problem))
    P = tired_random_walk(W)
    weights = (P + P.T) / 2
    labeled = np.flatnonzero(y >= 0)
    found = answers(PUBLISHED, problem, y, k=2)
    for row in np.flatnonzero(y < 0):
        order = np.argsort(-weights[row, labeled])[:2]
        votes = np.bincount(y[labeled[order]], weights[row, labeled[order]], minlength=3)
        assert found[row] == np.argmax(votes)


def test_default_is_the_default_and_the_papers_vote_has_k_voters():
    problem = blobs(80, spread=3.0)
    y = drawn(problem.truth, 3, 1)
    expected = ManifoldKNNClassifier().fit(problem.X, y).transduction_
    np.testing.assert_array_equal(answers(DEFAULT, problem, y, k=1), expected)
    for k in (1, 4):
        expected = ManifoldKNNClassifier(k, vote="neighbors").fit(problem.X, y).transduction_
        np.testing.assert_array_equal(answers(NEIGHBORS, problem, y, k=k), expected)


@pytest.mark.parametrize(("name", "settings"), SPREADING.items())
def test_spreading_is_that_of_scikit_learn(name, settings):
    problem = synthetic("knot", 1)
    y = drawn(problem.truth, 3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = LabelSpreading(kernel="knn", **settings).fit(problem.X, y)
    found = answers(name, problem, y)
    np.testing.assert_array_equal(found[y < 0], plain.transduction_[y < 0])


def test_poisson_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda _: None)
    assert available() == tuple(SPREADING)
    monkeypatch.setattr(methods, "find_spec", lambda name: name)
    assert available() == BEYOND
    pytest.importorskip("graphlearning")
    problem = blobs(80)
    y = drawn(problem.truth, 5, 1)
    assert error_of("Poisson", problem, y, k=5, seed=0) < 50


def test_poisson_on_a_graph_of_several_parts():
    """Two lines of each class, far apart: the package's default solver is wrong on half of them."""
    pytest.importorskip("graphlearning")
    rng, n = np.random.default_rng(0), 60
    along = np.sort(rng.random(n))
    lines = [np.column_stack([10 * along, np.full(n, height)]) for height in (0, 5, 10, 15)]
    X = np.concatenate(lines) + rng.normal(0, 0.02, (4 * n, 2))
    y = np.full(4 * n, -1)
    for part, (c, count) in enumerate(((0, 3), (1, 1), (0, 1), (1, 4))):
        y[part * n + rng.choice(n, count, replace=False)] = c
    problem = Problem(X, np.repeat([0, 1, 0, 1], n))
    assert error_of("Poisson", problem, y, k=3, seed=0) == 0
