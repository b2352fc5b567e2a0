"""Where answers go: what may be written is checked before the work begins."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.atomic import check_ordinary, replaced_file
from manifoldknn.tables.inputs import input_format, is_stream
from manifoldknn.tables.table import Table, TableError, format_of, packing_of

__all__ = [
    "answers", "check_format", "check_targets", "fills_stdout", "new_names", "spreadsheet_safe",
    "table_target", "write_table",
]  # fmt: skip

_FORMULA = tuple("=+-@")
NEW_COLUMNS = ("predicted", "confidence", "margin", "off_manifold", "unreached")


def table_target(options: argparse.Namespace) -> str:
    """Return where the table goes: ``--out``, or the input with "-labelled" before its suffix."""
    if options.out:
        return str(options.out)
    if is_stream(options.file):
        return "-"
    path = Path(options.file)
    if path.is_dir() or not path.name:
        raise TableError(f"{path} is a folder: name a file in it")
    packed = path.suffix if packing_of(path.name) else ""
    path = path.with_name(path.name.removesuffix(packed)) if path.stem else path
    suffix = ".npz" if path.suffix.lower() == ".npy" else path.suffix
    return str(path.with_name(f"{path.stem}-labelled{suffix}{packed}"))


def fills_stdout(options: argparse.Namespace) -> bool:
    """Tell whether a table goes to standard output, so that all else must go elsewhere.

    >>> fills_stdout(argparse.Namespace(command="classify", out=None, file="-"))
    True
    """
    wanted = options.command in ("classify", "predict")
    return wanted and (options.out == "-" or (not options.out and is_stream(options.file)))


def check_targets(
    options: argparse.Namespace, targets: Mapping[str, str | None], *, model: str | None = None
) -> None:
    """Say before the work begins that something cannot be written.

    `targets` are files to write, by the option that names them; `model` is one that is read, and so
    must not be written over.
    """
    read = {
        "the input itself": options.file,
        "the model itself": model,
        "what --must-link names": getattr(options, "must_link", None),
        "what --cannot-link names": getattr(options, "cannot_link", None),
    }
    taken = {
        os.path.realpath(name): what for what, name in read.items() if name and not is_stream(name)
    }
    if targets.get("--out") == "-" and (sys.stdout is None or sys.stdout.closed):
        raise TableError("--out -: standard output is closed: name a file")
    for option, name in targets.items():
        if name == "-" and option != "--out":
            raise TableError(f"{option} -: only the table can go to standard output; name a file")
        if name is None or name == "-":
            continue
        path = Path(name)
        _check_place(path, options.force)
        place = os.path.realpath(path)
        if place in taken:
            raise TableError(f"{option} {path} is {taken[place]}: choose another name")
        if path.exists():
            _check_not_same(option, path, taken)
            if not options.force:
                raise FileExistsError(f"{path} exists already")
        taken[place] = f"also what {option} names"


def _check_place(path: Path, force: bool) -> None:
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise TableError(f"there is no folder {path.parent}: make it, or choose another place")
    check_ordinary(path)
    if not os.access(path.parent, os.W_OK) and (force or not path.exists()):
        raise TableError(f"nothing may be written in {path.parent}: choose another place")


def _check_not_same(option: str, path: Path, taken: dict[str, str]) -> None:
    """Refuse other names (hard links) of files that are in use already."""
    for place, what in taken.items():
        if os.path.exists(place) and path.samefile(place):
            raise TableError(f"{option} {path} is {what}: choose another name")


def check_format(target: str, options: argparse.Namespace, table: Table) -> None:
    """Refuse an output whose suffix promises another format, or packing, than the input has."""
    source = input_format(options)
    wanted = None if target == "-" else format_of(target)
    source = {"npy": "npz"}.get(str(source), source)
    if wanted is not None and wanted != source:
        raise TableError(
            f"--out {target} is {wanted} and the input is {source}: the format stays, so let the "
            f"name end in .{source}"
        )
    packing = table.manner.get("compression", "")
    if wanted is not None and packing_of(target) != packing:
        suffix = {"gzip": ".gz", "zstd": ".zst"}.get(packing, "")
        raise TableError(
            f"--out {target}: the input is {packing or 'not packed'} and stays so, so let the name "
            f"end in .{source}{suffix}"
        )


def new_names(table: Table, prefix: str) -> list[str]:
    """Return the five names of the columns to add, or say that one is taken."""
    names = [prefix + name for name in NEW_COLUMNS]
    taken = [name for name in names if name in table.taken_names]
    if taken:
        raise TableError(
            f"the file has a column {taken[0]!r} already: put something before the new names with "
            "--prefix new_"
        )
    return names


def spreadsheet_safe(texts: list[str], options: argparse.Namespace, notes: list[str]) -> list[str]:
    """Return labels as they are written to a text file, and note those that look like formulas.

    They stay what they are, unless ``--escape-formulas`` puts an apostrophe before them.

    >>> texts, notes = ["-1", "=1+1", "a"], []
    >>> spreadsheet_safe(texts, argparse.Namespace(escape_formulas=True, format="csv"), notes)
    ['-1', "'=1+1", 'a']
    """
    if input_format(options) not in ("csv", "tsv"):
        return texts  # what has types holds text as text
    odd = {text for text in set(texts) if text[:1] in _FORMULA and not _is_number(text)}
    if options.escape_formulas:
        return [f"'{text}" if text in odd else text for text in texts]
    if odd:
        notes.append(
            f"{len(odd)} label(s) or id(s) begin with =, +, - or @, such as {min(odd)[:60]!r}: a "
            "spreadsheet takes them for formulas; --escape-formulas puts ' before them"
        )
    return texts


def _is_number(text: str) -> bool:
    try:
        return bool(float(text.replace(",", ".")) or True)
    except ValueError:
        return False


def write_table(
    table: Table, target: str, added: dict[str, NDArray[Any]], options: argparse.Namespace
) -> None:
    """Write the table with its new columns, whole or not at all; "-" is standard output."""
    if target == "-":
        buffer = io.BytesIO()
        table.write(buffer, added)
        sys.stdout.buffer.write(buffer.getvalue())
        return
    with replaced_file(target, force=options.force) as file:
        table.write(file, added)


def answers(
    shares: NDArray[np.float64], codes: NDArray[np.intp], unreached: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of the answer, and its lead over the largest share of another class.

    A given label that loses the vote has a margin below 0. Where the classifier abstains, -1 in
    `codes`, they are those of the answer it would have given. Both are 0 where no label reaches the
    row, so that its answer is a guess that nobody voted for.

    >>> shares = np.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0]])
    >>> answers(shares, np.array([0, 1, 0]), np.array([False, False, True]))
    (array([0.75, 0.25, 0.  ]), array([ 0.5, -0.5,  0. ]))
    """
    rows, chosen = np.arange(len(shares)), np.where(codes >= 0, codes, shares.argmax(axis=1))
    voted = ~unreached
    own = shares[rows, chosen]
    others = shares.copy()
    others[rows, chosen] = 0.0
    return np.where(voted, own, 0.0), np.where(voted, own - others.max(axis=1), 0.0)
