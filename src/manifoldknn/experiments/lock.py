"""One run at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["only_run"]


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Make a folder and keep other runs out of it until the block ends.

    The system forgets the lock with the process, however that ends, and nothing is left in the
    folder. Where a system cannot lock folders, nobody is kept out.

    Parameters
    ----------
    folder : Path
        Made if it is not there.

    Raises
    ------
    ValueError
        If a run is working in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manifoldknn.experiments.lock import only_run
    >>> with tempfile.TemporaryDirectory() as name, only_run(pathlib.Path(name)):
    ...     with only_run(pathlib.Path(name)):  # doctest: +ELLIPSIS
    ...         pass
    Traceback (most recent call last):
    ...
    ValueError: another run is working in ...
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another run is working in {folder}: wait for it, or choose another folder with "
                "--out"
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)
