"""How far a run is, and how long it will still take."""

from __future__ import annotations

import math
import sys
import time
from typing import TextIO

_WIDTH = 24
_TRUST, _TRUSTED_SHARE = 5.0, 0.05  # work that estimates are trusted for: seconds, share of all
_BETWEEN_LINES = 10.0  # seconds, where lines cannot be drawn over


def duration(seconds: float) -> str:
    """Return a time in the unit a person would use.

    >>> duration(3.42), duration(42.1), duration(200), duration(7800)
    ('3.4 s', '42 s', '3 min', '2 h 10 min')
    """
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


class Bar:
    """A line on standard error, drawn over on a terminal and repeated now and then elsewhere.

    The time left is the estimated work left, corrected by how wrong the estimates were so far. Of
    `total` cells, `done` were finished before; `shared` are the estimated seconds of work that
    `jobs` processes share, `alone` those of work that runs by itself.
    """

    def __init__(
        self,
        total: int,
        done: int,
        *,
        shared: float,
        alone: float,
        jobs: int,
        quiet: bool = False,
        out: TextIO | None = None,
    ) -> None:
        self.total, self.done = total, done
        self._left = {False: shared, True: alone}
        self._jobs, self._quiet = jobs, quiet
        self._out = sys.stderr if out is None else out
        self._terminal = self._out.isatty()
        self._expected = self._taken = min(_TRUST, _TRUSTED_SHARE * (shared + alone)) or 1.0
        self._told, self._drawn, self._name = time.perf_counter(), 0, ""

    def advance(self, expected: float, taken: float, *, alone: bool, name: str) -> None:
        """Count a finished cell: seconds it was to take, and took."""
        self.done += 1
        self._left[alone] -= expected
        self._expected += expected
        self._taken += taken
        self._name = name
        self.show()

    @property
    def seconds_left(self) -> float:
        """Time that the rest will take."""
        work = max(self._left[False], 0) / self._jobs + max(self._left[True], 0)
        return work * self._taken / self._expected

    def show(self) -> None:
        """Draw the line, if it is time to."""
        now = time.perf_counter()
        if self._quiet or not self.total:
            return
        if not self._terminal and now - self._told < _BETWEEN_LINES and self.done < self.total:
            return
        self._told = now
        share = self.done / self.total
        text = f"{self.done} of {self.total} cells"
        if self.done < self.total:
            left = math.ceil(self.seconds_left)
            text += f", about {duration(left) if left >= 10 else f'{left} s'} left"
        if not self._terminal:
            self._out.write(f"[manifoldknn] {share:4.0%}  {text}\n")
        else:
            filled = round(_WIDTH * share)
            line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {text}"
            line += f"  ({self._name})" if self._name else ""
            self._out.write("\r" + line[:110].ljust(min(self._drawn, 110)))
            self._drawn = len(line)
        self._out.flush()

    def say(self, text: str) -> None:
        """Write a line of its own, even if quiet."""
        self.clear()
        self._out.write(text + "\n")
        self._out.flush()

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._terminal and self._drawn:
            self._out.write("\r" + " " * min(self._drawn, 110) + "\r")
            self._out.flush()
            self._drawn = 0
