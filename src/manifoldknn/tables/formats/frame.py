"""Frames in memory, and arrays whose columns are those of a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from sklearn.utils import check_array

from manifoldknn.base.labels import is_missing
from manifoldknn.tables.formats.arrowfile import ArrowTable
from manifoldknn.tables.table import TableError, number_text

_MIXED = (pa.ArrowException, OverflowError, TypeError, ValueError)


class FrameTable(ArrowTable):
    """A pandas, polars or pyarrow frame; or an array, with columns x0, x1 and so on.

    Cells of a column that mixes types are text, as in a CSV file.
    """

    def __init__(self, frame: Any) -> None:
        self._form = ""
        self._take(_arrow(frame), Path("X"))


def _arrow(frame: Any) -> Any:
    """Return a frame or an array as an Arrow table."""
    if hasattr(frame, "iloc"):  # pandas, whose columns need not have names that are text
        parts = [_column(frame.iloc[:, place]) for place in range(frame.shape[1])]
        return _table([str(name) for name in frame.columns], parts)
    if hasattr(frame, "collect_schema") and not hasattr(frame, "get_columns"):
        raise TableError("X is a lazy frame: call collect() first")
    if hasattr(frame, "get_columns"):  # polars
        return _table(frame.columns, [_column(series) for series in frame.get_columns()])
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
    X = check_array(frame, dtype=None, ensure_all_finite=False, input_name="X")
    return _table([f"x{place}" for place in range(X.shape[1])], map(_column, X.T))


def _table(names: list[str], columns: Iterable[Any]) -> Any:
    # Not from a dictionary, in which two columns of one name would be one.
    return pa.Table.from_arrays(list(columns), names=names)


def _column(values: Any) -> Any:
    """Return a column as an Arrow array, of text if its cells are of several types."""
    try:
        found = values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, None)
    except _MIXED:
        return pa.array([_text(value) for value in values.tolist()], pa.string())
    return found


def _text(value: Any) -> str:
    if is_missing(value):
        return ""
    return number_text(value) if isinstance(value, float) else str(value)
