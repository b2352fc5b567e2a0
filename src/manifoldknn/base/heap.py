"""Memory that arrays have left, handed back to the system.

The C library keeps what was freed for later. In a command with a dozen stages, each
with large arrays of its own, that adds up to a third of the peak.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names in <malloc.h> begin with M_
_LARGE = 1 << 22
_VERY_LARGE = 1 << 25  # bytes: the most that the C library does not ask the system for each time
_KEPT = 1 << 26
_spare: WeakSet[Any] = WeakSet()


def return_large_arrays_at_once() -> None:
    """Let arrays of four megabytes and more go back to the system as soon as they are freed.

    Smaller ones of all threads share one heap, so that what one leaves another takes.
    """
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no mallopt
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_ARENA_MAX, 1)


@contextmanager
def freed_arrays_kept() -> Iterator[None]:
    """Keep what arrays leave for the next, and hand it back in the end.

    A worker of Dask gives freed memory back at once (MALLOC_TRIM_THRESHOLD_ of its nanny): then
    iterations spend half of their time on pages that were given back and asked for again.
    """
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _VERY_LARGE)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
    try:
        yield
    finally:
        return_freed_memory()


def return_freed_memory() -> None:
    """Hand back what small arrays and other threads have left; some milliseconds."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))


def note_spare(holder: Any) -> None:
    """Remember whose `release` gives back memory that it fills again when it is asked."""
    _spare.add(holder)


def return_spare_memory() -> None:
    """Let go of what can be made again too: for who asks nothing of it for a while."""
    for holder in list(_spare):
        holder.release()
    return_freed_memory()
