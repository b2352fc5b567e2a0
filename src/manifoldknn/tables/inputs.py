"""Where a table comes from: a file, or a stream that is kept in a temporary file first."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from manifoldknn.base.atomic import temporary_folder
from manifoldknn.tables.session import open_input
from manifoldknn.tables.table import Table, TableError, format_of, is_device

_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def is_stream(name: str) -> bool:
    """Tell whether a name stands for something that can be read only once: a pipe, a device.

    Examples
    --------
    >>> from manifoldknn.tables.inputs import is_stream
    >>> is_stream("-"), is_stream("/dev/stdin"), is_stream("no such file.csv")
    (True, True, False)
    """
    if name == "-" or name.startswith(_STREAMS):
        return True
    path = Path(name)
    return path.exists() and not path.is_file() and not path.is_dir()


def input_format(options: argparse.Namespace) -> str | None:
    """Return the format of the input: as told, by its suffix, or CSV for a stream."""
    if options.format:
        return str(options.format)
    return format_of(options.file) or ("csv" if is_stream(options.file) else None)


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[Table]:
    """Open the input; what can be read only once is kept in a temporary file."""
    form = input_format(options)
    if not is_stream(options.file):
        yield open_input(Path(options.file), form, options.delimiter, options.encoding)
        return
    with temporary_folder() as folder:
        path = folder / "standard input"
        try:
            with path.open("wb") as file:
                _copy(options.file, file)
        except OSError as error:
            if error.errno is not None and error.filename is None:
                error.filename = str(path)  # a full disk does not say what was written
            raise
        yield open_input(path, form, options.delimiter, options.encoding)


def _copy(name: str, file: IO[bytes]) -> None:
    if name == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise TableError("standard input is closed: name a file, or send one with < FILE")
        _check_ends(sys.stdin.buffer, "standard input")
        shutil.copyfileobj(sys.stdin.buffer, file)
        return
    with Path(name).open("rb") as source:
        _check_ends(source, name)
        shutil.copyfileobj(source, file)


def _check_ends(source: IO[bytes], name: str) -> None:
    """Refuse devices such as /dev/zero, of which there is no end; a terminal has one."""
    with suppress(OSError):  # somebody's own stream
        if not source.isatty() and is_device(source.fileno()):
            raise TableError(f"{name} is a device, which may never end: name a file")
