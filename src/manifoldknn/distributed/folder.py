"""The folder that stages hand their results on in, and that a fit can go on from.

Every piece of a stage is some arrays, `STAGE-NUMBER.NAME.npy`, and a note in JSON that is written
last: without its note a piece does not exist. So a piece that was cut off is made again, and one
that was made twice is the same. Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manifoldknn.base import Array, Ints


class Folder:
    """Pieces of stages in a folder that all workers see."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def note(self, stage: str, number: int) -> dict[str, Any] | None:
        """Return the note of a piece; None if it does not exist."""
        try:
            return dict(json.loads(self._note(stage, number).read_text()))
        except FileNotFoundError:
            return None

    def write(self, stage: str, number: int, note: dict[str, Any], /, **arrays: Array) -> None:
        """Write a piece."""
        for name, array in arrays.items():
            target, aside = self._array(stage, number, name), self._aside()
            with aside.open("wb") as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
            os.replace(aside, target)
        aside = self._aside()
        aside.write_text(json.dumps(note))
        os.replace(aside, self._note(stage, number))

    def read(self, stage: str, number: int, name: str, *, mapped: bool = False) -> Array:
        """Return an array of a piece, or a memory map of it."""
        path = self._array(stage, number, name)
        if mapped and path.stat().st_size and not _is_empty(path):
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        return np.asarray(np.load(path, allow_pickle=False))

    def clear(self, stage: str) -> None:
        """Delete the arrays of a stage that nobody needs any more; notes stay."""
        for path in self.path.glob(f"{stage}-*.npy"):
            path.unlink(missing_ok=True)

    def _note(self, stage: str, number: int) -> Path:
        return self.path / f"{stage}-{number:05d}.json"

    def _array(self, stage: str, number: int, name: str) -> Path:
        return self.path / f"{stage}-{number:05d}.{name}.npy"

    def _aside(self) -> Path:
        return self.path / f"aside-{uuid.uuid4().hex}.npy"


def _is_empty(path: Path) -> bool:
    """Tell whether an array file holds nothing: such a file cannot be mapped."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        shape = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)[0]
    return 0 in shape


class Pieces:
    """An array in pieces, one after the other, of which some rows are read."""

    def __init__(self, folder: Folder, stage: str, name: str, offsets: Ints) -> None:
        self._offsets = offsets
        self._pieces: Sequence[Array] = [
            folder.read(stage, number, name, mapped=True) for number in range(len(offsets) - 1)
        ]
        first = self._pieces[0]
        self.shape, self.dtype = (int(offsets[-1]), *first.shape[1:]), first.dtype

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def __getitem__(self, rows: Ints) -> Array:
        rows = np.asarray(rows)
        flat = rows.ravel()
        out = np.empty((len(flat), *self.shape[1:]), dtype=self.dtype)
        owner = np.searchsorted(self._offsets, flat, side="right") - 1
        for number in np.unique(owner):
            here = np.flatnonzero(owner == number)
            out[here] = self._pieces[number][flat[here] - self._offsets[number]]
        return out.reshape(*rows.shape, *self.shape[1:])
