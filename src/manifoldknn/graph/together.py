"""Machines that share the rows of a graph, and the one machine that has them all.

A step that looks at all rows says so: it asks for a `sum` or a `max` over machines, or for the
`halo`, the rows of others that its own rows touch. One machine answers itself. Steps are then
written once. Rows of a machine are its own, numbered first, and after them the halo.
"""

from typing import Any, Self

import numpy as np

from manifoldknn.base import Array, Ints

_NOBODY = np.empty(0, dtype=np.intp)


class Alone:
    """One machine: all rows are its own.

    >>> ALONE.sum(3.0), ALONE.own(10)
    (3.0, 10)
    """

    size, rank = 1, 0

    def own(self, n_rows: int) -> int:
        """Return how many of so many rows are its own."""
        return n_rows

    def sum(self, values: Any) -> Any:
        """Return the sum over machines, the same on all of them."""
        return values

    def max(self, values: Any) -> Any:
        """Return the maximum over machines, the same on all of them."""
        return values

    def halo(self, values: Any) -> Any:
        """Return values of own rows, and after them those of the halo, from where they are."""
        return values

    def halo_and_sum(self, values: Any, terms: Any) -> tuple[Any, Any]:
        """Return the `halo` of values and the `sum` of terms of their type, asked for at once."""
        return values, terms

    def gathered_and_sum(self, values: Any, terms: Any) -> tuple[Any, Any]:
        """Return values of all machines, in order, and the `sum` of terms, asked for at once."""
        return values, terms

    def any(self, truth: Any) -> bool:
        """Tell whether something is true on some machine."""
        return bool(self.max(truth))

    def all(self, truth: Any) -> bool:
        """Tell whether something is true on every machine."""
        return not self.max(not truth)

    def log_sum(self, logs: Array) -> Array:
        """Return log Σ exp over machines."""
        return logs

    def median(self, values: Array) -> float:
        """Return the median of the values of all machines."""
        return float(np.median(values))

    def joined(self, part: Ints, log_s: Any, group: Ints) -> Ints:
        """Return parts of own rows, joined over entries with the halo and over groups."""
        del log_s, group
        return part

    def shared_rows(self) -> Ints:
        """Return rows that others look at, and the halo."""
        return _NOBODY

    def restricted(self, rows: Ints) -> tuple[Ints, Self]:
        """Return which rows of the halo are left beside some own rows, and who shares those."""
        del rows
        return _NOBODY, self


ALONE = Alone()
