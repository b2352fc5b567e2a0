"""Wrong labels are found."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, find_label_errors
from manifoldknn.hidden import hidden_votes


@pytest.fixture(scope="module")
def spoiled():
    """Digits with 20 labels per class, a tenth of them wrong."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    y = np.full(len(X), -1)
    for c in range(10):
        y[rng.choice(np.flatnonzero(truth == c), 20, replace=False)] = c
    wrong = rng.choice(np.flatnonzero(y >= 0), 20, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, 20)) % 10
    frame = pd.DataFrame(X / 16, index=[f"row{i}" for i in range(len(X))])
    frame.columns = frame.columns.astype(str)
    return ManifoldKNNClassifier().fit(frame, y), wrong, truth, y


def test_most_suspicious_are_wrong(spoiled):
    clf, wrong, truth, y = spoiled
    found = find_label_errors(clf)
    assert np.isin(found.rows[:20], wrong).mean() >= 0.7
    np.testing.assert_array_equal(found.given, y[found.rows])
    assert (found.suggested != found.given).all()
    assert (found.suggested[:10] == truth[found.rows[:10]]).mean() >= 0.7


def test_order_and_names(spoiled):
    clf, *_ = spoiled
    found = find_label_errors(clf)
    votes, at = found.votes, np.searchsorted(found.votes.rows, found.rows)
    cleared = votes.second[at].argmax(axis=1) == votes.given[at]
    own = votes.second[at, votes.given[at]]
    lead = found.suggested_share - found.given_share + votes.second[at].max(axis=1) - own
    assert (np.diff(cleared.astype(int)) >= 0).all()
    assert (np.diff(lead[~cleared]) <= 1e-12).all()
    assert (found.suggested_share > found.given_share).all()
    assert list(found) == [f"row{i}" for i in found.rows]
    table = pd.DataFrame(found.to_dict())
    assert len(table) == len(found)
    assert table["id"].tolist() == list(found)
    named = find_label_errors(clf, index=np.arange(1797) + 5000, votes=found.votes)
    np.testing.assert_array_equal(named.ids, found.rows + 5000)


def test_agrees_with_the_votes(spoiled):
    clf, *_ = spoiled
    votes = hidden_votes(clf)
    found = find_label_errors(clf, votes=votes)
    contradicted = votes.rows[votes.found != votes.given]
    assert set(found.rows.tolist()) == set(contradicted.tolist())


def test_nothing_to_find():
    X = np.concatenate([np.arange(20.0), 100 + np.arange(20.0)])[:, None]
    y = np.where(np.arange(40) % 3 == 0, (X[:, 0] > 50).astype(int), -1)
    assert len(find_label_errors(ManifoldKNNClassifier().fit(X, y))) == 0


def test_rows_alone_in_their_class_are_not_accused():
    X = np.arange(12.0)[:, None]
    y = np.full(12, -1)
    y[[0, 2, 4]], y[3] = 0, 1
    assert 3 not in find_label_errors(ManifoldKNNClassifier(graph_neighbors=3).fit(X, y)).rows
