"""Parquet and Arrow files keep types, text and metadata."""

import io
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from manifoldknn.tables.table import TableError, open_table

COLUMNS = {
    "id": ["007", "ü\n", '"', None],
    "big": [2**62 + 1, 1, None, 3],
    "x": [0.5, None, float("nan"), 2.0],
    "ok": [True, None, False, True],
    "day": [date(1970, 1, 2), None, date(1970, 1, 11), date(1969, 12, 31)],
    "time": [datetime(1970, 1, 1, 12), None, datetime(1970, 1, 2), datetime(1970, 1, 3)],
    "price": [Decimal("1.50"), None, Decimal("2.25"), Decimal("3.00")],
    "list": [[1], [2], None, [3]],
    "kind": pa.array(["a", "b", None, "a"]).dictionary_encode(),
}


@pytest.fixture(params=["parquet", "arrow"])
def table(request, tmp_path):
    content = pa.table(COLUMNS).replace_schema_metadata({"who": "me"})
    path = tmp_path / f"a.{request.param}"
    (pq.write_table if request.param == "parquet" else feather.write_feather)(content, path)
    return open_table(path, request.param)


def test_kinds_and_values(table):
    kinds = [table.kind(name) for name in table.names]
    assert kinds == [
        "text", "number", "number", "boolean", "date", "date", "number",
        "holds list<element: int64>", "text",
    ] or kinds[7].startswith("holds list")  # fmt: skip
    names = [n for n in table.names if n != "list"]
    values = dict(zip(names, next(table.chunks(names))))
    assert values["id"] == ["007", "ü\n", '"', ""]
    assert values["kind"] == ["a", "b", "", "a"]
    np.testing.assert_array_equal(values["x"], [0.5, np.nan, np.nan, 2])
    np.testing.assert_array_equal(values["ok"], [1, np.nan, 0, 1])
    np.testing.assert_array_equal(values["day"], [1, np.nan, 10, -1])
    np.testing.assert_array_equal(values["time"], [0.5, np.nan, 1, 2])
    np.testing.assert_array_equal(values["price"], [1.5, np.nan, 2.25, 3])


def test_texts(table):
    texts = table.texts(["big", "x", "kind"])
    assert texts["big"] == [str(2**62 + 1), "1", "", "3"]
    assert texts["x"] == ["0.5", "", "", "2"]


def test_everything_survives(table, tmp_path):
    added = {"predicted": table.like("big", ["1", "", "3", "1"]), "share": np.full(4, 0.5)}
    path = tmp_path / "out"
    with path.open("wb") as file:
        table.write(file, added)
    read = pq.read_table if table._form == "parquet" else feather.read_table
    with path.open("rb") as file:
        back = read(file)
    for name in COLUMNS:
        assert back[name].type == table._table[name].type
        if name != "x":
            assert back[name].to_pylist() == table._table[name].to_pylist()
    assert back["predicted"].type == pa.int64()
    assert back["predicted"].to_pylist() == [1, None, 3, 1]
    assert back.schema.metadata[b"who"] == b"me"


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_rubbish(tmp_path, form):
    (tmp_path / "a").write_bytes(b"rubbish, not a table at all")
    with pytest.raises(TableError, match=f"no {form} file"):
        open_table(tmp_path / "a", form)


def test_text_is_added_beside_text(table):
    buffer = io.BytesIO()
    table.write(buffer, {"p": table.like("id", list("abcd"))})
    assert buffer.tell() > 0


def written(table, added):
    buffer = io.BytesIO()
    table.write(buffer, added)
    buffer.seek(0)
    return pq.read_table(buffer) if table._form == "parquet" else feather.read_table(buffer)


def test_big_whole_numbers_are_kept(tmp_path):
    pq.write_table(pa.table({"y": pa.array([2**64 - 1, 1, None], pa.uint64())}), tmp_path / "a")
    table = open_table(tmp_path / "a", "parquet")
    texts = table.texts(["y"])["y"]
    assert texts == [str(2**64 - 1), "1", ""]
    back = written(table, {"new": table.like("y", texts)})
    assert back["new"].to_pylist() == [2**64 - 1, 1, None]
    back = written(table, {"new": table.like("y", ["3", "4", ""])})
    assert back["new"].type == pa.int64()


def test_types_of_labels(table):
    kinds = [table.column_type(name) for name in ("id", "big", "x", "ok", "price", "kind")]
    assert kinds == ["text", "whole", "number", "text", "decimal", "text"]
    assert table.like("price", ["1.50", ""]).tolist() == [Decimal("1.50"), None]
    assert table.typed("whole", ["a", ""]).tolist() == ["a", ""]


def test_a_column_of_nulls_reads_as_empty_cells(tmp_path):
    pq.write_table(pa.table({"n": pa.nulls(3), "x": [1, 2, 3]}), tmp_path / "a")
    table = open_table(tmp_path / "a", "parquet")
    assert table.kind("n") == "text"
    assert next(table.chunks(["n"])) == [["", "", ""]]


def test_the_index_of_a_pandas_frame(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=pd.Index([5, 9, 7], name="row"))
    frame.to_parquet(tmp_path / "a")
    assert list(open_table(tmp_path / "a", "parquet").index_names) == ["row"]
    frame.reset_index(drop=True).to_parquet(tmp_path / "b")
    assert list(open_table(tmp_path / "b", "parquet").index_names) == []
    content = pa.table({"x": [1]}).replace_schema_metadata({"pandas": "no JSON"})
    pq.write_table(content, tmp_path / "c")
    assert list(open_table(tmp_path / "c", "parquet").index_names) == []


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_of_polars(tmp_path, form):
    """Its text is of a type of its own, as are the categories and the bytes."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"id": ["007", "ü", None], "raw": ["é".encode(), b"", None], "kind": ["x", "y", "x"]}
    ).with_columns(kind=pl.col("kind").cast(pl.Categorical))
    path = tmp_path / "a"
    (frame.write_parquet if form == "parquet" else frame.write_ipc)(path)
    table = open_table(path, form)
    assert [table.kind(name) for name in ("id", "kind")] == ["text", "text"]
    assert table.kind("raw").startswith("holds ")
    assert next(table.chunks(["id", "kind"])) == [["007", "ü", ""], ["x", "y", "x"]]
    texts = table.texts(["id", "raw", "kind"])
    assert texts == {"id": ["007", "ü", ""], "raw": ["é", "", ""], "kind": ["x", "y", "x"]}
    back = written(table, {"new": table.like("id", ["a", "b", "c"])})
    assert back["new"].to_pylist() == ["a", "b", "c"]
    for name in frame.columns:
        assert back[name].to_pylist() == frame[name].to_list()


def test_bytes_are_text_in_utf8_or_refused(tmp_path):
    columns = {
        "fixed": pa.array([b"ab", None], pa.binary(2)),
        "large": pa.array([b"a", b"b"], pa.large_binary()),
        "coded": pa.array([b"a", b"a"]).dictionary_encode(),
        "wrong": pa.array([b"\xff", b"b"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a")
    table = open_table(tmp_path / "a", "parquet")
    texts = table.texts(["fixed", "large", "coded"])
    assert texts == {"fixed": ["ab", ""], "large": ["a", "b"], "coded": ["a", "a"]}
    with pytest.raises(TableError, match="not text in UTF-8"):
        table.texts(["wrong"])
