"""Frames of three libraries and arrays are tables."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from manifoldknn.tables.formats.frame import FrameTable
from manifoldknn.tables.table import TableError

DAYS = [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)]
COLUMNS = {
    "number": [1.5, None, 3.0],
    "whole": [1, 2, None],
    "text": ["x", None, "<0,5"],
    "boolean": [True, None, False],
    "date": DAYS,
}
KINDS = {"number": "number", "whole": "number", "text": "text", "boolean": "boolean"}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
    ],
    ids=["pandas", "pandas, nullable", "polars", "pyarrow", "batch"],
)
def test_kinds_and_cells(frame):
    table = FrameTable(frame)
    assert table.names == list(COLUMNS)
    assert table.n_rows == 3
    assert {name: table.kind(name) for name in KINDS} == KINDS
    assert table.kind("date") == "date"
    number, whole, text, boolean, date = next(table.chunks(table.names))
    np.testing.assert_array_equal(number, [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(whole, [1, 2, np.nan])
    assert text == ["x", "", "<0,5"]
    np.testing.assert_array_equal(boolean, [1, np.nan, 0])
    np.testing.assert_array_equal(date, [19723, np.nan, 19725])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, "<0,5", None], ["1", "<0,5", ""]),
        ([1.0, "a", float("nan")], ["1", "a", ""]),
        ([True, 2.5, pd.NA], ["True", "2.5", ""]),
    ],
)
def test_mixed_cells_are_text(cells, expected):
    column = np.empty(3, dtype=object)
    column[:] = cells
    for frame in (pd.DataFrame({"x0": column}), column[:, None]):
        table = FrameTable(frame)
        assert table.kind("x0") == "text"
        assert table.texts(["x0"]) == {"x0": expected}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pd.to_timedelta([1, 2, 3], unit="D"), "holds duration"),
        ([[1], [2], None], "holds list"),
        (pd.period_range("2024-01", periods=3, freq="M"), "holds"),
    ],
)
def test_what_cannot_be_a_feature_says_what_it_is(column, words):
    assert FrameTable(pd.DataFrame({"a": column})).kind("a").startswith(words)


def test_names():
    assert FrameTable(np.eye(3)).names == ["x0", "x1", "x2"]
    assert FrameTable([["1", "a"], ["2", "b"]]).kind("x0") == "text"
    assert FrameTable(pd.DataFrame({5: [1, 2]})).names == ["5"]
    with pytest.raises(TableError, match="two columns named 'a'"):
        FrameTable(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TableError, match=r"lazy frame: call collect\(\)"):
        FrameTable(pl.LazyFrame(COLUMNS))
