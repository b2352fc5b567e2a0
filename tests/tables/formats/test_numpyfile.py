"""Arrays as tables."""

import contextlib
import io
import zipfile

import numpy as np
import pytest

from manifoldknn.tables.table import TableError, open_table

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


@pytest.mark.parametrize("name", ["file", "allow_pickle", "self"])
def test_arrays_of_any_name(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for member, array in {"X": X, name: np.arange(4)}.items():
            with archive.open(f"{member}.npy", "w") as entry:
                np.lib.format.write_array(entry, array)
    table = open_table(tmp_path / "a.npz", "npz")
    buffer = io.BytesIO()
    table.write(buffer, {"predicted": np.ones(4)})
    buffer.seek(0)
    back = np.load(buffer)
    np.testing.assert_array_equal(back[name], np.arange(4))
    assert set(back.files) == {"X", name, "predicted"}


def test_names_of_all_arrays_are_taken(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, predicted=np.zeros(9), y=np.ones(4))
    assert open_table(tmp_path / "a.npz", "npz").taken_names == {
        "X", "predicted", "y", "0", "1", "2"
    }  # fmt: skip


def test_the_other_format(tmp_path):
    np.savez(tmp_path / "a", X=X)
    np.save(tmp_path / "b.npy", X)
    with pytest.raises(TableError, match="say --format npz"):
        open_table(tmp_path / "a.npz", "npy")
    with pytest.raises(TableError, match="say --format npy"):
        open_table(tmp_path / "b.npy", "npz")


def test_damage_anywhere_is_one_kind_of_error(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).random((50, 4)), y=np.arange(50))
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + b"\xff\x00\xfe" + content[at + 3 :])
        with contextlib.suppress(TableError):
            open_table(path, "npz")
    path.write_bytes(content[:200] + bytes(200) + content[400:])
    with pytest.raises(TableError, match="plain arrays"):
        open_table(path, "npz")


def test_a_member_that_is_no_array(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(TableError, match=r"'readme.txt' is no array"):
        open_table(tmp_path / "a.npz", "npz")


def test_big_whole_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([2**63, 1, 2, 3], dtype=np.uint64))
    table = open_table(tmp_path / "a.npz", "npz")
    assert table.like("y", [str(2**63), "1", "2", "3"]).tolist() == [2**63, 1, 2, 3]
    assert table.like("y", [str(2**63), ""]).tolist() == [str(2**63), ""]
