"""What is shown of a row: cells, text, a picture from a file, or pixels."""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LONGEST = 20_000  # characters of a cell
_BRIEF = 60
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif",
    b"RIFF": "image/webp", b"BM": "image/bmp",
}  # fmt: skip
_LARGEST = 32 << 20  # bytes of a picture
_LEAST_SIDE = 8  # of a row that is a picture
_ROUNDED = 0.02  # of a pixel: shares of 255 may have been written with four digits


class ForbiddenError(Exception):
    """A file that nobody may see."""


@dataclass(frozen=True)
class Pixels:
    """Rows as gray squares, and what their values are."""

    names: list[str]  # of the columns
    values: NDArray[np.uint8]
    unit: float  # that they count

    def about(self) -> dict[str, Any]:
        """Return what all rows have in common."""
        return {"names": self.names, "unit": self.unit, "white": max(1, int(self.values.max()))}


@dataclass(frozen=True)
class Rows:
    """The rows of a data set as people see them."""

    name: str  # of the file
    ids: list[str]
    cells: Mapping[str, Sequence[str]]  # of the columns that are shown
    X: NDArray[Any]  # features
    given: Mapping[int, str]  # labels that the file has
    text: str | None = None  # column that is read in full
    image: Sequence[str] | None = None  # paths of pictures
    folder: Path | None = None  # that holds them
    pixels: Pixels | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, row: int) -> dict[str, Any]:
        """Return what a row holds."""
        cells = [[name, column[row][:_LONGEST]] for name, column in self.cells.items()]
        shown: dict[str, Any] = {"row": row, "id": self.ids[row], "cells": cells}
        if self.text is not None:
            shown["text"] = self.text
        if self.image is not None:
            shown["image"] = self.image[row]
        if self.pixels is not None:
            shown["pixels"] = base64.b64encode(self.pixels.values[row].tobytes()).decode()
        return shown

    def brief(self, row: int) -> str:
        """Return the first cells on one line."""
        some = [f"{name} {column[row][:_BRIEF]}" for name, column in self.cells.items()]
        return ", ".join(some[:4])

    def found(self, words: str) -> list[int]:
        """Return the rows of which a cell or the id has these words, in any case of letters."""
        words = words.casefold()
        columns = [self.ids, *self.cells.values()]
        hits = {
            row for column in columns for row, text in enumerate(column) if words in text.casefold()
        }
        return sorted(hits)

    def picture(self, row: int) -> dict[str, str]:
        """Return the picture of a row; ForbiddenError outside the folder, ValueError if none."""
        if self.image is None or self.folder is None:
            raise ValueError("these rows have no pictures: name their column with --image")
        name = self.image[row]
        try:
            home, path = self.folder.resolve(), (self.folder / name).resolve()
            inside = path.is_relative_to(home)
            known = inside and path.is_file()
        except (OSError, ValueError, RuntimeError):  # a name that no file can have
            raise ValueError(f"{name[:_BRIEF]!r} is no name of a file") from None
        if not inside:
            raise ForbiddenError(f"{name[:_BRIEF]!r} is outside the folder of the data")
        if not known:
            raise ValueError(f"{name[:_BRIEF]!r} was not found")
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"the picture {name[:_BRIEF]!r} is larger than 32 MB")
        content = path.read_bytes()
        kinds = [kind for start, kind in _PICTURES.items() if content.startswith(start)]
        if not kinds:
            raise ValueError(f"{name[:_BRIEF]!r} is no PNG, JPEG, GIF, WebP or BMP")
        return {"type": kinds[0], "data": base64.b64encode(content).decode()}


def pixel_columns(names: Iterable[str]) -> list[str]:
    """Return the columns of one name but for the numbers in it, if there may be a square of them.

    >>> len(pixel_columns(["id", *(f"px{k}" for k in range(64))])), pixel_columns(["px1", "px2"])
    (64, [])
    """
    alike = defaultdict(list)
    for name in names:
        alike[re.sub(r"\d+", "0", name)].append(name)
    found = max(alike.values(), key=len, default=[])
    side = isqrt(len(found))
    return found if side >= _LEAST_SIDE and side * side == len(found) else []


def as_pixels(names: list[str], blocks: Iterable[Sequence[Any]]) -> Pixels | None:
    """Return columns, which come in blocks of rows, as pixels.

    None unless all values are whole numbers from 0 to 255, or such numbers divided by 255.
    """
    unit, found = 0.0, []
    for columns in blocks:
        if any(isinstance(column, list) for column in columns):  # of text
            return None
        values = np.stack(columns, axis=1)
        if not np.isfinite(values).all():
            return None
        unit = unit or (1 / 255 if values.max() <= 1 else 1.0)
        whole = np.round(values / unit)
        if not ((whole >= 0) & (whole <= 255) & (abs(values / unit - whole) < _ROUNDED)).all():
            return None
        found.append(whole.astype(np.uint8))
    return Pixels(names, np.concatenate(found), unit)
