"""Files that are there whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_USUAL_MODE = 0o666


@contextmanager
def replaced_file(path: str | os.PathLike[str], *, force: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `path` once the block ends well.

    Whatever goes wrong inside the block, an interruption included, leaves `path` as it was and no
    temporary file behind. FileExistsError if `path` exists and `force` is false; ValueError if it
    is no ordinary file: a device or a pipe is never replaced.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "answer.txt"
    ...     with replaced_file(path) as file:
    ...         _ = file.write(b"42")
    ...     path.read_text()
    '42'
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    check_ordinary(target)
    if not force and target.exists():
        raise FileExistsError(f"{path} exists already")
    handle, temporary = tempfile.mkstemp(
        prefix=f".{target.name}.", suffix=".part", dir=target.parent
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of(target))
        if force:
            check_ordinary(target)  # somebody may have made it meanwhile
            os.replace(temporary, target)
        else:
            _move_without_replacing(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)  # a full disk does not say what was written
        Path(temporary).unlink(missing_ok=True)
        raise


def check_ordinary(path: Path) -> None:
    """Raise ValueError if something that is no ordinary file has that name."""
    if path.exists() and not path.is_file():
        raise ValueError(
            f"{path} is no ordinary file (a folder, device or pipe) and is never replaced: choose "
            "another name"
        )


def _mode_of(target: Path) -> int:
    """Permissions of the file that is replaced, or those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return _USUAL_MODE & ~mask


def _move_without_replacing(temporary: Any, target: Path) -> None:
    """Move, unless somebody has made the target meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(f"{target} exists already") from None
        os.replace(temporary, target)
        return
    Path(temporary).unlink()
