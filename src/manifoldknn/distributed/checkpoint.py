"""The folder of a fit: whether it is of this fit, seen by all workers, and large enough."""

from __future__ import annotations

import json
import os
import shutil
import uuid
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from manifoldknn.base.atomic import replaced_file, temporary_folder
from manifoldknn.distributed.folder import Folder

_SEEN = "to-be-seen-"  # how files begin that only show whether a folder can be used
_BYTES_PER_ROW = 2500  # of lists, candidates and edges in the folder, beside the row itself


def token_of(value: Any) -> str:
    """Return what tells data from other data."""
    from dask.base import tokenize

    return str(tokenize(value))


def temporary() -> Folder:
    """Return a new folder that is deleted when nobody holds it any more, or after a kill later."""
    held = ExitStack()
    folder = Folder(held.enter_context(temporary_folder()).resolve())
    weakref.finalize(folder, held.close)
    return folder


@contextmanager
def checkpoint_folder(
    client: Any, where: Any, about: dict[str, str], resume: bool
) -> Iterator[Folder]:
    """Make the folder of a fit, or look whether the one that is there is of this fit.

    Without a place for it (`where`), it is a temporary one. `about` tells fits apart.
    """
    folder = temporary() if where is None else Folder(Path(where).resolve())
    path = folder.path
    try:
        path.mkdir(parents=True, exist_ok=True)
        begun = path / "checkpoint.json"
        fresh = not begun.exists()
        if not fresh:
            _check_resumed(json.loads(begun.read_text()), about, path, resume)
        elif any(not _is_left(found.name) for found in path.iterdir()):
            raise ValueError(f"{path} is not empty, and holds no checkpoint: choose another.")
        _check_seen_by_all(client, path)
        with replaced_file(begun) as file:
            file.write(json.dumps(about).encode())
    except OSError as error:
        raise ValueError(f"The checkpoint folder {path} cannot be used: {error}.") from error
    try:
        yield folder
    except BaseException as error:
        # Nobody goes on from rows or labels that have to be corrected.
        if fresh and isinstance(error, ValueError):
            shutil.rmtree(path, ignore_errors=True)
        raise


def _is_left(name: str) -> bool:
    """Tell whether a file may be of a run that was killed before there was a checkpoint."""
    return name.startswith(_SEEN) or name.endswith(".part")


def _check_resumed(before: dict[str, Any], now: dict[str, Any], path: Path, resume: bool) -> None:
    if not resume:
        raise ValueError(
            f"{path} holds a checkpoint already: go on with it by resume=True, or choose another "
            "folder."
        )
    other = [name for name in now if before.get(name) != now[name]]
    if other:
        raise ValueError(
            f"The checkpoint in {path} is of another fit: {', '.join(other)} "
            f"{'was' if len(other) == 1 else 'were'} different. Choose another folder."
        )


def _check_seen_by_all(client: Any, path: Path) -> None:
    """Raise ValueError unless all workers see the folder and can write there."""
    for left in path.glob(f"{_SEEN}*"):  # by a run that was killed
        left.unlink(missing_ok=True)
    name = f"{_SEEN}{uuid.uuid4().hex}"
    (path / name).write_bytes(b"?" * 4096)
    try:
        found = client.run(_sees, str(path.resolve()), name)
    finally:
        (path / name).unlink(missing_ok=True)
    wrong = {worker: why for worker, why in found.items() if why}
    if wrong:
        worker, why = next(iter(wrong.items()))
        raise ValueError(
            f"Worker {worker} cannot use the checkpoint folder {path}: {why}. Name a folder that "
            "all workers see and may write to."
        )


def _sees(path: str, name: str) -> str:
    """Return what keeps a worker from using a folder; nothing if nothing does."""
    try:
        if not os.path.exists(os.path.join(path, name)):
            return "it does not see what this machine writes there"
        own = os.path.join(path, f"{_SEEN}{uuid.uuid4().hex}")
        with open(own, "wb") as file:
            file.write(b"?" * 4096)
        os.remove(own)
    except OSError as error:
        return str(error)
    return ""


def check_room(folder: Folder, n_rows: int, n_columns: int) -> None:
    """Raise ValueError unless there is room for the pieces of so many rows and columns."""
    needed = n_rows * (_BYTES_PER_ROW + 16 * n_columns)
    free = shutil.disk_usage(folder.path).free
    if free < needed:
        raise ValueError(
            f"The checkpoint folder {folder.path} has room for {free / 1e9:.1f} GB, but about "
            f"{needed / 1e9:.1f} GB are needed."
        )
