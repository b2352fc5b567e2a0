"""Text with quotes cut into records: fast by a scan of its bytes, slowly by the csv module.

The slow way reads everything, and says what is wrong in words. The fast way knows ordinary
files, and when it does not know.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables.table import TableError

__all__ = ["BLOCK", "OddError", "is_hint", "slow_records", "whole_records"]

BLOCK = 1 << 22  # bytes
_LONGEST_CELL = 1 << 30
_QUOTE, _LINE_ENDS = 34, (10, 13)


class OddError(Exception):
    """The csv module must read this."""


def whole_records(file: IO[bytes], delimiter: bytes) -> Iterator[tuple[bytes, NDArray[np.int64]]]:
    """Yield blocks of whole records, and where each record that is not blank ends in its block.

    OddError where only the csv module knows: a quote inside a cell, a separator outside ASCII, a
    record longer than a block.
    """
    rest, last = b"", False
    if len(delimiter) > 1:
        raise OddError
    while not last:
        more = file.read(BLOCK)
        last = len(more) < BLOCK
        block = rest + more
        ends, size = _record_ends(block, delimiter, last)
        yield block[:size], ends
        rest = block[size:]


def _record_ends(block: bytes, delimiter: bytes, last: bool) -> tuple[NDArray[np.int64], int]:
    """Return where records end, and how many bytes the whole ones have; `last`: all are whole.

    A line end counts if an even number of quotes stand before it. That is right if every first
    quote of two begins a cell or follows a quote, and every second ends one or is followed by one.
    """
    codes = np.frombuffer(block, np.uint8)
    is_stop = codes == _LINE_ENDS[0]
    if b"\r" in block:
        is_stop |= codes == _LINE_ENDS[1]
    stops = np.flatnonzero(is_stop)
    quotes = np.flatnonzero(codes == _QUOTE) if b'"' in block else stops[:0]
    stops = stops[np.searchsorted(quotes, stops) % 2 == 0] if quotes.size else stops
    if last and block and not (stops.size and stops[-1] == len(block) - 1):
        stops = np.append(stops, len(block))
    size = min(int(stops[-1]) + 1, len(block)) if stops.size else 0
    quotes = quotes[: np.searchsorted(quotes, size)]
    beside = np.zeros(256, dtype=bool)
    beside[[*delimiter, _QUOTE, *_LINE_ENDS]] = True
    first, second = quotes[::2], quotes[1::2] + 1
    fine = beside[codes[first[first > 0] - 1]].all() and beside[codes[second[second < size]]].all()
    if len(first) != len(second) or not fine or not (size or last):
        raise OddError
    # Between two line ends that touch is a blank line, or they are the two of one.
    return stops[np.diff(stops, prepend=-1) > 1], size


def slow_records(
    path: Path, delimiter: str, name: str, above: int = 0
) -> Iterator[tuple[list[str], int]]:
    """Yield the header and the rows, each as long as the header, and where its bytes end.

    Some records may stand `above` the header, blank ones not counted. TableError if the file,
    called `name`, cannot be read: the line, and what to correct.
    """
    csv.field_size_limit(_LONGEST_CELL)
    width = 0
    with path.open("rb") as start:  # some files begin with a mark
        at = 3 if start.read(3) == codecs.BOM_UTF8 else 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines: list[str] = []  # of the file, since the last record
        reader = csv.reader(_remembered(file, lines), delimiter=delimiter, strict=True)
        try:
            for record in reader:
                text = "".join(lines)
                lines.clear()
                end = at + len(text.rstrip("\r\n").encode())
                at += len(text.encode())
                blank = not any(cell.strip() for cell in record)
                if not record or (not width and (blank or is_hint(text, delimiter))):
                    continue
                if above:
                    above -= 1
                    continue
                width = width or len(record)
                if len(record) != width:
                    raise TableError(
                        f"line {reader.line_num} of {name} has {len(record)} cells "
                        f"and the header has {width}: correct that line, or name the "
                        "separator with --delimiter"
                    )
                yield record, end
        except csv.Error as error:
            raise TableError(
                f"line {reader.line_num} of {name} cannot be read ({error}): correct its quotes"
            ) from None


def is_hint(line: str, delimiter: str) -> bool:
    r"""Tell whether a line is that by which Excel is told the separator.

    >>> is_hint("sep=;\r\n", ";"), is_hint("sep=x", ";")
    (True, False)
    """
    return line.strip("\r\n").lower() == f"sep={delimiter}"


def _remembered(source: IO[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines of a file, and write them down."""
    for line in source:
        lines.append(line)
        yield line
