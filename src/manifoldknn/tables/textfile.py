"""CSV and TSV files, read a few thousand rows at a time and given back byte for byte.

Answers are appended to the records of the file as they stand: quotes, line ends,
leading zeros and everything else in the other columns stay what they are, because
they are never taken apart and put together again.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables.table import Column, Table, TableError, check_names

_CHUNK_ROWS = 1024
_LONGEST_CELL = 1 << 30
_DELIMITERS = ",;\t|"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


class TextTable(Table):
    """A delimited text file in UTF-8 with a header.

    By default that one of ``, ; tab |`` separates cells that is most frequent in the header. Where
    commas do not, numbers may have a decimal comma. Blank lines before the header do no harm, and a
    first column without a name is the index of a frame, as pandas and R write it.
    """

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        csv.field_size_limit(_LONGEST_CELL)
        self.path, self.together = path, []
        self._delimiter = delimiter or ","
        with path.open("rb") as file:
            lines = (line.decode("utf-8", "replace").lstrip("\ufeff") for line in file)
            first = next((line for line in lines if line.strip()), "")
        if not first:
            raise TableError(f"{path.name} is empty: it needs a header line and rows")
        if delimiter is None:
            self._delimiter = max(_DELIMITERS, key=first.count)
        self.names = next(self._records(), [""])
        check_names(self.names, path, unnamed_first=True)
        self.index_names = [name for name in self.names[:1] if not name.strip()]
        self._n_rows: int | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows, counted on the first look at all of them."""
        if self._n_rows is None:
            self.texts([])
        assert self._n_rows is not None
        return self._n_rows

    def texts(self, names: list[str]) -> dict[str, list[str]]:
        """Return whole columns as text, exactly as it is written."""
        places = [self.names.index(name) for name in names]
        columns: list[list[str]] = [[] for _ in names]
        n_rows = 0
        for record in self._rows():
            n_rows += 1
            for column, place in zip(columns, places):
                column.append(record[place])
        self._n_rows = n_rows
        return dict(zip(names, columns))

    def kind(self, name: str) -> str:
        """Return "text": what it means is found out from the cells."""
        del name
        return "text"

    def chunks(self, names: list[str]) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns."""
        places = [self.names.index(name) for name in names]
        rows: list[list[str]] = []
        for record in self._rows():
            rows.append(record)
            if len(rows) == _CHUNK_ROWS:
                yield self._columns(rows, places)
                rows = []
        if rows:
            yield self._columns(rows, places)

    def _columns(self, rows: list[list[str]], places: list[int]) -> list[Column]:
        columns = list(zip(*rows))
        if self._delimiter == ",":
            return [list(columns[place]) for place in places]
        return [[_with_point(cell) for cell in columns[place]] for place in places]

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write every record as it stands, with cells appended."""
        out = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        with self.path.open("rb") as start:  # some files begin with a mark
            out.write("\ufeff" if start.read(3) == codecs.BOM_UTF8 else "")
        with self._open() as source:
            lines: list[str] = []  # of the file, since the last record
            remembered = _remembered(source, lines)
            row = -1
            ready: list[str] = []
            for record in csv.reader(remembered, delimiter=self._delimiter, strict=True):
                text = "".join(lines)
                lines.clear()
                if record and (row >= 0 or not _is_blank(record)):
                    columns = added.values()
                    cells = [_cell(column[row]) for column in columns] if row >= 0 else list(added)
                    text = self._appended(text, cells)
                    row += 1
                ready.append(text)
                if len(ready) == _CHUNK_ROWS:
                    out.write("".join(ready))
                    ready = []
            out.write("".join(ready))
        out.flush()
        out.detach()

    def _appended(self, text: str, cells: list[str]) -> str:
        body = text.rstrip("\r\n")
        end = text[len(body) :]
        buffer = io.StringIO()
        # Only characters of the line end are quoted, so it must be both of them.
        csv.writer(buffer, delimiter=self._delimiter, lineterminator="\r\n").writerow(cells)
        return f"{body}{self._delimiter}{buffer.getvalue()[:-2]}{end}"

    def _open(self) -> IO[str]:
        # The mark that some programs put before UTF-8 belongs to no column's name.
        return self.path.open(encoding="utf-8-sig", newline="")

    def _rows(self) -> Iterator[list[str]]:
        records = self._records()
        next(records)
        return records

    def _records(self) -> Iterator[list[str]]:
        """Yield the header and the rows, each as long as the header."""
        width = 0
        with self._open() as file:
            reader = csv.reader(file, delimiter=self._delimiter, strict=True)
            try:
                for record in reader:
                    if not record or (not width and _is_blank(record)):
                        continue
                    width = width or len(record)
                    if len(record) != width:
                        raise TableError(
                            f"line {reader.line_num} of {self.path.name} has {len(record)} cells "
                            f"and the header has {width}: correct that line, or name the "
                            "separator with --delimiter"
                        )
                    yield record
            except csv.Error as error:
                raise TableError(
                    f"line {reader.line_num} of {self.path.name} cannot be read ({error}): "
                    "correct its quotes"
                ) from None
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{self.path.name} is not text in UTF-8 (byte {error.object[error.start]:#04x} "
                    f"after line {reader.line_num}): save it as UTF-8"
                ) from None


def _remembered(source: IO[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines of a file, and write them down."""
    for line in source:
        lines.append(line)
        yield line


def _is_blank(record: list[str]) -> bool:
    """Tell whether a record, which before the header says nothing, has only blank cells."""
    return not any(cell.strip() for cell in record)


def _with_point(cell: str) -> str:
    """Return a number with a decimal comma, such as 1,5, with a point; other cells as they are."""
    return cell.replace(",", ".") if "," in cell and _DECIMAL_COMMA.fullmatch(cell) else cell


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
