import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier, persist, suggest
from manifoldknn.exceptions import ManifoldKNNWarning
from manifoldknn.files.row_index import restored_row_index
from manifoldknn.model.rowids import fitted_row_ids

pd = pytest.importorskip("pandas")


def fitted(index):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 6])
    y = np.full(40, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]
    return ManifoldKNNClassifier().fit(pd.DataFrame(X, columns=list("abc"), index=index), y)


@pytest.mark.parametrize(
    "index",
    [
        [f"row «{i}»" for i in range(40)],
        pd.Index(["", "\ud800", *(str(i) * i for i in range(38))], dtype=object),
        range(1000, 1040),
        [i / 7 for i in range(40)],
        pd.date_range("2020-01-01", periods=40, freq="h"),
    ],
    ids=["texts", "odd texts", "numbers", "fractions", "dates"],
)
def test_suggestions_after_loading_are_keyed_as_before(tmp_path, index):
    clf = fitted(index)
    persist.save(clf, tmp_path / "m.mknn")
    again = persist.load(tmp_path / "m.mknn")
    np.testing.assert_array_equal(suggest(again, 5).ids, suggest(clf, 5).ids)
    persist.save(again, tmp_path / "again.mknn")
    assert (tmp_path / "again.mknn").read_bytes() == (tmp_path / "m.mknn").read_bytes()


def test_an_index_that_cannot_be_written_is_told(tmp_path):
    clf = fitted(pd.MultiIndex.from_product([range(4), list("abcdefghij")]))
    with pytest.warns(ManifoldKNNWarning, match="pass index= to suggest"):
        persist.save(clf, tmp_path / "m.mknn")
    assert suggest(persist.load(tmp_path / "m.mknn"), 1).ids.dtype.kind == "i"


@pytest.mark.parametrize(
    "arrays",
    [
        {"row_numbers": np.arange(3)},
        {"row_numbers": np.array([True, False])},
        {"row_moments": np.arange(2.0)},
        {"row_ends": np.array([1, 3]), "row_letters": np.zeros(2, np.int8)},
        {"row_ends": np.array([2, 1]), "row_letters": np.zeros(1, np.int8)},
        {"row_ends": np.array([-1, 2]), "row_letters": np.zeros(2, np.int8)},
        {"row_ends": np.array([1, 2]), "row_letters": np.full(2, -1, np.int8)},
    ],
)
def test_what_cannot_be_an_index_is_refused(arrays):
    with pytest.raises(ValueError):
        restored_row_index(arrays, 2)


def test_the_index_is_kept_when_further_frames_come(tmp_path):
    clf = fitted([f"row {i}" for i in range(40)])
    more = pd.DataFrame(np.eye(3), columns=list("abc"), index=["x", "y", "z"])
    clf.partial_fit(more, refresh=False).partial_fit(more.iloc[:1], [1])
    names = [f"row {i}" for i in range(40)] + ["x", "y", "z", "x"]
    assert fitted_row_ids(clf).tolist() == names
    persist.save(clf, tmp_path / "m.mknn")
    again = persist.load(tmp_path / "m.mknn")
    assert fitted_row_ids(again).tolist() == names
    again.partial_fit(more, refresh=False)
    assert fitted_row_ids(again).tolist() == [*names, "x", "y", "z"]
    with pytest.warns(UserWarning, match="feature names"):
        again.partial_fit(more.to_numpy(), refresh=False)  # rows without names: all are numbered
    assert fitted_row_ids(again).tolist() == list(range(50))


def test_names_of_two_kinds_stay_what_they_are():
    clf = fitted(range(40))
    more = pd.DataFrame(np.eye(3), columns=list("abc"), index=["1", "2", "3"])
    clf.partial_fit(more, refresh=False)
    assert fitted_row_ids(clf).tolist() == [*range(40), "1", "2", "3"]
