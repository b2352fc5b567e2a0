"""Unlabelled rows are no class when answers are judged."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from manifoldknn import ManifoldKNNClassifier, TableEncoder
from manifoldknn.exceptions import UnlabeledScoreWarning
from manifoldknn.model_selection import SemiSupervisedSplit

X, TRUTH = load_iris(return_X_y=True)
Y = np.where(np.arange(150) % 5 > 0, -1, TRUTH)


@pytest.fixture(scope="module")
def clf():
    return ManifoldKNNClassifier().fit(X, Y)


def test_only_labelled_rows_count(clf):
    y = np.where(np.arange(150) % 3 > 0, -1, TRUTH)
    judged = y >= 0
    literal = sum(a == b for a, b in zip(clf.predict(X), y) if b != -1) / judged.sum()
    with pytest.warns(UnlabeledScoreWarning, match="100 of 150 rows .*SemiSupervisedSplit"):
        assert clf.score(X, y) == literal
    assert clf.score(X[judged], y[judged]) == literal
    weights = np.random.default_rng(0).random(150)
    right = clf.predict(X)[judged] == y[judged]
    with pytest.warns(UnlabeledScoreWarning):
        weighted = clf.score(X, y, sample_weight=weights)
    assert weighted == pytest.approx(np.average(right, weights=weights[judged]))


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_any_mark_will_do(missing):
    names = np.array(["u", "v", "w"], dtype=object)[TRUTH]
    y = names.copy()
    y[Y < 0] = missing
    clf = ManifoldKNNClassifier().fit(X, y)
    with pytest.warns(UnlabeledScoreWarning, match="120 of 150"):
        assert clf.score(X, y) == clf.score(X[Y >= 0], y[Y >= 0])
    assert clf.score(X, names) == np.mean(clf.predict(X) == names)


def test_a_class_that_nobody_learned_is_wrong(clf):
    assert clf.score(X[:4], [0, 0, 7, 7]) == 0.5


def test_nothing_to_score(clf):
    with pytest.raises(ValueError, match=r"y has no label.*SemiSupervisedSplit"):
        clf.score(X[:3], [-1, -1, -1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.score(X[:3], [0, 0])
    with pytest.raises(ValueError, match="target y is None"):
        clf.score(X[:3], None)


def test_plain_cross_validation_tests_labelled_rows():
    folds = KFold(3, shuffle=True, random_state=0)
    with pytest.warns(UnlabeledScoreWarning, match="SemiSupervisedSplit"):
        found = cross_val_score(ManifoldKNNClassifier(), X, Y, cv=folds)
    expected = []
    for train, test in folds.split(X):
        test = test[Y[test] >= 0]
        answers = ManifoldKNNClassifier().fit(X[train], Y[train]).predict(X[test])
        expected.append(np.mean(answers == Y[test]))
    np.testing.assert_allclose(found, expected)
    model = make_pipeline(TableEncoder(), ManifoldKNNClassifier())
    scores = cross_val_score(model, pd.DataFrame(X), Y, cv=SemiSupervisedSplit())
    assert scores.min() > 0.8
