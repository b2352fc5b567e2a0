"""Excel workbooks: the first sheet with anything in it, its values typed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables.table import (
    Column,
    Table,
    TableError,
    check_names,
    named_columns,
    number_text,
    rows_above,
)

_DAY = 86400.0
_EPOCH = datetime(1970, 1, 1)
_CHUNK_ROWS = 8192
_SAMPLE = 1000  # rows that tell where the header is


class ExcelTable(Table):
    """A sheet of a workbook; formulas count as what Excel made of them last.

    The first row that is filled as others are is the header. What is written is the whole workbook,
    with its formulas, and new columns on the right of this sheet.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.together = path, []
        with _opened(path, data_only=True, read_only=True) as book:
            sheets = {
                sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets
            }
        filled = {name: rows for name, rows in sheets.items() if any(map(_is_filled, rows))}
        if not filled:
            raise TableError(f"{path.name} is empty: it needs a header line and rows")
        self._sheet, rows = next(iter(filled.items()))
        self._others = list(filled)[1:]
        self._places = [place for place, row in enumerate(rows, 1) if _is_filled(row)]
        first = [[_text(v) for v in rows[place - 1]] for place in self._places[:_SAMPLE]]
        self._above = rows_above(first)
        self._places = self._places[self._above :]
        header, *rows = (rows[place - 1] for place in self._places)
        width = 1 + max(i for row in (header, *rows) for i, value in enumerate(row) if _is(value))
        self.names = named_columns(["" if v is None else str(v) for v in header[:width]])
        check_names(self.names, path, unnamed_first=True)
        self.index_names = [name for name in self.names[:1] if not name.strip()]
        self.n_rows = len(rows)
        self._columns = {name: [row[i] for row in rows] for i, name in enumerate(self.names)}

    @property
    def manner(self) -> dict[str, str]:
        """Which sheet is read, and which are not."""
        found = {"other_sheets": ", ".join(self._others)} if self._others else {}
        found |= {"lines_above_header": str(self._above)} if self._above else {}
        return {"sheet": self._sheet} | found

    def texts(self, names: list[str], then: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return whole columns as text, "" where empty."""
        del then
        return {name: [_text(value) for value in self._columns[name]] for name in names}

    def kind(self, name: str) -> str:
        """Return "number", "boolean" or "date" if all values are, else "text"."""
        found = {_KINDS.get(type(value), "text") for value in self._columns[name] if _is(value)}
        return found.pop() if len(found) == 1 else "text"

    def chunks(self, names: list[str], as_text: Sequence[str] = ()) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns."""
        del as_text
        kinds = [self.kind(name) for name in names]
        for start in range(0, self.n_rows, _CHUNK_ROWS):
            parts = (self._columns[name][start : start + _CHUNK_ROWS] for name in names)
            yield [_values(part, kind) for part, kind in zip(parts, kinds)]

    def column_type(self, name: str) -> str:
        """Return one of `COLUMN_TYPES`."""
        if self.kind(name) != "number":
            return "text"
        whole = all(float(value).is_integer() for value in filter(_is, self._columns[name]))
        return "whole" if whole else "number"

    def typed(self, kind: str, texts: list[str]) -> NDArray[Any]:
        """Return texts as numbers where that loses nothing, None where empty."""
        column = np.empty(len(texts), dtype=object)
        column[:] = [text or None for text in texts]
        convert: Any = {"whole": int, "number": float}.get(kind, str)
        with suppress(ValueError):
            column[:] = [convert(text) if text else None for text in texts]
        return column

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write the workbook, with columns added to the sheet."""
        with _opened(self.path, keep_vba=self.path.suffix.lower() == ".xlsm") as book:
            sheet = book[self._sheet]
            for column, (name, values) in enumerate(added.items(), len(self.names) + 1):
                for place, value in zip(self._places, [name, *values.tolist()]):
                    cell = sheet.cell(place, column, value)
                    if cell.data_type == "f":  # a label, whatever it begins with
                        cell.data_type = "s"
            book.save(file)


def _opened(path: Path, **options: Any) -> Any:
    """Return a workbook to be closed."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise TableError(
            f"{path.name} is a workbook, for which openpyxl is needed: pip install "
            '"manifoldknn[excel]", or save the sheet as CSV'
        ) from None
    try:
        return closing(load_workbook(BytesIO(path.read_bytes()), **options))
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise TableError(
            f"{path.name} is no workbook that can be read ({error}): save it again as .xlsx"
        ) from None


_KINDS = {bool: "boolean", int: "number", float: "number", datetime: "date", date: "date"}


def _is(value: Any) -> bool:
    return value is not None and value != ""


def _is_filled(row: Sequence[Any]) -> bool:
    return any(_is(value) and str(value).strip() for value in row)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if type(value) in (int, float):
        return number_text(float(value)) if type(value) is float else str(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _values(values: list[Any], kind: str) -> Column:
    if kind == "text":
        # With a power, so that nobody takes a point for a mark of thousands.
        return [f"{v!r}e0" if _may_be_thousands(v) else _text(v) for v in values]
    if kind == "date":
        values = [_days(value) if _is(value) else np.nan for value in values]
    return np.array([value if _is(value) else np.nan for value in values], dtype=np.float64)


def _may_be_thousands(value: Any) -> bool:
    return type(value) is float and len(repr(value).partition(".")[2]) == 3


def _days(value: date) -> float:
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (moment.replace(tzinfo=None) - _EPOCH).total_seconds() / _DAY
