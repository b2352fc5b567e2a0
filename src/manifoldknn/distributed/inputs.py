"""Rows and labels as users of a cluster bring them, chunk by chunk, checked before heavy work.

A chunk is read where it is needed, by a worker. The client sees notes: numbers of rows, names and
types of columns, classes.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manifoldknn.base import Array
from manifoldknn.base.labels import EncodedLabels, encode_labels
from manifoldknn.base.samples import LARGEST
from manifoldknn.distributed.folder import Folder

_CHUNK_BYTES = 1 << 26
_SINGLE = frozenset({"float16", "bool", "int8", "uint8", "int16", "uint16", "float32"})


@dataclass(frozen=True)
class Source:
    """Chunks of an input, and what tells it from another one.

    `chunks` are delayed objects or readers, `labels` the same or None, and `names` the names of
    chunks in messages. They are `held` by the client if they are arrays in its memory.
    """

    chunks: list[Any]
    labels: list[Any]
    names: list[str]
    token: str
    held: bool = False


@dataclass(frozen=True)
class FileRows:
    """Rows of a file of numbers, as a worker reads them."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    start: int
    stop: int

    def read(self) -> Array:
        """Return the rows."""
        whole = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return np.array(whole[self.start : self.stop])


@dataclass(frozen=True)
class ParquetRows:
    """A row group of a Parquet file, without its column of labels, or that column alone."""

    path: str
    group: int
    label: str | None
    only_label: bool = False

    def read(self) -> Any:
        """Return a frame, or the labels."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.path)
        names = [name for name in file.schema_arrow.names if name != self.label]
        table = file.read_row_group(self.group, columns=[self.label] if self.only_label else names)
        return table.column(0).to_pandas() if self.only_label else table


def opened(X: Any, y: Any) -> Source:
    """Return the chunks of what a user passed as X and y, or raise ValueError."""
    label = y if isinstance(y, str) else None
    if isinstance(X, str | Path):
        return _parquet(str(X), label)
    if hasattr(X, "dask") and hasattr(X, "to_delayed"):
        return _collection(X, label, y)
    return _array(X, y)


def lengths(X: Any, source: Source) -> list[Any]:
    """Return the lengths of the chunks of X, NaN where nobody knows before they are read."""
    if hasattr(X, "chunks"):
        return list(X.chunks[0])
    if hasattr(X, "dask"):
        return [np.nan] * len(source.chunks)
    if isinstance(X, str | Path):
        import pyarrow.parquet as pq

        files = {chunk.path: pq.ParquetFile(chunk.path).metadata for chunk in source.chunks}
        return [files[c.path].row_group(c.group).num_rows for c in source.chunks]
    step = _chunk_rows(np.asarray(X))
    return [min(step, len(X) - start) for start in range(0, len(X), step)]


def _parquet(pattern: str, label: str | None) -> Source:
    import pyarrow.parquet as pq

    folder = os.path.join(pattern, "*.parquet")
    paths = sorted(glob.glob(folder if os.path.isdir(pattern) else pattern))
    if not paths:
        raise ValueError(f"No file is named {pattern!r}: pass a path or pattern of Parquet files.")
    chunks, labels, names, states, first = [], [], [], [], None
    for path in paths:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        if label is not None and label not in schema.names:
            raise ValueError(f"{path} has no column {label!r}; it has {', '.join(schema.names)}.")
        columns = [(field.name, str(field.type)) for field in schema]
        first = first or columns
        if columns != first:
            raise ValueError(_other_columns(path, columns, paths[0], first))
        for group in range(file.metadata.num_row_groups):
            chunks.append(ParquetRows(os.path.abspath(path), group, label))
            labels.append(ParquetRows(os.path.abspath(path), group, label, only_label=True))
            names.append(f"row group {group} of {path}")
        states.append((os.path.abspath(path), os.path.getsize(path), os.path.getmtime(path)))
    return Source(chunks, labels if label else [None] * len(chunks), names, repr((states, label)))


def _other_columns(name: str, columns: list[Any], first_name: str, first: list[Any]) -> str:
    for a, b in zip(columns, first):
        if a != b:
            return (
                f"{name} has the column {a[0]!r} of type {a[1]} where {first_name} has {b[0]!r} of "
                f"type {b[1]}: all parts need the same columns and types, in the same order."
            )
    return (
        f"{name} has {len(columns)} columns and {first_name} has {len(first)}: all parts need the "
        "same columns."
    )


def _collection(X: Any, label: str | None, y: Any) -> Source:
    from dask.base import tokenize

    if hasattr(X, "divisions"):  # a frame
        if label is not None:
            if label not in X.columns:
                raise ValueError(f"X has no column {label!r}; it has {', '.join(X.columns)}.")
            X, y = X.drop(columns=[label]), X[label]
        chunks = list(X.to_delayed())
    else:
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions: pass a table of rows and columns.")
        X = X.rechunk({1: X.shape[1]})
        chunks = list(X.to_delayed().ravel())
    labels: list[Any] = [None] * len(chunks)
    token = tokenize(X)
    if y is not None:
        labels, token = _labels_of(X, y, len(chunks)), repr((token, tokenize(y)))
    names = [f"partition {number} of {len(chunks)}" for number in range(len(chunks))]
    return Source(chunks, labels, names, token)


def _labels_of(X: Any, y: Any, n_chunks: int) -> list[Any]:
    """Return the labels of every chunk of a Dask collection."""
    import dask
    import dask.array as da

    lengths: Any = None if hasattr(X, "divisions") else X.chunks[0]
    known = lengths is not None and not any(np.isnan(length) for length in lengths)
    if hasattr(y, "dask") and hasattr(y, "divisions") and y.npartitions == n_chunks:
        return list(y.to_delayed())
    if known and hasattr(y, "rechunk"):
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {y.shape[0]}: {_ONE_EACH}")
        return list(y.rechunk({0: lengths}).to_delayed().ravel())
    if hasattr(y, "rechunk") and y.numblocks[0] == n_chunks:
        return list(y.to_delayed().ravel())
    if hasattr(y, "dask"):
        raise ValueError(
            f"y has {getattr(y, 'npartitions', '?')} partitions and X has {n_chunks}: labels must "
            "lie in partitions as their rows do. Repartition y as X is."
        )
    if not known:
        lengths = dask.compute(*[dask.delayed(len)(chunk) for chunk in X.to_delayed()])
    values = np.asarray(y)
    if len(values) != sum(lengths):
        raise ValueError(f"X has {sum(lengths)} rows, but y has {len(values)}: {_ONE_EACH}")
    cut = da.from_array(values, chunks=(tuple(int(length) for length in lengths),))
    return list(cut.to_delayed().ravel())


_ONE_EACH = "pass one label for each row, -1 (or None) where there is none."


def _chunk_rows(X: Array) -> int:
    return max(1, _CHUNK_BYTES // max(1, X.itemsize * X.shape[1]))


def _array(X: Any, y: Any) -> Source:
    from dask.base import tokenize

    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: pass a table of rows and columns.")
    if y is not None and len(y) != len(X):
        raise ValueError(f"X has {len(X)} rows, but y has {len(y)}: {_ONE_EACH}")
    step = _chunk_rows(X)
    starts = range(0, len(X), step)
    mapped = isinstance(X, np.memmap) and X.filename is not None and X.flags.c_contiguous
    chunks: list[Any] = []
    for start in starts:
        stop = min(start + step, len(X))
        if mapped:
            where = (str(X.filename), X.dtype.str, X.shape, int(X.offset))
            chunks.append(FileRows(*where, start, stop))
        else:
            chunks.append(X[start:stop])
    labels = [None if y is None else y[start : start + step] for start in starts]
    names = [f"rows from {start}" for start in starts]
    state = (str(X.filename), os.path.getmtime(X.filename), X.shape) if mapped else tokenize(X)
    return Source(chunks, labels, names, repr((state, tokenize(y))), held=not mapped)


def read(
    _folder: Folder | None, number: int, chunk: Any, labels: Any, name: str, unlabeled: Any
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read and check a chunk: its rows as floats, and the numbers of its own classes."""
    del number
    chunk = chunk.read() if isinstance(chunk, FileRows | ParquetRows) else chunk
    labels = labels.read() if isinstance(labels, ParquetRows) else labels
    columns, X = _numbers(chunk, name)
    bad = ~np.isfinite(X).all(axis=0)
    if X.dtype == np.float64:
        bad |= (np.abs(X) > LARGEST).any(axis=0)
    if bad.any():
        raise ValueError(
            f"{name} has a value that is missing, infinite or too large in column "
            f"{columns[int(bad.argmax())]!r}: remove or replace these rows or values."
        )
    note: dict[str, Any] = {"rows": len(X), "columns": columns, "type": X.dtype.name}
    if labels is None:
        return note, {"X": X}
    if len(labels) != len(X):
        raise ValueError(f"{name} has {len(X)} rows, but {len(labels)} labels: {_ONE_EACH}")
    found = encode_labels(labels, unlabeled=unlabeled, none=True)
    if found.classes.dtype.kind == "S":
        raise ValueError(f"{name}: labels of bytes are not offered here. Turn them into text.")
    note["classes"] = found.classes.tolist() if (found.codes >= 0).any() else []
    return note, {"X": X, "codes": found.codes.astype(np.int32)}


