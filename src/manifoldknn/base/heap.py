"""Memory that arrays have left, handed back to the system.

The C library keeps what was freed for later. In a command with a dozen stages, each
with large arrays of its own, that adds up to a third of the peak.
"""

import ctypes
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_MMAP_THRESHOLD and M_ARENA_MAX of <malloc.h>
_LARGE = 1 << 22
_spare: WeakSet[Any] = WeakSet()


def return_large_arrays_at_once() -> None:
    """Let arrays of four megabytes and more go back to the system as soon as they are freed.

    Smaller ones of all threads share one heap, so that what one leaves another takes.
    """
    with suppress(AttributeError, OSError, TypeError):  # other C libraries have no mallopt
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_ARENA_MAX, 1)


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
