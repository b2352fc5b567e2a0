"""A hidden label leaves nothing behind: compared with fits that never saw it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.model.fitted import fitted_recipe
from manifoldknn.model.hidden_labels import hidden_labels
from manifoldknn.vote.hidden import (
    HiddenLabels,
    answered_shares,
    fold_numbers,
    hidden_groups,
    hidden_tolerance,
    hidden_weights,
)
from strategies import forced, problems

pytestmark = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def refitted(clf, X, y, hidden):
    """Fit from scratch without some labels, with the numbers of the full fit."""
    without = np.array(y)
    without[hidden] = -1
    params = clf.get_params() | {"sigma": clf.sigma_, "alpha": clf.alpha_, "tol": 1e-6}
    if clf.vote == "classes":
        params["sharpness"] = clf.sharpness_
    return ManifoldKNNClassifier(**params).fit(X, without)


def assert_like_refitting(clf, X, y, found, atol=2e-4):
    for group in hidden_groups(np.asarray(y)):
        again = refitted(clf, X, y, group)
        at = np.searchsorted(found.rows, group)
        reached = ~again.unreached_[group]
        found_there, vote = again.fitted_.walk.similarities.rows(group), clf.fitted_.vote
        b = clf.fitted_.belonging.values.values[group]
        expected = vote.doubted(vote.shares(found_there.logs), found_there.log_scale, b)
        if clf.vote == "neighbors":
            expected = again.label_distributions_[group]
        np.testing.assert_allclose(found.shares[at][reached], expected[reached], atol=atol)
        assert (found.shares[at][~reached] == 0).all()
        assert (found.found[at][~reached] == -1).all()
        ordered = np.sort(np.c_[np.zeros(len(group)), expected], axis=1)
        sure = (ordered[:, -1] - ordered[:, -2] > 1e-2) & reached
        names = clf.classes_[found.found[at]]
        assert (names == again.transduction_[group])[sure].all()


@settings(max_examples=60, deadline=None)
@given(
    problems(max_samples=30, ties=False, min_classes=2),
    st.sampled_from(["pruned", "union", "full"]),
    st.sampled_from([0, 2]),
    st.sampled_from(["classes", "neighbors"]),
    st.integers(1, 8),
)
def test_equals_refitting_without_the_labels(problem, graph, depth, vote, n_neighbors):
    X, y = problem.X, problem.y
    clf = ManifoldKNNClassifier(
        n_neighbors, vote=vote, graph=graph, graph_neighbors=5, tree_depth=depth, tol=1e-6
    ).fit(X, y)
    found = hidden_labels(clf)
    if found is None:
        assert not hidden_groups(y)
        return
    if vote == "classes":
        assert found is clf.hidden_labels_
    assert found.n_folds == len(hidden_groups(y))
    assert_like_refitting(clf, X, y, found)


@pytest.mark.parametrize("way", ["factorise", "iterate", "levels"])
@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_equals_refitting_on_digits(vote, way):
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900] / 16, truth[:900]
    y = np.full(900, -1)
    for c in range(10):
        y[np.flatnonzero(truth == c)[:6]] = c
    with forced(way, coarsest=50):
        clf = ManifoldKNNClassifier(vote=vote).fit(X, y)
        found = hidden_labels(clf)
        assert_like_refitting(clf, X, y, found, atol=2e-2)
    assert found.accuracy > 0.8


def test_a_label_that_would_leak():
    """A row in the midst of the other class: its must-links must not give it its label back."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 20])
    y = np.full(80, -1)
    y[:5], y[40:45] = 0, 1
    y[5] = 1
    for vote in ("classes", "neighbors"):
        clf = ManifoldKNNClassifier(vote=vote).fit(X, y)
        found = hidden_labels(clf)
        at = found.rows.tolist().index(5)
        assert found.found[at] == 0
        assert not found.right[at]
        assert found.n_folds == 5


def test_a_given_sharpness_is_judged_when_somebody_asks():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 3])
    y = np.full(80, -1)
    y[:6], y[40:46] = 0, 1
    auto = ManifoldKNNClassifier().fit(X, y)
    given = ManifoldKNNClassifier(sharpness=auto.sharpness_).fit(X, y)
    assert given.hidden_labels_ is None
    np.testing.assert_allclose(hidden_labels(given).shares, auto.hidden_labels_.shares, rtol=1e-9)
    grown = auto.partial_fit(X[:3] + 0.1, refresh=False)
    with pytest.raises(ValueError, match=r"call refresh\(\) first"):
        hidden_labels(grown)


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


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=60))
def test_groups_hold_every_label_once_but_those_that_are_alone(codes):
    codes = np.array(codes)
    groups = hidden_groups(codes)
    counts = np.bincount(codes[codes >= 0], minlength=1)
    expected = [i for i, code in enumerate(codes) if code >= 0 and counts[code] > 1]
    assert sorted(i for group in groups for i in group.tolist()) == expected
    assert len(groups) == min(5, len(expected))
    for group in groups:
        assert (np.diff(group) > 0).all()
        visible = codes.copy()
        visible[group] = -1
        assert set(visible[visible >= 0]) == set(codes[codes >= 0])


