"""NPY and NPZ files: a matrix of features, and columns beside it."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables.table import Column, Table, TableError, number_text

_CHUNK_ROWS = 8192
_DAMAGE = (
    ValueError, EOFError, KeyError, TypeError, AttributeError, RuntimeError, zipfile.BadZipFile,
    zlib.error, struct.error,
)  # fmt: skip


class NumpyTable(Table):
    """Arrays in a file.

    Columns of a matrix are called by their numbers, "0", "1" and so on. An NPZ file has one matrix,
    and arrays of as many entries as that has rows are columns under their own names.
    """

    def __init__(self, path: Path, form: str) -> None:
        self.path, self._form = path, form
        try:
            self._arrays = _loaded(path, form)
        except TableError:
            raise
        except _DAMAGE as error:
            raise TableError(
                f"{path.name} is no {form.upper()} file of plain arrays "
                f"({str(error).splitlines()[0] if str(error) else type(error).__name__}): "
                "save numbers or text, not objects"
            ) from None
        matrices = [name for name, array in self._arrays.items() if array.ndim == 2]
        if len(matrices) != 1:
            raise TableError(
                f"{path.name} holds {len(matrices)} matrices and must hold one, with a row per "
                "sample"
            )
        matrix = self._arrays[matrices[0]]
        if matrix.dtype.kind not in "biuf":
            raise TableError(f"the matrix in {path.name} holds {matrix.dtype}, not numbers")
        self.n_rows = len(matrix)
        self._columns: dict[str, NDArray[Any]] = {
            str(i): matrix[:, i] for i in range(matrix.shape[1])
        }
        self.together = list(self._columns)
        for name, array in self._arrays.items():
            if array.ndim == 1 and len(array) == self.n_rows:
                if name in self._columns:
                    raise TableError(
                        f"{path.name} has two columns named {name!r}: rename the array"
                    )
                self._columns[name] = array
        self.names = list(self._columns)

    @property
    def taken_names(self) -> set[str]:
        """Names that no new array may have."""
        return {*self.names, *self._arrays}

    def texts(self, names: list[str], then: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return whole columns as text; NaN is "" and 3.0 is "3"."""
        del then
        return {name: [_text(value) for value in self._columns[name].tolist()] for name in names}

    def kind(self, name: str) -> str:
        """Return "number", "boolean" or "text", or why a column cannot be used."""
        kinds = {"b": "boolean", "i": "number", "u": "number", "f": "number", "U": "text"}
        dtype = self._columns[name].dtype
        return kinds.get(dtype.kind, f"holds {dtype}")

    def chunks(self, names: list[str], as_text: Sequence[str] = ()) -> Iterator[list[Column]]:
        """Yield some thousand rows at a time of some columns."""
        del as_text
        for start in range(0, self.n_rows, _CHUNK_ROWS):
            parts = (self._columns[name][start : start + _CHUNK_ROWS] for name in names)
            yield [p.tolist() if p.dtype.kind == "U" else p.astype(np.float64) for p in parts]

    def column_type(self, name: str) -> str:
        """Return one of `COLUMN_TYPES`."""
        kinds = {"i": "whole", "u": "whole", "f": "number"}
        return kinds.get(self._columns[name].dtype.kind, "text")

    def typed(self, kind: str, texts: list[str]) -> NDArray[Any]:
        """Return texts in a type, if that loses nothing; NaN or -1 where empty."""
        with suppress(ValueError, OverflowError):
            if kind == "number":
                return np.array([float(text) if text else np.nan for text in texts])
            if kind == "whole":
                numbers = [int(text) if text else -1 for text in texts]
                return np.array(numbers, np.uint64 if max(numbers) >= 2**63 else np.int64)
        return super().typed(kind, texts)

    def write(self, file: IO[bytes], added: Mapping[str, NDArray[Any]]) -> None:
        """Write an NPZ file of all arrays and the new columns."""
        plain = {name: c.astype(str) if c.dtype.kind == "O" else c for name, c in added.items()}
        # Not by numpy.savez, whose own arguments no array may be named after.
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in (self._arrays | plain).items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _loaded(path: Path, form: str) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:  # closed even if numpy gives up
        loaded = np.load(file, allow_pickle=False)
        found = "npy" if isinstance(loaded, np.ndarray) else "npz"
        if found != form:
            raise TableError(f"{path.name} is not {form.upper()}: say --format {found}")
        arrays = {"X": loaded} if found == "npy" else dict(loaded.items())
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange:
        raise ValueError(f"{strange[0]!r} is no array")
    return arrays


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
