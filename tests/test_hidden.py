"""A hidden label leaves nothing behind: compared with fits that never saw it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.hidden import fold_numbers, hidden_votes
from strategies import problems

pytestmark = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def refitted(clf, X, y, hidden):
    """Fit from scratch without some labels, with the kernel width of the full fit."""
    without = np.array(y)
    without[hidden] = -1
    params = clf.get_params() | {"sigma": clf.sigma_, "tol": 1e-6}
    return ManifoldKNNClassifier(**params).fit(X, without)


def assert_like_refitting(clf, X, y, votes, folds):
    for fold in range(votes.n_folds):
        group = np.flatnonzero(folds == fold)
        again = refitted(clf, X, y, votes.rows[group])
        columns = np.searchsorted(clf.classes_, again.classes_)
        expected = np.zeros((len(group), len(clf.classes_)))
        expected[:, columns] = again.label_distributions_[votes.rows[group]]
        reached = ~again.unreached_[votes.rows[group]]
        np.testing.assert_allclose(
            votes.shares[group][reached], expected[reached], atol=2e-4, rtol=1e-3
        )
        assert (votes.shares[group][~reached] == 0).all()
        sure = np.sort(expected, axis=1)[:, -2:] @ [-1, 1] > 1e-2 if expected.shape[1] > 1 else True
        found = clf.classes_[votes.found[group]]
        assert (found == again.transduction_[votes.rows[group]])[sure].all()


@settings(max_examples=60, deadline=None)
@given(
    problems(max_samples=30, ties=False, min_classes=2),
    st.sampled_from(["pruned", "union", "full"]),
    st.sampled_from([0, 2]),
    st.sampled_from([2, 3, 100]),
    st.integers(1, 8),
)
def test_equals_refitting_without_the_labels(problem, graph, depth, n_folds, n_neighbors):
    X, y = problem.X, problem.y
    clf = ManifoldKNNClassifier(
        n_neighbors, graph=graph, graph_neighbors=5, tree_depth=depth, alpha=0.9, tol=1e-6
    ).fit(X, y)
    votes = hidden_votes(clf, n_folds=n_folds)
    folds = fold_numbers(y[votes.rows], min(n_folds, len(votes.rows)), 0)
    if votes.n_folds > 1:
        assert_like_refitting(clf, X, y, votes, folds)


@pytest.mark.parametrize("per_class", [3, 15, 60])
def test_equals_refitting_on_digits(per_class):
    """One column at a time, blocks of columns, and the factorised graph."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900] / 16, truth[:900]
    y = np.full(900, -1)
    for c in range(10):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    clf = ManifoldKNNClassifier().fit(X, y)
    votes = hidden_votes(clf, n_folds=3)
    for fold in range(3):
        group = np.flatnonzero(fold_numbers(y[votes.rows], 3, 0) == fold)
        again = refitted(clf, X, y, votes.rows[group])
        expected = again.label_distributions_[votes.rows[group]]
        np.testing.assert_allclose(votes.shares[group], expected, atol=5e-3)
    assert votes.accuracy > 0.9


def test_a_label_that_would_leak():
    """A row in the midst of the other class: its must-links must not give it its label back."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 20])
    y = np.full(80, -1)
    y[:5], y[40:45] = 0, 1
    y[5] = 1
    clf = ManifoldKNNClassifier().fit(X, y)
    assert clf.label_distributions_[5, 1] > 0.5  # with its links it believes itself
    votes = hidden_votes(clf)
    at = votes.rows.tolist().index(5)
    assert votes.found[at] == 0
    assert votes.shares[at, 0] > 0.99
    assert votes.n_folds == 11


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=60),
    st.integers(2, 8),
    st.integers(0, 100),
)
def test_folds_are_even_and_no_class_vanishes(codes, n_folds, seed):
    codes = np.array(codes)
    folds = fold_numbers(codes, n_folds, seed)
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    for c in np.unique(codes):
        of_class = np.bincount(folds[codes == c], minlength=n_folds)
        assert of_class.max() - of_class.min() <= 1
        if (codes == c).sum() > 1:
            assert of_class.max() < (codes == c).sum()


def test_only_one_of_a_class_is_not_counted():
    X = np.concatenate([np.arange(10.0), 100 + np.arange(10.0)])[:, None]
    y = np.full(20, -1)
    y[[0, 5]], y[12] = 0, 1
    votes = hidden_votes(ManifoldKNNClassifier(graph_neighbors=3).fit(X, y))
    assert votes.alone.tolist() == [False, False, True]
    assert votes.accuracy == 1.0
    y[5] = -1
    lonely = hidden_votes(ManifoldKNNClassifier(graph_neighbors=3).fit(X, y))
    assert np.isnan(lonely.accuracy)


def test_one_label_in_all():
    X, y = np.arange(6.0)[:, None], [0, -1, -1, -1, -1, -1]
    votes = hidden_votes(ManifoldKNNClassifier(graph_neighbors=2).fit(X, y))
    assert votes.found.tolist() == [-1]
    assert np.isnan(votes.accuracy)


@pytest.mark.parametrize("on_unreached", ["nearest", "abstain"])
def test_unreached_once_hidden(on_unreached):
    X = np.concatenate([np.arange(6.0), 1000 + np.arange(6.0)])[:, None]
    y = np.full(12, -1)
    y[[0, 4]], y[7] = 0, 1
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=2, on_unreached=on_unreached)
    votes = hidden_votes(clf.fit(X, y))
    assert votes.shares[2].tolist() == [0, 0]
    assert votes.found[2] == (0 if on_unreached == "nearest" else -1)


@pytest.mark.parametrize("n_folds", [1, 0, -3, 2.5, "5", True])
def test_bad_folds(n_folds):
    clf = ManifoldKNNClassifier(graph_neighbors=2).fit(np.arange(6.0)[:, None], [0, 1] + [-1] * 4)
    with pytest.raises(ValueError, match="n_folds"):
        hidden_votes(clf, n_folds=n_folds)
