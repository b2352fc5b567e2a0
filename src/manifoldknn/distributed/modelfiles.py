"""Models as files: Parquet for every part and chunk, cells, and a manifest that is written last.

A model is written aside and gets its name when it is whole. The manifest names every file and its
size: what was cut off or lost is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from manifoldknn.base import Array
from manifoldknn.base.atomic import replaced_folder
from manifoldknn.distributed.folder import Folder

_FORM = "manifoldknn distributed model 1"
_PART: dict[str, tuple[str, ...]] = {
    "part": ("X", "cell", "order", "codes"),
    "walk": ("logs", "log_scale"),
}
_CELLS: dict[str, tuple[str, ...]] = {
    "cells": ("centers", "center", "axes"),
    "split": ("part",),
    "belonging": ("gaps", "values"),
}
_CHUNK: dict[str, tuple[str, ...]] = {"write": ("codes", "shares")}


def save_model(folder: Folder, target: Path, about: dict[str, Any]) -> None:
    """Write a model into a folder that is not there yet."""
    with _whole(target) as aside:
        n_parts = len(about["model"]["offsets"]) - 1
        for part in range(n_parts):
            _write(aside / f"part-{part:05d}.parquet", folder, part, _PART)
        for chunk in range(len(about["chunks"])):
            _write(aside / f"answers-{chunk:05d}.parquet", folder, chunk, _CHUNK)
        for stage, names in _CELLS.items():
            for name in names:
                _write(aside / f"{stage}-{name}.parquet", folder, 0, {stage: (name,)})
        sizes = {path.name: path.stat().st_size for path in sorted(aside.iterdir())}
        manifest = {"form": _FORM, "files": sizes, **about}
        (aside / "manifest.json").write_text(json.dumps(manifest))


def write_answers(folder: Folder, target: Path, classes: Array, n_chunks: int, prefix: str) -> None:
    """Write answers for all rows, chunk by chunk, into a folder that is not there yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _whole(target) as aside:
        for chunk in range(n_chunks):
            codes, shares = (folder.read("write", chunk, name) for name in _CHUNK["write"])
            own = shares[np.arange(len(codes)), codes]
            np.put_along_axis(shares, codes[:, None].astype(np.intp), -np.inf, axis=1)
            others = shares.max(axis=1, initial=0.0)
            columns = {"predicted": classes[codes], "confidence": own, "margin": own - others}
            named = {prefix + name: pa.array(values) for name, values in columns.items()}
            pq.write_table(pa.table(named), aside / f"part-{chunk:05d}.parquet")


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Give a folder that gets its name when the block ends well."""
    if target.exists():
        raise FileExistsError(f"{target} exists already: choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replaced_folder(target) as aside:
        yield aside


def load_model(source: Path, folder: Folder) -> dict[str, Any]:
    """Unpack a model into a folder, and return what is known about it."""
    try:
        about = dict(json.loads((source / "manifest.json").read_text()))
    except (OSError, ValueError) as error:
        raise ValueError(f"{source} holds no model: its manifest cannot be read.") from error
    if about.get("form") != _FORM:
        raise ValueError(f"{source} holds a model of another form: {about.get('form')!r}.")
    for name, size in about["files"].items():
        path = source / Path(name).name
        if not path.is_file() or path.stat().st_size != size:
            raise ValueError(f"The model in {source} is not whole: {name} is missing or cut off.")
    for part in range(len(about["model"]["offsets"]) - 1):
        _read(source / f"part-{part:05d}.parquet", folder, part, _PART)
    for chunk in range(len(about["chunks"])):
        _read(source / f"answers-{chunk:05d}.parquet", folder, chunk, _CHUNK)
    for stage, names in _CELLS.items():
        arrays = {
            name: _arrays(source / f"{stage}-{name}.parquet", (name,))[name] for name in names
        }
        folder.write(stage, 0, {}, **arrays)
    return about


def _write(path: Path, folder: Folder, number: int, stages: dict[str, tuple[str, ...]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for stage, names in stages.items():
        for name in names:
            array = folder.read(stage, number, name)
            columns[name] = pa.array(array.ravel()) if array.ndim == 1 else _lists(array)
    pq.write_table(pa.table(columns), path)


def _lists(array: Array) -> Any:
    import pyarrow as pa

    width = array.shape[1]
    if not width:  # Arrow has no lists of nothing
        return pa.nulls(len(array), pa.float32())
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), width)


def _arrays(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, out = pq.read_table(path), {}
    for name in names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if pa.types.is_fixed_size_list(column.type):
            width = column.type.list_size
            out[name] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        elif column.null_count:
            out[name] = np.empty((len(column), 0), dtype=np.float32)
        else:
            out[name] = column.to_numpy(zero_copy_only=False)
    return out


def _read(path: Path, folder: Folder, number: int, stages: dict[str, tuple[str, ...]]) -> None:
    arrays = _arrays(path, tuple(name for names in stages.values() for name in names))
    for stage, names in stages.items():
        folder.write(stage, number, {}, **{name: arrays[name] for name in names})
