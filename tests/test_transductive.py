"""Asking with the asked rows in the graph: against fitting on both by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from frames import NAMED_POLARS
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.model_selection import SemiSupervisedSplit, TransductiveClassifier

EXPECTED_FAILURES = {
    "check_classifiers_classes": "-1 is one of its classes; here it marks unlabelled rows",
    "check_methods_subset_invariance": "rows asked together are learnt from together",
    "check_methods_sample_order_invariance": "equal votes may fall otherwise in another order",
}


@parametrize_with_checks(
    [TransductiveClassifier(LabelSpreading(kernel="knn"))],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_sklearn_check(estimator, check):
    check(estimator)


def moons(n=120, per_class=4):
    X, truth = make_moons(n, noise=0.08, random_state=0)
    y = np.full(n, -1)
    for c in (0, 1):
        y[np.flatnonzero(truth == c)[:per_class]] = c
    return X, truth, y


ESTIMATORS = [
    ManifoldKNNClassifier(3),
    GeodesicKNNClassifier(3),
    LabelSpreading(kernel="knn"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_the_same_as_fitting_on_both_by_hand(estimator):
    X, _, y = moons()
    new = make_moons(15, noise=0.08, random_state=1)[0]
    asked = TransductiveClassifier(estimator).fit(X, y)
    by_hand = estimator.fit(np.vstack([X, new]), np.append(y, np.full(15, -1)))
    np.testing.assert_array_equal(asked.predict(new), by_hand.transduction_[len(X) :])
    np.testing.assert_array_equal(asked.predict_proba(new), by_hand.label_distributions_[len(X) :])
    alone = estimator.fit(X, y)
    np.testing.assert_array_equal(asked.transduction_, alone.transduction_)
    np.testing.assert_array_equal(asked.estimator_.predict(new), alone.predict(new))


def test_hidden_rows_matter():
    """Tested rows that bridge a gap are used as bridges, although they are not trained on."""
    X = np.concatenate([np.arange(0, 4), np.arange(4, 16), np.arange(16, 20), [25.0]])[:, None]
    y = np.full(21, -1)
    y[0], y[20] = 0, 1
    hidden = np.arange(4, 16)
    rest = np.setdiff1d(np.arange(21), hidden)
    clf = GeodesicKNNClassifier(1, graph_neighbors=2)
    # Without the row of 12 in between, paths from 0 go nowhere.
    answers = TransductiveClassifier(clf).fit(X[rest], y[rest]).predict(X[hidden])
    whole = clf.fit(X, y).transduction_[hidden]
    np.testing.assert_array_equal(answers, whole)


def test_pipelines_learn_their_scaling_from_all_rows():
    X, _, y = moons()
    new = 3 * make_moons(15, random_state=1)[0]  # beyond the range of X
    pipe = make_pipeline(MinMaxScaler(), ManifoldKNNClassifier(3))
    found = TransductiveClassifier(pipe).fit(X, y).predict(new)
    both = MinMaxScaler().fit_transform(np.vstack([X, new]))
    by_hand = ManifoldKNNClassifier(3).fit(both, np.append(y, np.full(15, -1)))
    np.testing.assert_array_equal(found, by_hand.transduction_[len(X) :])


@pytest.mark.parametrize("frame_of", [pd.DataFrame, NAMED_POLARS])
def test_frames(frame_of):
    X, _, y = moons()
    frame = frame_of({"u": X[:, 0], "v": X[:, 1]})
    plain = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(X[:100], y[:100])
    framed = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(frame[:100], y[:100])
    np.testing.assert_array_equal(framed.predict(frame[100:]), plain.predict(X[100:]))
    assert framed.feature_names_in_.tolist() == ["u", "v"]
    assert framed.estimator_.feature_names_in_.tolist() == ["u", "v"]


def test_sparse_rows():
    X, _, y = moons()
    plain = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(X[:100], y[:100])
    thin = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(sparse.csr_array(X[:100]), y[:100])
    np.testing.assert_array_equal(thin.predict(sparse.csr_array(X[100:])), plain.predict(X[100:]))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", None], dtype=object),
        np.array(["no", "yes", ""]),
        np.array([5, 7, None], dtype=object),
    ],
    ids=["objects", "strings", "numbers or None"],
)
def test_any_labels_in_cross_validation(labels):
    X, _, y = moons(per_class=10)
    named = labels[y]
    clf = TransductiveClassifier(ManifoldKNNClassifier(3))
    scores = cross_val_score(clf, X, named, cv=SemiSupervisedSplit(5), error_score="raise")
    expected = cross_val_score(clf, X, y, cv=SemiSupervisedSplit(5), error_score="raise")
    np.testing.assert_array_equal(scores, expected)
    assert scores.mean() > 0.9


def test_the_marker_is_the_estimators_own():
    X, _, y = moons()
    clf = ManifoldKNNClassifier(3, unlabeled=-999)
    other = np.where(y < 0, -999, np.array([-1, 4])[y])  # -1 is a class here
    asked = TransductiveClassifier(clf).fit(X, other)
    assert asked.classes_.tolist() == [-1, 4]
    plain = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(X, y)
    new = make_moons(15, random_state=1)[0]
    np.testing.assert_array_equal(asked.predict(new), np.array([-1, 4])[plain.predict(new)])


def test_score_weighs_rows_and_refuses_unlabelled_ones():
    X, truth, y = moons()
    clf = TransductiveClassifier(ManifoldKNNClassifier(3)).fit(X[:100], y[:100])
    wrong = 1 - truth[100:]
    wrong[:5] = truth[100:105]
    weights = np.arange(20)
    expected = accuracy_score(wrong, clf.predict(X[100:]), sample_weight=weights)
    assert clf.score(X[100:], wrong, weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match="cannot be scored"):
        clf.score(X[:100], y[:100])


def test_only_what_the_estimator_offers():
    assert hasattr(TransductiveClassifier(ManifoldKNNClassifier()), "predict_proba")
    assert not hasattr(TransductiveClassifier(LinearSVC()), "predict_proba")


def test_rows_and_labels_of_different_numbers():
    with pytest.raises(ValueError, match="X has 3 rows, but y has 2 entries"):
        TransductiveClassifier(ManifoldKNNClassifier()).fit([[0.0], [1], [2]], [0, 1])
