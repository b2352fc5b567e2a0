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
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.formats.records import BLOCK, OddError, slow_records, whole_records
from manifoldknn.tables.table import Column, Table, TableError, check_names

_CHUNK_ROWS = 1024  # of the slow way, and of writing
_KEPT_PER_ROW = 32  # bytes of text; longer columns are read again if anybody asks
_DELIMITERS = ",;\t|"
_POOL = pa.system_memory_pool()  # which gives back what is freed, unlike Arrow's own


class TextTable(Table):
    """A delimited text file in UTF-8 with a header.

    By default that one of ``, ; tab |`` separates cells that is most frequent in the header. Where
    commas do not, numbers may have a decimal comma. Blank lines before the header do no harm, and a
    first column without a name is the index of a frame, as pandas and R write it.
    """

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        self.path, self.together = path, []
        with path.open("rb") as file:
            lines = (line.decode("utf-8", "replace").lstrip("\ufeff") for line in file)
            first = next((line for line in lines if line.strip()), "")
        if not first:
            raise TableError(f"{path.name} is empty: it needs a header line and rows")
        self._delimiter = delimiter or max(_DELIMITERS, key=first.count)
        self.names, self._header_end = next(slow_records(path, self._delimiter), ([""], 0))
        check_names(self.names, path, unnamed_first=True)
        self.index_names = [name for name in self.names[:1] if not name.strip()]
        self._ends: list[NDArray[np.int64]] | None = None  # of records, a block at a time
        # By column and block: numbers, or Arrow text. Other columns are read when asked for.
        self._kept: dict[str, list[Any]] = {}

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
        column = self._pointed(column)
        values = cells.number_column(column) if not parts or _is_numbers(parts) else None
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
            parts = dict(zip(again, map(self._pointed, columns)))
            found = [kept[name][block] if name in kept else parts[name] for name in names]
            yield [part if isinstance(part, np.ndarray) else _listed(part) for part in found]

    def release(self) -> None:
        """Forget the columns; whoever asks for them again waits for them to be read again."""
        self._kept = {}
        pa.default_memory_pool().release_unused()

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write every record as it stands, with cells appended."""
        n_rows = self.n_rows  # read before it is written
        ends = np.concatenate([[self._header_end], *(self._ends or [])]).tolist()
        cell_rows = chain([list(added)], zip(*(_cells(column) for column in added.values())))
        at = 0
        with self.path.open("rb") as source:
            for start in range(0, 1 + n_rows, _CHUNK_ROWS):
                stops = ends[start : start + _CHUNK_ROWS]
                text, first = source.read(stops[-1] - at), at
                pieces = []
                for stop, row in zip(stops, self._lines(islice(cell_rows, len(stops)))):
                    pieces += [text[at - first : stop - first], row]
                    at = stop
                file.write(b"".join(pieces))
            shutil.copyfileobj(source, file)

    def _lines(self, rows: Iterator[Sequence[str]]) -> Iterator[bytes]:
        """Yield the cells of each row as they are appended."""
        # Only characters of the line end are quoted, so it must be both of them.
        lines = _Lines()
        csv.writer(lines, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        return ((self._delimiter + line[:-2]).encode() for line in lines)

    def _pointed(self, column: Any) -> Any:
        return column if self._delimiter == "," else cells.with_points(column)

    def _blocks(self, names: list[str]) -> Iterator[tuple[list[Any], NDArray[np.int64]]]:
        """Yield some columns as Arrow text, and where records end, many rows at a time."""
        n_rows = 0
        try:
            with self.path.open("rb") as file:
                at = file.seek(self._header_end)
                for block, ends in whole_records(file, self._delimiter.encode()):
                    if ends.size:
                        yield self._columns(block, names, len(ends)), at + ends
                    n_rows += len(ends)
                    at += len(block)
            return
        except (OddError, UnicodeDecodeError, pa.ArrowInvalid):
            places = [self.names.index(name) for name in names]
        rows = islice(slow_records(self.path, self._delimiter), 1 + n_rows, None)
        while part := list(islice(rows, _CHUNK_ROWS)):
            columns = [pa.array([record[p] for record, _ in part], pa.string()) for p in places]
            yield columns, np.array([end for _, end in part], dtype=np.int64)

    def _columns(self, block: bytes, names: list[str], n_rows: int) -> list[Any]:
        """Return columns of whole records as Arrow text."""
        if not block.isascii():
            block.decode("utf-8")  # whatever is wrong the csv module will say
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


def _cells(column: NDArray[Any]) -> list[str]:
    """Return values as they are written."""
    if column.dtype.kind == "b":
        return ["true" if value else "false" for value in column.tolist()]
    if column.dtype.kind == "f":
        return [f"{value:.6g}" for value in column.tolist()]
    return list(map(str, column.tolist()))
