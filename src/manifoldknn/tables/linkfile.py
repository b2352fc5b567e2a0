"""Files of links by hand: two ids of rows on every line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables.table import TableError, byte_line, is_device

__all__ = ["read_links"]


def read_links(path: Path, ids: NDArray[Any], notes: list[str]) -> NDArray[np.intp]:
    """Return the pairs of rows that a file names, as row numbers from 0.

    The file is CSV in UTF-8 with two cells on every line that is not blank. If no row has an id of
    the first line, that is a header, which `notes` tell. The `ids` of rows are all different.
    """
    rows = {str(name): row for row, name in enumerate(ids.tolist())}
    pairs: list[list[int]] = []
    header = ""
    if is_device(path):
        raise TableError(f"{path} is a device, which may never end: name a file")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                place = f"line {reader.line_num} of {path.name}"
                if len(cells) != 2:
                    raise TableError(f"{place} must have two cells, the ids of two rows: {cells}")
                # Blanks may be part of an id, or stand around it.
                pair = [rows.get(cell, rows.get(cell.strip(), -1)) for cell in cells]
                if not (pairs or header) and max(pair) < 0 and not "".join(cells).isdigit():
                    header = f"{place} is taken for a header: {', '.join(cells)}"
                    continue
                if min(pair) < 0:
                    raise TableError(
                        f"{place}: no row has the id {cells[pair.index(-1)]!r}; ids are those of "
                        "--id, or row numbers from 1"
                    )
                if pair[0] == pair[1]:
                    raise TableError(f"{place} pairs {cells[0]!r} with itself: name two rows")
                pairs.append(pair)
        except (csv.Error, UnicodeDecodeError) as error:
            line = reader.line_num
            if isinstance(error, UnicodeDecodeError):  # met when many lines were read at once
                line = byte_line([path.read_bytes()], "utf-8")
            raise TableError(
                f"line {line} of {path.name} cannot be read ({error}): save it as CSV in UTF-8"
            ) from None
    if not pairs:
        raise TableError(f"{path.name} names no two rows{header and f'; {header}'}")
    notes += [header] if header else []
    return np.array(pairs, dtype=np.intp)
