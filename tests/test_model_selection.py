"""Folds of few labels, and grid searches over them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.semi_supervised import LabelSpreading

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.datasets import make_two_circles
from manifoldknn.exceptions import TooFewLabelsError
from manifoldknn.model_selection import SemiSupervisedSplit, TransductiveClassifier, tuned


@st.composite
def few_labels(draw):
    counts = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.full(7, -1)])
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y)


@settings(max_examples=80, deadline=None)
@given(few_labels(), st.integers(2, 6), st.integers(0, 5))
def test_folds(y, n_splits, seed):
    cv = SemiSupervisedSplit(n_splits, random_state=seed)
    labeled = np.flatnonzero(y >= 0)
    if len(labeled) < n_splits:
        with pytest.raises(TooFewLabelsError, match=f"n_splits={n_splits}"):
            list(cv.split(y, y))
        return
    folds = list(cv.split(y[:, None], y))
    assert len(folds) == cv.get_n_splits() == n_splits
    np.testing.assert_array_equal(np.sort(np.concatenate([t for _, t in folds])), labeled)
    for train, test in folds:
        assert len(test) > 0
        assert (y[test] >= 0).all()
        assert set(np.flatnonzero(y < 0)) <= set(train)  # always in the graph
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(len(y)))
        assert set(y[train]) == set(y)  # no class vanishes
        for c in range(y.max() + 1):  # stratified
            share = np.sum(y == c) / n_splits
            assert np.floor(share) <= np.sum(y[test] == c) <= np.ceil(share)
    for (a, b), (c, d) in zip(folds, cv.split(y, y)):  # seeded
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_seeds_differ_and_generators_go_on():
    y = np.tile([0, 1, -1], 20)

    def tests(cv):
        return [test.tolist() for _, test in cv.split(y, y)]

    assert tests(SemiSupervisedSplit(random_state=0)) != tests(SemiSupervisedSplit(random_state=1))
    shared = SemiSupervisedSplit(random_state=np.random.RandomState(0))
    assert tests(shared) != tests(shared)


@pytest.mark.parametrize("marker", [None, "", "?"])
def test_other_markers(marker):
    y = ["a", "a", "b", "b", marker, marker]
    cv = SemiSupervisedSplit(unlabeled="?" if marker == "?" else "auto")
    for train, test in cv.split(y, y):
        assert {4, 5} <= set(train.tolist())
        assert sorted(y[i] for i in test) == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 1, -1], "y has a single label of class 1: once hidden"),
        (["a", "b", None, None], "single label of class 'a', 'b'"),
        ([-1, -1, -1], "y has no labelled sample"),
        (None, "y to be passed"),
    ],
)
def test_impossible_folds(y, message):
    with pytest.raises(ValueError, match=message):
        list(SemiSupervisedSplit().split(np.zeros((4, 1)) if y is None else y, y))


@pytest.mark.parametrize("n_splits", [1, 0, 2.0, "2", None, True])
def test_bad_n_splits(n_splits):
    with pytest.raises(ValueError, match=r"n_splits=.* must be a whole number, at least 2"):
        list(SemiSupervisedSplit(n_splits).split([0, 0, 1, 1], [0, 0, 1, 1]))


def test_x_and_y_of_different_lengths():
    with pytest.raises(ValueError, match="X has 3 rows, but y has 4 entries"):
        list(SemiSupervisedSplit().split(np.zeros((3, 1)), [0, 0, 1, 1]))


def test_repr_and_clone():
    cv = SemiSupervisedSplit(3, random_state=5)
    assert "n_splits=3" in repr(cv)
    assert "random_state=5" in repr(cv)
    search = clone(GridSearchCV(ManifoldKNNClassifier(), {"sigma": [1.0]}, cv=cv))
    assert search.cv.n_splits == 3


class Remembering(ClassifierMixin, BaseEstimator):
    """Notes what it is shown; answers 0."""

    seen: list = []  # noqa: RUF012 - shared by clones, for the test to read

    def fit(self, X, y):
        self.classes_ = np.unique(y[y >= 0])
        self.transduction_ = np.zeros(len(X), dtype=int)
        Remembering.seen.append((np.asarray(X).ravel().astype(int), np.asarray(y)))
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_every_fit_of_a_search_sees_all_rows_and_no_tested_label():
    y = np.random.default_rng(0).permutation(np.tile([0, 0, 1, 1, -1, -1], 5))
    X = np.arange(len(y))[:, None]
    Remembering.seen.clear()
    cv = SemiSupervisedSplit(4)
    cross_validate(TransductiveClassifier(Remembering()), X, y, cv=cv, error_score="raise")
    tests = [test for _, test in cv.split(X, y)]
    assert len(Remembering.seen) == 4
    for (rows, shown), test in zip(Remembering.seen, tests):
        np.testing.assert_array_equal(np.sort(rows), np.arange(len(y)))
        expected = y.copy()
        expected[test] = -1
        np.testing.assert_array_equal(shown, expected[rows])


def labelled_circles(per_class, seed=0, **options):
    X, truth, _ = make_two_circles(200, random_state=seed, **options)
    rng = np.random.default_rng(seed)
    y = np.full(len(X), -1)
    for c in (0, 1):
        y[rng.choice(np.flatnonzero(truth == c), per_class, replace=False)] = c
    return X, truth, y


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("wrapped", [True, False])
def test_grid_search_finds_what_a_loop_finds(wrapped, n_jobs):
    X, _, y = labelled_circles(8)
    sigmas, cv = [0.02, 0.1, 3.0], SemiSupervisedSplit(4, random_state=1)
    clf = ManifoldKNNClassifier(3)
    asked, name = (TransductiveClassifier(clf), "estimator__sigma") if wrapped else (clf, "sigma")
    search = GridSearchCV(asked, {name: sigmas}, cv=cv, n_jobs=n_jobs, error_score="raise")
    search.fit(X, y)
    means = []
    for sigma in sigmas:
        shares = []
        for train, test in cv.split(X, y):
            model = ManifoldKNNClassifier(3, sigma=sigma)
            if wrapped:
                hidden = y.copy()
                hidden[test] = -1
                answer = model.fit(X, hidden).transduction_[test]
            else:
                answer = model.fit(X[train], y[train]).predict(X[test])
            shares.append(np.mean(answer == y[test]))
        means.append(np.mean(shares))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert search.best_params_[name] == sigmas[int(np.argmax(means))]


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (ManifoldKNNClassifier(1, graph="full"), {"sigma": [10.0, 0.05]}),
        (GeodesicKNNClassifier(1), {"graph_neighbors": [199, 6]}),
        (LabelSpreading(kernel="rbf", max_iter=300), [{"gamma": [0.001]}, {"gamma": [100.0]}]),
    ],
    ids=["ours", "geodesic", "LabelSpreading"],
)
def test_tuned_finds_the_better_of_two(estimator, grid):
    X, truth, y = labelled_circles(7, n_bridges=0)
    choice = tuned(estimator, grid, X, y)
    (name, better) = next(iter((grid[-1] if isinstance(grid, list) else grid).items()))
    assert choice.params == {name: better[-1]}
    assert choice.estimator.get_params()[name] == better[-1]
    assert choice.error < 0.1
    assert choice.why_default == ""
    assert np.mean(choice.estimator.fit(X, y).transduction_ == truth) > 0.85


def test_where_folds_are_impossible_the_default_stays_and_says_why():
    X, _, y = labelled_circles(1)
    choice = tuned(ManifoldKNNClassifier(3), {"sigma": [0.1, 1.0]}, X, y)
    assert choice.params == {}
    assert np.isnan(choice.error)
    assert "single label of class 0, 1" in choice.why_default
    assert choice.estimator.get_params() == ManifoldKNNClassifier(3).get_params()


def test_of_equal_ones_the_first_wins():
    X, _, y = labelled_circles(4)
    for order in ([0.05, 0.051], [0.051, 0.05]):
        assert tuned(ManifoldKNNClassifier(1), {"sigma": order}, X, y).params["sigma"] == order[0]


def test_supervised_labels_may_be_minus_one():
    X, truth, _ = labelled_circles(3)
    labels = np.where(truth == 0, -1, 1)
    grid = {"sigma": ["auto"]}
    choice = tuned(ManifoldKNNClassifier(unlabeled=None), grid, X, labels, transductive=True)
    assert choice.error < 0.1
