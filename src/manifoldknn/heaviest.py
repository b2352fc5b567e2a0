"""The heaviest voters of every row, from blocks of label columns that come one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Heaviest", "Selection", "row_slices"]

_ROWS_AT_ONCE = 1 << 14  # for sorting


@dataclass(frozen=True)
class Selection:
    """The heaviest voters of every row so far, in no order; -inf where there are fewer."""

    values: NDArray[Any]
    voters: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        values: NDArray[Any],
        block: NDArray[np.intp],
        n_kept: int,
        least: NDArray[Any] | None = None,
    ) -> Selection:
        """Select among the columns of one block, of which only those above `least` matter."""
        numbers = block.astype(np.int32)
        if values.shape[1] <= n_kept:
            return cls(values, np.broadcast_to(numbers, values.shape))
        if least is not None and least.any():
            # Few are left, and looking at all is much cheaper than sorting all.
            row, column = np.nonzero(values > least)
            value = values[row, column]
            order = np.lexsort((-value, row))
            row, column, value = row[order], column[order], value[order]
            rank = np.arange(len(row)) - np.searchsorted(row, row)
            top = rank < n_kept
            shape = (len(values), int(rank[top].max(initial=0)) + 1)
            out = cls(np.full(shape, -np.inf, dtype=values.dtype), np.zeros(shape, dtype=np.int32))
            out.values[row[top], rank[top]] = value[top]
            out.voters[row[top], rank[top]] = numbers[column[top]]
            return out
        heaviest = np.argpartition(values, -n_kept, axis=1)[:, -n_kept:]
        return cls(np.take_along_axis(values, heaviest, axis=1), numbers[heaviest])


class Heaviest:
    """A running selection of the heaviest voters of every row.

    Selections are put aside until there are as many columns as are kept: looking for the
    heaviest costs about the same for few new columns as for many. Where all columns are
    kept there is nothing to look for, and each goes to its place as it comes.

    Parameters
    ----------
    n_kept : int
        How many to keep per row.
    n_columns : int
        How many will come in all.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.heaviest import Heaviest, Selection
    >>> heaviest = Heaviest(n_kept=2, n_columns=3)
    >>> heaviest.add(Selection.of(np.array([[5.0, 1.0]]), np.array([0, 1]), 2))
    >>> heaviest.add(Selection.of(np.array([[3.0]]), np.array([2]), 2))
    >>> sorted(heaviest.chosen().voters[0].tolist())
    [0, 2]
    """

    def __init__(self, n_kept: int, n_columns: int) -> None:
        self._n_kept, self._n_columns = n_kept, n_columns
        self._everything: NDArray[Any] | None = None
        self._aside: list[Selection] = []
        self._new = 0
        self._full = False

    def add(self, selection: Selection) -> None:
        """Take another selection into account."""
        if self._n_columns <= self._n_kept and selection.values.shape[1] < self._n_columns:
            self._put(selection)
            return
        self._aside.append(selection)
        self._new += selection.values.shape[1]
        if self._new >= self._n_kept:
            self._merge()

    def least(self) -> NDArray[Any] | None:
        """Return the smallest value kept of every row, if as many as wanted are kept."""
        if not self._full:
            return None
        smallest: NDArray[Any] = self._aside[0].values.min(axis=1)
        return smallest

    def chosen(self) -> Selection:
        """Return the heaviest of all."""
        if self._everything is not None:
            numbers = np.broadcast_to(self._numbers, self._everything.shape)
            return Selection(self._everything, numbers)
        self._merge()
        return self._aside[0]

    def _put(self, selection: Selection) -> None:
        """Put columns in their place, as all are kept; memory is taken column by column."""
        n = len(selection.values)
        if self._everything is None:
            self._everything = np.empty((self._n_columns, n), dtype=selection.values.dtype).T
            self._numbers = np.empty(self._n_columns, dtype=np.int32)
        here = slice(self._new, self._new + selection.values.shape[1])
        self._everything[:, here] = selection.values
        self._numbers[here] = selection.voters[0]
        self._new = here.stop

    def _merge(self) -> None:
        self._new = 0
        if len(self._aside) == 1:
            self._full = self._aside[0].values.shape[1] == self._n_kept
            return
        first, n_kept = self._aside[0].values, self._n_kept
        width = min(n_kept, sum(one.values.shape[1] for one in self._aside))
        shape = len(first), width
        values, voters = first, self._aside[0].voters
        if first.shape != shape or not voters.flags.writeable:
            values, voters = np.empty(shape, first.dtype), np.empty(shape, np.int32)
        for rows in row_slices(len(first)):
            candidates = np.hstack([one.values[rows] for one in self._aside])
            numbers = np.hstack([one.voters[rows] for one in self._aside])
            if width < candidates.shape[1]:
                heaviest = np.argpartition(candidates, -width, axis=1)[:, -width:]
                candidates = np.take_along_axis(candidates, heaviest, axis=1)
                numbers = np.take_along_axis(numbers, heaviest, axis=1)
            values[rows], voters[rows] = candidates, numbers
        self._aside = [Selection(values, voters)]
        self._full = width == n_kept


def row_slices(n: int) -> list[slice]:
    """Return slices of some thousand rows that cover n of them."""
    return [slice(start, start + _ROWS_AT_ONCE) for start in range(0, n, _ROWS_AT_ONCE)]
