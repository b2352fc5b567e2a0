"""Arrays as tables."""

import io

import numpy as np
import pytest

from manifoldknn.tables import TableError, open_table

X = np.arange(12.0).reshape(4, 3)


def test_matrix_and_columns(tmp_path):
    labels, names = np.array([1.0, np.nan, 2.0, np.nan]), np.array(["a", "ü", "c", ""])
    np.savez(tmp_path / "a.npz", data=X, y=labels, name=names, other=np.zeros(7))
    table = open_table(tmp_path / "a.npz", "npz")
    assert table.names == ["0", "1", "2", "y", "name"]
    assert table.together == ["0", "1", "2"]
    assert table.n_rows == 4
    assert table.texts(["y", "name"]) == {"y": ["1", "", "2", ""], "name": ["a", "ü", "c", ""]}
    assert table.kind("y") == "number"
    assert table.kind("name") == "text"
    first, name = next(table.chunks(["0", "name"]))
    np.testing.assert_array_equal(first, X[:, 0])
    assert name == ["a", "ü", "c", ""]
    buffer = io.BytesIO()
    predicted = table.like("y", ["1", "2", "2", ""])
    table.write(buffer, {"predicted": predicted, "text": table.like("name", ["p", "q", "r", "s"])})
    buffer.seek(0)
    back = np.load(buffer, allow_pickle=False)
    np.testing.assert_array_equal(back["data"], X)
    np.testing.assert_array_equal(back["other"], np.zeros(7))
    np.testing.assert_array_equal(back["predicted"], [1, 2, 2, np.nan])
    assert back["text"].tolist() == ["p", "q", "r", "s"]


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(np.int8))
    table = open_table(tmp_path / "a.npy", "npy")
    assert table.names == ["0", "1", "2"]
    assert table.texts(["2"]) == {"2": ["2", "5", "8", "11"]}
    assert table.like("2", ["1", ""]).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": X, "b": X}, "holds 2 matrices"),
        ({"a": X[0]}, "holds 0 matrices"),
        ({"a": X.astype(str)}, "not numbers"),
        ({"a": X, "1": X[:, 0]}, "two columns named '1'"),
    ],
)
def test_bad_archives(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(TableError, match=words):
        open_table(tmp_path / "a.npz", "npz")


def test_objects_and_rubbish_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(TableError, match="plain arrays"):
        open_table(tmp_path / "a.npy", "npy")
    for form in ("npy", "npz"):
        (tmp_path / "b").write_bytes(b"rubbish")
        with pytest.raises(TableError, match="plain arrays"):
            open_table(tmp_path / "b", form)
