"""Where the command ``manifoldknn`` begins: before anything that takes time is imported."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

_TERMINATED = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; an interruption, even of the imports, leaves one line and no half file.

    Exit codes are those of `manifoldknn.cli.main.run`, and 143 if told to terminate.
    """
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, _terminate)
    _keep_closed_streams()
    try:
        from manifoldknn.cli.options import build_parser

        options = build_parser().parse_args(arguments)  # help and wrong options wait for nothing
        from manifoldknn.cli.main import run

        return run(options)
    except KeyboardInterrupt:
        print("manifoldknn: error: interrupted: nothing was written", file=sys.stderr)
        return 130
    except (MemoryError, ImportError):
        if not _is_limited():
            raise
        print(
            "manifoldknn: error: the limit on address space leaves no room to load the libraries: "
            "raise it to 1.5 GB or more (ulimit -v 1500000)",
            file=sys.stderr,
        )
        return 2


def _is_limited() -> bool:
    """Tell whether there is a limit on address space."""
    try:
        import resource  # not on Windows
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


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
