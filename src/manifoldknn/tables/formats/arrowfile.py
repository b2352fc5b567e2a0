"""Parquet, Arrow and Feather files, with their types and metadata kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from numpy.typing import NDArray

from manifoldknn.tables.table import Column, Table, TableError, check_names, number_text

_CHUNK_ROWS = 8192
_DAY = 86400e6  # microseconds


class ArrowTable(Table):
    """A Parquet file, or an Arrow IPC (Feather) file."""

    def __init__(self, path: Path, form: str) -> None:
        self._form = form
        read = pa.parquet.read_table if form == "parquet" else pa.feather.read_table
        try:
            # Opened here, so that nobody looks for a data set of many files.
            with path.open("rb") as file:
                self._take(read(file), path)
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            raise TableError(
                f"{path.name} is no {form} file that can be read "
                f"({str(error).splitlines()[0][:120]}): write it again, or name its --format"
            ) from None

    def _take(self, table: Any, path: Path) -> None:
        """Be a table that is in memory already; `path` is what messages call it."""
        self.path, self.together, self._table = path, [], table
        self.names = list(table.column_names)
        check_names(self.names, path)
        self.n_rows = table.num_rows
        self.index_names = _pandas_index(table.schema.metadata, self.names)

    def texts(self, names: list[str], then: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return whole columns as text, "" where missing."""
        del then
        try:
            return {name: _texts(self._table[name]) for name in names}
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.path.name} has bytes that are not text in UTF-8 ({error.object[:20]!r}) "
                "where labels or ids should be: write them as text"
            ) from None

    def kind(self, name: str) -> str:
        """Return "text", "number", "boolean", "date", or why a column cannot be used."""
        types, dtype = pa.types, _value_type(self._table.schema.field(name))
        texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
        if any(is_one(dtype) for is_one in texts):
            return "text"  # a column of nothing but nulls reads as empty cells
        if types.is_boolean(dtype):
            return "boolean"
        if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
            return "number"
        if types.is_date(dtype) or types.is_timestamp(dtype):
            return "date"
        return f"holds {dtype}"

    def chunks(self, names: list[str], as_text: Sequence[str] = ()) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns."""
        del as_text
        for start in range(0, self.n_rows, _CHUNK_ROWS):
            part = self._table.slice(start, _CHUNK_ROWS)
            yield [_values(part[name], self.kind(name)) for name in names]

    def column_type(self, name: str) -> str:
        """Return one of `COLUMN_TYPES`."""
        types, dtype = pa.types, _value_type(self._table.schema.field(name))
        if types.is_decimal(dtype):
            return "decimal"
        if types.is_integer(dtype):
            return "whole"
        return "number" if types.is_floating(dtype) else "text"

    def typed(self, kind: str, texts: list[str]) -> NDArray[Any]:
        """Return texts in a type, None where empty; text if some are not of that type."""
        whole = all(text.lstrip("+-").isdigit() for text in texts if text)
        convert: Any = {"whole": int, "number": int if whole else float, "decimal": Decimal}
        try:
            column = np.empty(len(texts), dtype=object)
            column[:] = [convert[kind](text) if text else None for text in texts]
        except (KeyError, ValueError, ArithmeticError):
            return super().typed(kind, texts)
        return column

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write the table in its own format, with columns added."""
        table = self._table
        for name, values in added.items():
            table = table.append_column(name, _array(values.tolist()))
        table = table.replace_schema_metadata(self._table.schema.metadata)
        if self._form == "parquet":
            pa.parquet.write_table(table, file)
        else:
            pa.feather.write_feather(table, file)


def _value_type(column: Any) -> Any:
    """Return the type of a column's values, or of a field's, in a dictionary or not."""
    dtype = column.type
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _texts(column: Any) -> list[str]:
    values = column.to_pylist()  # not every dictionary can be cast
    if pa.types.is_floating(_value_type(column)):
        return ["" if v is None else number_text(v) for v in values]
    if any(isinstance(v, bytes) for v in values):
        return ["" if v is None else v.decode("utf-8") for v in values]
    return ["" if v is None else str(v) for v in values]


def _values(column: Any, kind: str) -> Column:
    if kind == "text":
        return _texts(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "date":
        stamps = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
        column = stamps.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    column = column.cast(pa.float64(), safe=False)
    values: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=True)
    return values / _DAY if kind == "date" else values


def _array(values: list[Any]) -> Any:
    """Return values as an Arrow array; whole numbers up to 2**64 are kept exactly."""
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        if not all(v is None or (isinstance(v, int) and v >= 0) for v in values):
            raise
        return pa.array(values, pa.uint64())


def _pandas_index(metadata: Mapping[bytes, bytes] | None, names: list[str]) -> list[str]:
    """Return columns that pandas keeps the index of a frame in."""
    try:
        listed = json.loads((metadata or {})[b"pandas"])["index_columns"]
        return [name for name in listed if isinstance(name, str) and name in names]
    except (KeyError, TypeError, ValueError):  # not from pandas, or in a way of its own
        return []
