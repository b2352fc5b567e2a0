"""Rows are called what the user calls them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from manifoldknn import ManifoldKNNClassifier, find_label_errors, inspect, suggest
from manifoldknn.model.hidden_labels import hidden_labels
from manifoldknn.model.rowids import check_all_walked, fitted_row_ids, row_ids

X = np.arange(8.0)[:, None]
y = [0, -1, -1, -1, -1, -1, -1, 1]


def test_frames_indices_and_sequences():
    names = list("abcdefgh")
    frame = pd.DataFrame(X, index=names)
    for given in (frame, frame[0], frame.index, names, pl.Series(names), np.array(names)):
        assert row_ids(given, 8).tolist() == names
    assert row_ids(None, 3).tolist() == [0, 1, 2]


def test_several_levels_are_tuples():
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    assert row_ids(index, 4).tolist() == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


@pytest.mark.parametrize("names", [["a"], [["a"] * 8], list(range(9))])
def test_wrong_length(names):
    with pytest.raises(ValueError, match="one name for each of the 8 fitted rows"):
        row_ids(names, 8)


def test_fitted_frame_names_its_rows():
    frame = pd.DataFrame({"x": X[:, 0]}, index=np.arange(100, 108))
    clf = ManifoldKNNClassifier(graph_neighbors=3).fit(frame, y)
    assert fitted_row_ids(clf).tolist() == list(range(100, 108))
    assert fitted_row_ids(clf, list("abcdefgh"))[0] == "a"
    assert fitted_row_ids(clf.fit(X, y)).tolist() == list(range(8))


def test_rows_that_the_graph_does_not_have_yet_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    clf = ManifoldKNNClassifier().fit(X[:50], [0, 1] + [-1] * 48)
    check_all_walked(clf)
    clf.partial_fit(X[50:], refresh=False)
    for function in (suggest, find_label_errors, inspect, hidden_labels):
        with pytest.raises(ValueError, match=r"10 rows came .* call refresh\(\) first"):
            function(clf)
    clf.refresh()
    assert len(suggest(clf, 3)) == 3
    assert inspect(clf).n_rows == 60


def test_a_grown_model_numbers_its_rows():
    values = np.random.default_rng(0).normal(size=(30, 2))
    frame = pd.DataFrame(values, index=[f"r{i}" for i in range(30)])
    clf = ManifoldKNNClassifier().fit(frame, [0, 1] + [-1] * 28)
    assert fitted_row_ids(clf)[3] == "r3"
    clf.partial_fit(frame[:2] + 0.1)
    assert fitted_row_ids(clf).tolist() == list(range(32))
