"""Rows are called what the user calls them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from manifoldknn import ManifoldKNNClassifier, find_label_errors, inspect, persist, suggest
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


def test_a_grown_model_names_its_rows_if_all_have_names():
    values = np.random.default_rng(0).normal(size=(30, 2))
    frame = pd.DataFrame(values, index=[f"r{i}" for i in range(30)])
    clf = ManifoldKNNClassifier().fit(frame, [0, 1] + [-1] * 28)
    assert fitted_row_ids(clf)[3] == "r3"
    clf.partial_fit(frame[:2] + 0.1)
    assert fitted_row_ids(clf).tolist() == [*frame.index, "r0", "r1"]
    clf.partial_fit(values[:1] + 0.2)
    assert fitted_row_ids(clf).tolist() == list(range(33))


def named_model(index):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["u", "v"], index=index)
    y = np.full(60, -1)
    y[:6] = [0, 1] * 3
    return frame, y, ManifoldKNNClassifier().fit(frame, y)


INDICES = {
    "texts": [f"r{i}" for i in range(60)],
    "shuffled numbers": np.random.default_rng(1).permutation(60),
    "moments": pd.date_range("2024-01-01", periods=60),
    "moments of a zone": pd.date_range("2024-01-01", periods=60, tz="Europe/Zurich"),
    "levels": pd.MultiIndex.from_product([list("abc"), range(20)]),
    "counted": pd.RangeIndex(60),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_rows_have_one_name_everywhere(index):
    """By name on a frame, the same as by number on an array."""
    frame, y, clf = named_model(index)
    plain = ManifoldKNNClassifier().fit(frame.to_numpy(), y)
    found, numbers = suggest(clf, 4), suggest(plain, 4).ids
    assert found.rows.tolist() == numbers.tolist()
    assert list(found) == [*row_ids(frame, 60)[found.rows]]
    for asked in (found, found.ids, list(found.ids)):
        _, _, clf = named_model(index)
        clf.set_labels(asked, [0, 1, 0, 1])
        expected = (
            ManifoldKNNClassifier().fit(frame.to_numpy(), y).set_labels(numbers, [0, 1, 0, 1])
        )
        assert clf.labeled_indices_.tolist() == expected.labeled_indices_.tolist()
        np.testing.assert_array_equal(clf.transduction_, expected.transduction_)
    _, _, clf = named_model(index)
    clf.set_labels(found.ids[0], 1)  # one name by itself
    assert clf.fitted_.labels.codes[found.rows[0]] == 1
    clf.set_labels(np.arange(60) == found.rows[1], 0)  # a mask
    assert clf.fitted_.labels.codes[found.rows[1]] == 0
    names = list(row_ids(frame, 60))
    pairs = {"must_link": [[names[7], names[9]]], "cannot_link": [[names[8], names[20]]]}
    by_name = ManifoldKNNClassifier().fit(frame, y, **pairs).fitted_.links
    assert by_name.must.tolist() == [[7, 9]]
    assert by_name.cannot.tolist() == [[8, 20]]
    assert suggest(frame, 3, must_link=pairs["must_link"]).rows.tolist() == (
        suggest(frame.to_numpy(), 3, must_link=[[7, 9]]).rows.tolist()
    )


def test_a_loaded_model_still_knows_them(tmp_path):
    _, _, clf = named_model(INDICES["texts"])
    persist.save(clf, tmp_path / "a.mknn")
    again = persist.load(tmp_path / "a.mknn").set_labels(["r40", "r7"], [1, 0])
    assert again.labeled_indices_.tolist() == [*range(6), 7, 40]


def test_names_that_mean_no_row():
    frame, y, clf = named_model(INDICES["texts"])
    before = clf.transduction_
    for asked in ([3], ["r3", "q"], [["r3"]]):
        with pytest.raises(ValueError, match=r"indices names row .* no such name.*such as .*r0"):
            clf.set_labels(asked, 1)
    with pytest.raises(ValueError, match="names a row twice"):
        clf.set_labels(["r9", "r9"], 1)
    for pairs in ([["r3"]], ["r3"], [3]):
        with pytest.raises(ValueError, match="must_link must hold pairs, such as"):
            clf.fit(frame, y, must_link=pairs)
    with pytest.raises(ValueError, match="cannot_link names row 'q'"):
        clf.fit(frame, y, cannot_link=[["r3", "q"]])
    with pytest.raises(ValueError, match="rows 'r0' and 'r1'"):
        clf.fit(frame, y, must_link=[["r0", "r1"]])
    with pytest.raises(ValueError, match="cuts rows 'r0' and 'r2' apart"):
        clf.fit(frame, y, cannot_link=[["r0", "r2"]])
    assert clf.transduction_ is before
    twice = ["r0", "r0", *(f"r{i}" for i in range(2, 60))]
    _, _, clf = named_model(twice)
    with pytest.raises(ValueError, match="several of that name"):
        clf.set_labels(["r0"], 1)
    assert clf.set_labels(["r8"], 1).labeled_indices_[-1] == 8


def test_numbers_count_once_rows_came_without_names():
    frame, _, clf = named_model(INDICES["texts"])
    with pytest.warns(UserWarning, match="valid feature names"):
        clf.partial_fit(frame[:3].to_numpy() + 0.01, refresh=True)
    assert suggest(clf, 2).ids.dtype.kind == "i"
    assert clf.set_labels([61], 1).labeled_indices_[-1] == 61
