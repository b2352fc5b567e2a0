"""Where the command ``manifoldknn`` begins: before anything that takes time is imported."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NoReturn

from manifoldknn.cli.json_text import fail_early

_TERMINATED = 128 + signal.SIGTERM
_LEAST_ROOM = 700e6  # bytes of address space; with less, libraries may wait for ever for memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; an interruption, even of the imports, leaves one line and no half file.

    Exit codes are those of `manifoldknn.cli.main.run`, and 143 if told to terminate.
    """
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _terminate)
    _keep_closed_streams()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        from manifoldknn.cli.options import build_parser

        options = build_parser().parse_args(arguments)  # help and wrong options wait for nothing
        if _room() < _LEAST_ROOM:
            raise MemoryError
        with nullcontext() if _needs_pandas(options) else _without_pandas():
            from manifoldknn.cli.main import run

            return run(options)
    except KeyboardInterrupt:
        fail_early("interrupted: nothing was written", 130, given)
        return 130
    except (MemoryError, ImportError):
        if _room() == float("inf"):
            raise
        message = (
            "the limit on address space leaves no room to load the libraries: raise it to 1.5 GB "
            "or more (ulimit -v 1500000)"
        )
        fail_early(message, 2, given)
        return 2


def _room() -> float:
    """Return the limit on address space in bytes."""
    try:
        import resource  # not on Windows
    except ImportError:
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else float(limit)


def _needs_pandas(options: Any) -> bool:
    return options.command == "reproduce" or getattr(options, "scheduler", None) is not None


class _NoPandas:
    """A finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Raise ModuleNotFoundError for pandas, as if it were not installed."""
        if name == "pandas":
            raise ModuleNotFoundError("the command does without pandas", name=name)


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Keep scikit-learn and Arrow from importing pandas: 30 MB that no file of a user needs."""
    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _keep_closed_streams() -> None:
    """Put nothing where a standard stream is closed, lest a file of ours takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one


def _terminate(*_: Any) -> NoReturn:
    """End as an exception does, so that temporary files are removed on the way."""
    raise SystemExit(_TERMINATED)
