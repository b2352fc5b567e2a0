"""Files that are there whole or not at all, one or several of them.

A killed run leaves temporary files. They go when the next one writes to the same place: a lock,
which ends with the process that holds it, tells them from what somebody is writing just now.
"""

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows: what a killed run leaves stays there
    fcntl = None  # type: ignore[assignment]

_LONGEST_NAME = 200  # bytes; most file systems allow 255, and ours are longer
_LEFT = ".part"
_RANDOM = r"[a-z0-9_]{8}"  # what tempfile puts into a name
_Moves = list[tuple[Path, Path, bool]]
_waiting: ContextVar[tuple[ExitStack, _Moves] | None] = ContextVar("_waiting", default=None)


@contextmanager
def replaced_file(path: str | os.PathLike[str], *, force: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the place of `path` once the block ends well.

    Whatever goes wrong inside the block, an interruption included, leaves `path` as it was and no
    temporary file behind. FileExistsError if `path` exists and `force` is false; ValueError if it
    is no ordinary file: a device or a pipe is never replaced. In `together` it waits for others.

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
    outer = _waiting.get()
    with ExitStack() as own:
        held, moves = (own, _Moves()) if outer is None else outer
        try:
            temporary = held.enter_context(_held(target.parent, f".{_short(target.name)}."))
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, _mode_of(target))
            moves.append((temporary, target, force))
            if outer is None:
                _name(moves)
        except OSError as error:
            if error.errno is not None and error.filename is None:
                error.filename = os.fspath(path)  # a full disk does not say what was written
            raise


@contextmanager
def together() -> Iterator[None]:
    """Let all that `replaced_file` writes inside the block appear at its end, or none of it."""
    moves = _Moves()
    with ExitStack() as held:
        token = _waiting.set((held, moves))
        try:
            yield
        finally:
            _waiting.reset(token)
        _name(moves)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that is gone after the block; if the process is killed, after the next."""
    with _held(Path(tempfile.gettempdir()), "manifoldknn-", folder=True) as path:
        yield path


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Make a folder that gets its name once the block ends well; nothing may have that name."""
    with _held(target.parent, f".{_short(target.name)}.", folder=True) as path:
        yield path
        os.chmod(path, _usual_mode(0o777))
        os.rename(path, target)


def _name(moves: _Moves) -> None:
    """Give temporary files their names; if one cannot have its, all is as it was."""
    with ExitStack() as always, ExitStack() as undo:
        for temporary, target, force in moves:
            old = temporary.with_suffix(f".old{_LEFT}")
            if len(moves) > 1 and force and target.exists():
                always.callback(old.unlink, missing_ok=True)
                _copy(target, old)
                undo.callback(os.replace, old, target)
            elif len(moves) > 1:
                undo.callback(_unname, target, temporary.stat().st_ino)
            if force:
                check_ordinary(target)  # somebody may have made it meanwhile
                os.replace(temporary, target)
            else:
                _move_without_replacing(temporary, target)
        undo.pop_all()


def _unname(target: Path, number: int) -> None:
    """Remove a file, if it is ours."""
    if target.exists() and target.stat().st_ino == number:
        target.unlink()


def _copy(source: Path, copy: Path) -> None:
    try:
        os.link(source, copy)
    except OSError:  # a file system without hard links
        shutil.copy2(source, copy)


def _short(name: str) -> str:
    """Return a name to which something can be added, also for one that is as long as can be."""
    code = os.fsencode(name)
    return name if len(code) <= _LONGEST_NAME else blake2b(code, digest_size=16).hexdigest()


@contextmanager
def _held(place: Path, prefix: str, *, folder: bool = False) -> Iterator[Path]:
    """Make a file or folder that is gone after the block, as are those that dead runs left."""
    _sweep(place, prefix)
    made: list[Path] = []
    lock = None
    try:
        while True:
            with _no_interrupt():
                if folder:
                    made.append(Path(tempfile.mkdtemp(_LEFT, prefix, place)))
                else:
                    handle, name = tempfile.mkstemp(_LEFT, prefix, place)
                    os.close(handle)
                    made.append(Path(name))
            lock = _locked(made[-1], wait=True)
            if made[-1].exists():  # nobody took it for dead before it was locked
                break
        yield made[-1]
    finally:
        for path in made:
            _remove(path)
        if lock is not None:
            os.close(lock)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Let signals wait: what is made in the block is known to somebody when they come."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sweep(place: Path, prefix: str) -> None:
    """Remove what runs left that were killed: nobody holds it."""
    ours = re.compile(rf"{re.escape(prefix)}{_RANDOM}(\.old)?{re.escape(_LEFT)}")
    with suppress(OSError):
        for entry in os.scandir(place):
            if ours.fullmatch(entry.name) and (lock := _locked(Path(entry.path))) is not None:
                with suppress(OSError):
                    _remove(Path(entry.path))
                os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _locked(path: Path, *, wait: bool = False) -> int | None:
    """Return the handle of a lock on a file or folder of ours, or None if it cannot be had."""
    if fcntl is None:
        return None
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.fstat(handle).st_uid == os.getuid():
                return handle
        except OSError:
            pass
        os.close(handle)
    return None


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
    return _usual_mode(0o666)


def _usual_mode(most: int) -> int:
    """Return the permissions that something new gets, of the most there may be."""
    mask = os.umask(0)
    os.umask(mask)
    return most & ~mask


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