def made(given, found, weights):
    shares = np.full((len(given), len(weights)), 0.1)
    shares[np.arange(len(given)), found] = 0.75
    weights = np.array(weights, dtype=float)
    return HiddenLabels(np.arange(len(given)), np.array(given), shares, weights, 5)


def test_accuracy_weighs_classes_by_their_shares_of_rows():
    hidden = made([0] * 8 + [1] * 2, [0] * 8 + [1, 0], [0.2, 0.8])
    assert hidden.accuracy == pytest.approx(0.2 * 1.0 + 0.8 * 0.5)
    assert [counts.tolist() for counts in hidden.per_class()] == [[8, 2], [8, 1]]
    # A class of which nothing was hidden says nothing.
    alone = made([0] * 4, [0, 0, 0, 1], [0.2, 0.8])
    assert alone.accuracy == pytest.approx(0.75)
    low, high = alone.interval()
    assert low < 0.4
    assert high > 0.95


def test_the_interval_holds_the_accuracy_and_shrinks_with_labels():
    widths = []
    for times in (1, 4, 40):
        hidden = made(
            [0] * 5 * times + [1] * 5 * times,
            ([0] * 4 + [1]) * times + ([1] * 3 + [0] * 2) * times,
            [0.5, 0.5],
        )
        low, high = hidden.interval()
        assert 0 <= low < hidden.accuracy < high <= 1
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]
    low, high = made([0, 1], [0, 1], [0.5, 0.5]).interval()
    assert low < 0.7  # two right labels say little
    nothing = HiddenLabels(np.empty(0, int), np.empty(0, int), np.empty((0, 2)), np.ones(2) / 2, 0)
    assert nothing.interval() == (0.0, 1.0)
    assert np.isnan(nothing.accuracy)
    assert nothing.reliability() == []


def test_reliability_counts_tenths():
    shares = np.array([[0.95, 0.05], [0.85, 0.15], [0.88, 0.12], [1.0, 0.0], [0.0, 0.0]])
    hidden = HiddenLabels(np.arange(5), np.array([0, 0, 1, 0, 0]), shares, np.ones(2) / 2, 5)
    assert hidden.found.tolist() == [0, 0, 0, 0, -1]
    assert hidden.reliability() == [(0.0, 0.1, 1, 0), (0.8, 0.9, 2, 1), (0.9, 1.0, 2, 2)]


def test_weights_of_hidden_rows_are_those_of_the_walk_from_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.full(60, -1)
    y[:20] = np.arange(20) % 2
    clf = ManifoldKNNClassifier(vote="neighbors", tol=1e-9).fit(X, y)
    hidden = np.array([2, 7, 11])
    found = hidden_weights(fitted_recipe(clf), y, hidden, clf.alpha_, tol=1e-9, max_iter=1000)
    again = refitted(clf, X, y, hidden)
    assert np.isneginf(found[:, hidden]).all()
    rest = np.setdiff1d(np.arange(20), hidden)
    expected = again.fitted_.walk.similarities.logarithms()[hidden]
    np.testing.assert_allclose(found[:, rest], expected, atol=1e-5)


def test_small_matters():
    assert answered_shares(np.array([0, 0, 2, -1]), 3).tolist() == [2 / 3, 0.0, 1 / 3]
    assert answered_shares(np.array([-1]), 2).tolist() == [0.0, 0.0]
    assert [hidden_tolerance(tol) for tol in (1e-9, 1e-3, 0.1)] == pytest.approx([1e-8, 1e-2, 0.1])


def test_links_by_hand_do_not_give_hidden_labels_back():
    """Random labels on noise cannot be found again, whatever else is told of the same pairs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.full(300, -1)
    y[:40] = rng.integers(2, size=40)
    pairs = [(i, j) for i in range(40) for j in range(i) if y[i] == y[j]]
    plain = ManifoldKNNClassifier().fit(X, y)
    linked = ManifoldKNNClassifier().fit(X, y, must_link=pairs)
    assert linked.hidden_labels_.accuracy == plain.hidden_labels_.accuracy < 0.75
    assert linked.sharpness_ == pytest.approx(plain.sharpness_, rel=1e-3)


def test_islands_of_one_class_teach_nothing():
    X = np.concatenate([np.zeros((20, 1)), np.full((20, 1), 1e6)]) + np.arange(40)[:, None] * 0.01
    y = np.full(40, -1)
    y[[0, 1, 2]], y[[20, 21, 22]] = 0, 1
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=3).fit(X, y)
    assert not clf.calibrated_
    assert clf.hidden_labels_.accuracy == 1.0
