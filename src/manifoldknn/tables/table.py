"""What the command line needs of a file with rows and columns, whatever its format."""

from __future__ import annotations

import codecs
import io
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

COLUMN_TYPES = ("text", "whole", "number", "decimal")  # of labels, to be given back in kind

# Text as it stands in the file, or numbers with NaN where missing.
Column = list[str] | NDArray[np.float64]

FORMATS = {
    ".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet",
    ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npy": "npy",
    ".npz": "npz", ".xlsx": "xlsx", ".xlsm": "xlsx",
}  # fmt: skip


class TableError(ValueError):
    """A file cannot be used as a table; the message says what to do."""


class Table(ABC):
    """Rows and columns in a file."""

    names: list[str]  # columns, all different
    n_rows: int
    together: list[str]  # columns that were one matrix, and so have one unit
    index_names: Sequence[str] = ()  # columns that were the index of a frame
    decimal: str = ""  # mark in numbers that are text; "": a comma may be one, and nothing tells

    @property
    def manner(self) -> dict[str, str]:
        """How text is written, if this is a text file."""
        return {}

    @property
    def taken_names(self) -> set[str]:
        """Names that no new column may have."""
        return set(self.names)

    @abstractmethod
    def texts(self, names: list[str], then: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return whole columns as text, exactly as it is written, "" where missing.

        If it is known what `chunks` will be asked for, `then` tells: text is read once for both.
        """

    def cells_at(self, names: list[str], rows: NDArray[np.intp]) -> dict[str, list[str]]:
        """Return what stands in some ascending rows, as `texts` does, without whole columns."""
        columns = ((name, self.texts([name])[name]) for name in names)
        return {name: [column[i] for i in rows] for name, column in columns}

    @abstractmethod
    def kind(self, name: str) -> str:
        """Return "text", "number", "boolean", "date", or why a column cannot be used."""

    @abstractmethod
    def chunks(self, names: list[str], as_text: Sequence[str] = ()) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns.

        Text of which all is numbers may come as numbers, but not that of the columns `as_text`.
        """

    def release(self) -> None:  # noqa: B027  (most tables keep nothing)
        """Forget what was kept for `chunks`, which nobody will ask for any more."""

    def column_type(self, name: str) -> str:
        """Return one of `COLUMN_TYPES`: text, unless the file gives the column a type."""
        del name
        return "text"

    def typed(self, kind: str, texts: list[str]) -> NDArray[Any]:
        """Return texts as a column of some type, if this file has types."""
        del kind
        column = np.empty(len(texts), dtype=object)
        column[:] = texts
        return column

    def like(self, name: str, texts: list[str]) -> NDArray[Any]:
        """Return texts as a column to add beside another, of its type."""
        return self.typed(self.column_type(name), texts)

    @abstractmethod
    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write the table with columns added on the right, everything else unchanged."""


def format_of(path: str) -> str | None:
    """Return the format that a file's name tells, or None.

    Examples
    --------
    >>> from manifoldknn.tables.table import format_of
    >>> format_of("measured.TSV"), format_of("more.csv.gz"), format_of("notes.docx")
    ('tsv', 'csv', None)
    """
    found = Path(path)
    return FORMATS.get((found.with_suffix("") if packing_of(path) else found).suffix.lower())


def packing_of(path: str) -> str:
    """Return how a file is packed, by its name: "gzip", "zstd" or ""."""
    return {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}.get(Path(path).suffix.lower(), "")


def is_device(place: Path | int) -> bool:
    """Tell whether a file, by its name or its number, is a device, of which there may be no end."""
    mode = os.stat(place).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def byte_line(chunks: Iterable[bytes], encoding: str) -> int:
    r"""Return the line, from 1, of the first byte that is no text in an encoding.

    >>> from manifoldknn.tables.table import byte_line
    >>> byte_line([b"a\r", b"\nb\xff"], "utf-8")
    2
    """
    lines = 1
    # Two bytes may end one line, also where a chunk ends between them.
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), True)
    for chunk in chunks:
        state = decoder.getstate()
        try:
            lines += decoder.decode(chunk, not chunk).count("\n")
        except UnicodeDecodeError as error:
            decoder.setstate((b"", state[1]))
            return lines + decoder.decode(error.object[: error.start], True).count("\n")
    return lines


def open_table(
    path: Path, form: str, *, delimiter: str | None = None, encoding: str | None = None
) -> Table:
    """Open a file as a table; encoding and separator of a CSV file are found out by default."""
    if form in ("csv", "tsv"):
        from manifoldknn.tables.formats.textfile import TextTable

        if form == "tsv" and delimiter is None:
            delimiter = "\t"
        return TextTable(path, delimiter, encoding)
    if form in ("parquet", "arrow"):
        from manifoldknn.tables.formats.arrowfile import ArrowTable

        return ArrowTable(path, form)
    if form == "xlsx":
        from manifoldknn.tables.formats.xlsxfile import ExcelTable

        return ExcelTable(path)
    from manifoldknn.tables.formats.numpyfile import NumpyTable

    return NumpyTable(path, form)


def named_columns(names: list[str]) -> list[str]:
    """Return names without blanks around them; columns without one get one, but for the first.

    Examples
    --------
    >>> from manifoldknn.tables.table import named_columns
    >>> named_columns(["", " a", " "])
    ['', 'a', 'column 3']
    """
    return [
        name.strip() or (f"column {place + 1}" if place else name)
        for place, name in enumerate(names)
    ]


def check_names(names: list[str], path: Path, *, unnamed_first: bool = False) -> None:
    """Raise TableError if a column, but perhaps the first, has no name or two have the same."""
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        if not name.strip() and not (unnamed_first and place == 1 < len(names)):
            raise TableError(f"column {place} of {path.name} has no name: name it in the header")
        if name in seen:
            raise TableError(
                f"{path.name} has two columns named {name!r}: rename one of them in the header"
            )
        seen.add(name)


def said_name(name: str) -> str:
    """Return what to call a column in a message.

    Examples
    --------
    >>> from manifoldknn.tables.table import said_name
    >>> said_name("height"), said_name("")
    ("'height'", 'the first column, which has no name')
    """
    return repr(name) if name.strip() else "the first column, which has no name"


def rows_above(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows, of which none is blank, stand above the header.

    They have one cell filled, or less than half of what others have. None do if what follows them
    begins with a digit, as rows do: then the header is cut otherwise, and that is told.

    >>> rows_above([["Run 7", "", ""], ["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6"]])
    1
    """
    filled = [sum(map(bool, map(str.strip, row))) for row in rows]
    usual = sorted(filled)[len(filled) // 2] if filled else 0
    least = max(min(usual, 2), usual / 2)
    here = next((place for place, count in enumerate(filled) if count >= least), 0)
    if here >= len(filled) // 2:
        return 0
    return 0 if any(cell.strip().lstrip("+-.")[:1].isdigit() for cell in rows[here]) else here


def number_text(value: float) -> str:
    """Return a number as text that means the same; NaN is "" and 3.0 is "3"."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
