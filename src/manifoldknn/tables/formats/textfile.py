"""CSV and TSV files, read once by pyarrow and given back byte for byte.

The file is cut into blocks of whole records. Arrow takes a block apart into columns of text,
and columns of numbers are kept as numbers. Where each record ends is kept too: answers are put
there, and quotes, line ends, leading zeros and everything else stay what they are, because they
are never taken apart and put together again.

The csv module reads the header, and the rest where the fast way meets something odd.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.formats.records import (
    BLOCK,
    OddError,
    is_hint,
    slow_records,
    whole_records,
)
from manifoldknn.tables.formats.source import Source
from manifoldknn.tables.table import (
    Column,
    Table,
    TableError,
    check_names,
    named_columns,
    rows_above,
)

_CHUNK_ROWS = 1024  # of the slow way, and of writing
_KEPT_PER_ROW = 32  # bytes of text; longer columns are read again if anybody asks
_DELIMITERS = "\t;|,"
_ALIKE = 0.8  # of the first rows
_SAMPLE = 1 << 16  # bytes, from which the separator and the decimal mark are found out
_POINT = re.compile(r"\s*[+-]?\d*\.\d+\s*")
_POOL = pa.system_memory_pool()  # which gives back what is freed, unlike Arrow's own


class TextTable(Table):
    """A delimited text file with a header.

    By default its encoding is found out, and that one of ``, ; tab |`` separates cells that cuts
    the first rows into as many cells as the header has. Numbers may have a decimal comma, and
    `decimal` is what most have; "" if nothing tells, and commas do not separate. Blank lines before
    the header do no harm, nor do lines with much less in them than the rows have, as instruments
    write them. A first column without a name is the index of a frame, as pandas and R write it.
    Other columns without a name get one.
    """

    def __init__(
        self, path: Path, delimiter: str | None = None, encoding: str | None = None
    ) -> None:
        self.path, self.together, self._source = path, [], Source(path, encoding)
        with self._source.plain.open("rb") as file:
            sample = file.read(_SAMPLE)
        if not sample.decode("utf-8", "replace").lstrip("\ufeff").strip():
            raise TableError(f"{path.name} is empty: it needs a header line and rows")
        if len(sample) == _SAMPLE:
            sample = sample[: sample.rfind(b"\n") + 1] or sample  # whole lines
        text = sample.decode("utf-8", "replace").lstrip("\ufeff")
        self._delimiter = delimiter or _separator(text)
        records = _records(text, self._delimiter)
        hint = bool(records) and is_hint(self._delimiter.join(records[0]), self._delimiter)
        self._above = rows_above(records[hint:])
        header, self._header_end = next(self._slow_records(), ([""], 0))
        self.names = named_columns(header)
        check_names(self.names, path, unnamed_first=True)
        self.index_names = [name for name in self.names[:1] if not name.strip()]
        found = cells.decimal_mark(chain.from_iterable(records[self._above :]))
        self.decimal = found or ("." if self._delimiter == "," else "")
        points = any(_POINT.fullmatch(cell) for record in records for cell in record)
        self._mark = found or ("," if self._delimiter == ";" and not points else ".")
        self._ends: list[NDArray[np.int64]] | None = None  # of records, a block at a time
        # By column and block: numbers, or Arrow text. Other columns are read when asked for.
        self._kept: dict[str, list[Any]] = {}

    @property
    def manner(self) -> dict[str, str]:
        """How the file is written: it will be written so again."""
        found = {"encoding": self._source.said, "delimiter": self._delimiter}
        found |= {"decimal_mark": self.decimal} if self.decimal else {}
        found |= {"lines_above_header": str(self._above)} if self._above else {}
        return found | ({"compression": self._source.packing} if self._source.packing else {})

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows, counted on the first look at all of them."""
        if self._ends is None:
            self.texts([])
        return sum(map(len, self._ends or []))

    def texts(self, names: list[str], then: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return whole columns as text, exactly as it is written.

        The first call reads the file, and keeps the columns `then`, by default all others.
        """
        first = self._ends is None
        kept = [n for n in (self.names if then is None else then) if first and n not in names]
        found: dict[str, list[str]] = {name: [] for name in names}
        every_end, columns_kept = [], {name: list[Any]() for name in kept}
        for columns, ends in self._blocks([*names, *kept]):
            every_end.append(ends)
            for name, column in zip(names, columns):
                found[name] += _listed(column)
            for name, column in zip(kept, columns[len(names) :]):
                if name in columns_kept and not self._keep(columns_kept[name], column):
                    del columns_kept[name]
        if first:
            self._ends, self._kept = every_end, columns_kept
        return found

    def _keep(self, parts: list[Any], column: Any) -> bool:
        """Keep one more block of a column; False if it is too long, or no longer numbers."""
        values = self._numbers(column) if not parts or _is_numbers(parts) else None
        if values is None and _is_numbers(parts):
            return False
        parts.append(column if values is None else values)
        n_bytes = sum(part.nbytes - _KEPT_PER_ROW * len(part) for part in parts)
        return values is not None or n_bytes <= BLOCK

    def kind(self, name: str) -> str:
        """Return "text": what it means is found out from the cells."""
        del name
        return "text"

    def chunks(self, names: list[str], as_text: Sequence[str] = ()) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns: numbers, if all of a column are."""
        if self._ends is None:
            self.texts([], [name for name in names if name not in as_text])
        kept = {
            n: parts for n, parts in self._kept.items() if not (n in as_text and _is_numbers(parts))
        }
        again = [name for name in names if name not in kept]
        fresh = self._blocks(again)
        for block in range(len(self._ends or [])):
            columns = next(fresh)[0] if again else []
            parts = dict(zip(again, columns))
            found = [kept[name][block] if name in kept else parts[name] for name in names]
            yield [part if isinstance(part, np.ndarray) else _listed(part) for part in found]

    def cells_at(self, names: list[str], rows: NDArray[np.intp]) -> dict[str, list[str]]:
        """Return what stands in some ascending rows, reading the file once more."""
        found: dict[str, list[str]] = {name: [] for name in names}
        first = 0
        for columns, ends in self._blocks(names):
            low, high = np.searchsorted(rows, [first, first + len(ends)])
            here = pa.array(rows[low:high] - first)
            for name, column in zip(names, columns):
                found[name] += _listed(column.take(here))
            first += len(ends)
        return found

    def release(self) -> None:
        """Forget the columns; whoever asks for them again waits for them to be read again."""
        self._kept = {}
        pa.default_memory_pool().release_unused()

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write every record as it stands, with cells appended."""
        n_rows = self.n_rows  # read before it is written
        ends = np.concatenate([[self._header_end], *(self._ends or [])]).tolist()
        cell_rows = chain([list(added)], zip(*(self._cells(column) for column in added.values())))
        at = 0
        with self._source.plain.open("rb") as source, self._source.written(file) as target:
            for start in range(0, 1 + n_rows, _CHUNK_ROWS):
                stops = ends[start : start + _CHUNK_ROWS]
                text, first = source.read(stops[-1] - at), at
                pieces = []
                for stop, row in zip(stops, self._lines(islice(cell_rows, len(stops)))):
                    pieces += [text[at - first : stop - first], row]
                    at = stop
                target.write(b"".join(pieces))
            shutil.copyfileobj(source, target)

    def _lines(self, rows: Iterator[Sequence[str]]) -> Iterator[bytes]:
        """Yield the cells of each row as they are appended."""
        # Only characters of the line end are quoted, so it must be both of them.
        lines = _Lines()
        csv.writer(lines, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        return ((self._delimiter + line[:-2]).encode() for line in lines)

    def _cells(self, column: NDArray[Any]) -> list[str]:
        """Return values as they are written, numbers with the decimal mark of the file."""
        if column.dtype.kind == "b":
            return ["true" if value else "false" for value in column.tolist()]
        if column.dtype.kind == "f":
            return [f"{value:.6g}".replace(".", self._mark) for value in column.tolist()]
        return list(map(str, column.tolist()))

    def _numbers(self, column: Any) -> NDArray[np.float64] | None:
        """Return a column as numbers, if they are written in the plainest way."""
        if self.decimal == "," and pc.any(pc.match_substring(column, ".")).as_py():
            return None  # a point may be between thousands: who knows all cells decides
        return cells.number_column(column if self.decimal == "." else cells.with_points(column))

    def _slow_records(self) -> Iterator[tuple[list[str], int]]:
        return slow_records(self._source.plain, self._delimiter, self.path.name, self._above)

    def _blocks(self, names: list[str]) -> Iterator[tuple[list[Any], NDArray[np.int64]]]:
        """Yield some columns as Arrow text, and where records end, many rows at a time."""
        n_rows = 0
        try:
            with self._source.plain.open("rb") as file:
                at = file.seek(self._header_end)
                for block, ends in whole_records(file, self._delimiter.encode()):
                    if ends.size:
                        yield self._columns(block, names, len(ends)), at + ends
                    n_rows += len(ends)
                    at += len(block)
            return
        except (OddError, pa.ArrowInvalid):
            places = [self.names.index(name) for name in names]
        rows = islice(self._slow_records(), 1 + n_rows, None)
        while part := list(islice(rows, _CHUNK_ROWS)):
            columns = [pa.array([record[p] for record, _ in part], pa.string()) for p in places]
            yield columns, np.array([end for _, end in part], dtype=np.int64)

    def _columns(self, block: bytes, names: list[str], n_rows: int) -> list[Any]:
        """Return columns of whole records as Arrow text."""
        if block.startswith(codecs.BOM_UTF8):
            block = b"\n" + block  # not the mark of a file, as Arrow would think
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            pa.csv.ReadOptions(column_names=self.names, block_size=len(block) + 1),
            pa.csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in block),
            pa.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(self.names, pa.string()),
                include_columns=names or self.names[:1],
            ),
            memory_pool=_POOL,
        )
        if table.num_rows != n_rows:
            raise OddError
        return [table[name].combine_chunks() for name in names]


class _Lines(list[str]):
    """What a csv.writer writes, a line at a time."""

    write = list.append


def _is_numbers(parts: list[Any]) -> bool:
    return bool(parts) and isinstance(parts[0], np.ndarray)


def _listed(column: Any) -> list[str]:
    found: list[str] = column.to_numpy(zero_copy_only=False).tolist()
    return found


def _records(text: str, delimiter: str) -> list[list[str]]:
    """Return the records of a sample, as far as they can be read, without blank ones."""
    found = []
    with suppress(csv.Error):
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            found += [record] if any(map(str.strip, record)) else []
    return found


def _separator(text: str) -> str:
    """Return what cuts most rows into as many cells as the header, or is frequent in that.

    Where nothing does, there may be lines above the header: then, what cuts most rows alike.
    """
    first = next(line for line in text.splitlines() if line.strip())
    alike = {}
    for delimiter in _DELIMITERS:
        if is_hint(first, delimiter):
            return delimiter
        widths = [len(record) for record in _records(text, delimiter)]
        if widths and widths[0] > 1 and widths.count(widths[0]) > _ALIKE * len(widths):
            return delimiter
        often = max(set(widths), key=widths.count, default=1)
        alike[delimiter] = widths.count(often) > _ALIKE * len(widths) and often > 2
    return next((d for d in _DELIMITERS if alike[d]), max(reversed(_DELIMITERS), key=first.count))
