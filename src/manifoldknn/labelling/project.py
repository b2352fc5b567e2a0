"""From a file to a desk: rows as people see them, features, and the journal beside the file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from manifoldknn.labelling.board import plain_name
from manifoldknn.labelling.desk import Desk
from manifoldknn.labelling.journal import Journal, file_fingerprint
from manifoldknn.labelling.rows import Pixels, Rows, as_pixels, pixel_columns
from manifoldknn.tables.inputs import is_stream
from manifoldknn.tables.session import Session, open_input, prepare
from manifoldknn.tables.table import Table, TableError

_MOST_COLUMNS = 12  # that are shown unless somebody chooses


def open_desk(options: argparse.Namespace) -> tuple[Desk, list[str]]:
    """Open file and journal as the options say; return the desk, and what to tell the user."""
    if is_stream(options.file):
        raise TableError("label needs a file with a name, since a journal belongs to it")
    path = Path(options.file)
    table = open_input(path, options.format, options.delimiter, options.encoding)
    if not table.n_rows:
        raise TableError(f"{path} has no rows: there is nothing to label")
    named = [*(options.show or ()), options.image, options.text]
    for name in named:
        if name is not None and name not in table.names:
            some = ", ".join(table.names[:12])
            raise TableError(f"no column {name!r} to show; the columns are: {some}")
    drop = [name for name in (options.image, options.text) if name is not None]
    if not options.features:
        options.drop = [*(options.drop or ()), *drop]
    if not isinstance(options.class_prior, str | None):
        raise TableError("--class-prior: classes come and go here, so say equal or labeled")
    options.must_link = options.cannot_link = None
    hidden = {options.label, options.id, options.image, *table.index_names, *(options.drop or ())}
    shown = [name for name in table.names if name not in hidden]
    pixels = None if options.show or options.image else _pixels(table, shown)
    session, X, _ = prepare(table, options)
    rows = _rows(path, session, X, shown, pixels, options)
    place = Path(options.journal or f"{path}.labels.sqlite")
    journal = Journal(place, file_fingerprint(path), path.name)
    classes = [name.strip() for name in options.classes.split(",")] if options.classes else []
    desk = Desk(
        rows, journal, session.classifier,
        classes=[name for name in classes if name], overlap=options.overlap,
    )  # fmt: skip
    return desk, [*session.notes, f"labels are kept in {place}"]


def _rows(
    path: Path,
    session: Session,
    X: Any,
    names: list[str],
    pixels: Pixels | None,
    options: argparse.Namespace,
) -> Rows:
    """Return what people see: chosen columns, or the first of `names` that say something."""
    table, labels = session.table, session.labels
    silent = {use.name for use in session.columns if use.plain}
    silent.update(pixels.names if pixels else ())
    names = options.show or [name for name in names if name not in silent][:_MOST_COLUMNS]
    names = [name for name in names if name != options.text]
    names = [options.text, *names] if options.text else names
    image = [options.image] if options.image else []
    given = np.flatnonzero(labels != "").tolist()
    texts = table.texts(list(dict.fromkeys([*names, *image])))
    return Rows(
        name=path.name,
        ids=[str(name) for name in session.ids.tolist()],
        cells={name: texts[name] for name in names},
        X=X,
        given={row: plain_name(labels[row]) or labels[row] for row in given},
        text=options.text,
        image=texts[options.image] if options.image else None,
        folder=path.parent,
        pixels=pixels,
    )


def _pixels(table: Table, names: list[str]) -> Pixels | None:
    """Return rows as pictures, if columns are called like pixels and hold such values."""
    names = pixel_columns(names)
    if not names or any(table.kind(name) not in ("text", "number") for name in names):
        return None
    return as_pixels(names, table.chunks(names))