def _numbers(chunk: Any, name: str) -> tuple[list[str], Array]:
    """Return names of columns, and rows in the float type that holds them."""
    if hasattr(chunk, "column_names"):  # Arrow
        columns = [str(column) for column in chunk.column_names]
        arrays = [chunk.column(at).to_numpy() for at in range(chunk.num_columns)]
    elif hasattr(chunk, "columns"):  # pandas
        columns = [str(column) for column in chunk.columns]
        arrays = [chunk[column].to_numpy() for column in chunk.columns]
    else:
        chunk = np.asarray(chunk)
        columns, arrays = [str(at) for at in range(chunk.shape[1])], [chunk]
    wrong = next((c for c, a in zip(columns, arrays) if a.dtype.kind not in "fiub"), None)
    if wrong is not None:
        raise ValueError(f"{name}: column {wrong!r} holds no numbers. Leave it out or encode it.")
    if not arrays:
        raise ValueError(f"{name} has no column of numbers beside the labels: add some.")
    single = all(array.dtype.name in _SINGLE for array in arrays)
    dtype = np.float32 if single else np.float64
    if len(arrays) == 1 and arrays[0].ndim == 2:
        return columns, np.ascontiguousarray(arrays[0], dtype=dtype)
    return columns, np.column_stack(arrays).astype(dtype, copy=False)


def checked(notes: list[dict[str, Any]], source: Source) -> EncodedLabels:
    """Return the classes of all chunks, or raise ValueError if chunks do not go together."""
    first = notes[0]
    described = [(column, first["type"]) for column in first["columns"]]
    for note, name in zip(notes, source.names):
        here = [(column, note["type"]) for column in note["columns"]]
        if here != described:
            raise ValueError(_other_columns(name, here, source.names[0], described))
    if sum(note["rows"] for note in notes) < 2:
        raise ValueError("X has fewer than 2 rows.")
    if "classes" not in first:
        raise ValueError("y is missing: pass labels, or the name of their column.")
    classes = [label for note in notes for label in note["classes"]]
    if not classes:
        raise ValueError(
            "No row of any part has a label: label at least one, or change `unlabeled`."
        )
    return encode_labels(classes, unlabeled=None)


def numbers_of(classes: list[Any], labels: EncodedLabels) -> list[int]:
    """Return the numbers among all classes of those of a chunk."""
    known = labels.classes.tolist()
    return [known.index(label) for label in classes]
