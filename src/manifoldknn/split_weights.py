"""Weights as the sum of a sparse part and a smooth one, and the heaviest of every row.

The smooth part is a product of thin matrices, W = S + FG, all without negative entries. Columns of
one class have nearly the same smooth weights, so for a row i and a class c

    max over j in c of w_ij  ≤  F_i · max_j G_j + max_j s_ij,

both maxima over the class. A class whose bound lies below what the heaviest weights of the row are
known to reach need not be looked at, and most rows need one class only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.nearest import NearestLabeled
from manifoldknn.restriction import run_starts
from manifoldknn.selection import heaviest_keys, merged_keys, unpacked

_ROUNDING = 1e-5  # of single precision in a bound, with room


class SplitWeights:
    """Weights between rows and labelled samples.

    Parameters
    ----------
    local : csr_array of shape (n_samples, n_labeled), float32
        The sparse part S, without duplicates.
    left, right : ndarray of shapes (n_samples, rank) and (rank, n_labeled), float32
        F and G.
    group : ndarray of shape (n_labeled,)
        Class of every labelled sample, from 0 on. Any classes are right; those whose
        columns of G are alike are quick.
    """

    def __init__(
        self,
        local: Any,
        left: NDArray[np.float32],
        right: NDArray[np.float32],
        group: NDArray[np.intp],
    ) -> None:
        # Columns are kept class by class; `numbers` says which they were.
        self._numbers = np.argsort(group, kind="stable")
        self._sizes = np.bincount(group)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        place = np.empty(len(group), dtype=local.indices.dtype)
        place[self._numbers] = np.arange(len(group))
        self._indptr, self._data = local.indptr, local.data
        self._columns = place[local.indices]
        self._group = group[self._numbers].astype(np.min_scalar_type(len(self._sizes)))
        self._left = left
        self._right = np.ascontiguousarray(right[:, self._numbers])
        starts = self._starts[:-1]
        self._most = np.maximum.reduceat(self._right, starts, axis=1)
        self._least = np.minimum.reduceat(self._right, starts, axis=1)

    @property
    def largest_class(self) -> int:
        """Labelled samples of the largest class."""
        return int(self._sizes.max())

    def heaviest(self, rows: slice, n_kept: int) -> NearestLabeled:
        """Return the heaviest weights of some rows.

        Parameters
        ----------
        rows : slice
            Rows, with a start.
        n_kept : int
            How many per row, at most the number of labelled samples.

        Returns
        -------
        NearestLabeled
            Weights and labelled samples, heaviest first.

        Notes
        -----
        Costs O(l·rank/C) products and comparisons for every class that a row needs.
        """
        left = self._left[rows]
        n_rows = len(left)
        row, column, value = self._entries(rows.start, n_rows)
        ends = np.searchsorted(column, self._starts)
        needed = self._needed_classes(left, row, column, value, n_kept)
        table = np.zeros((n_rows, n_kept), dtype=np.uint64)
        place = np.empty(n_rows, dtype=np.intp)
        for number in np.flatnonzero(needed.any(axis=1)):
            columns = slice(*self._starts[number : number + 2])
            chosen = np.flatnonzero(needed[number])
            weights = left[chosen] @ self._right[:, columns]
            place[:] = -1
            place[chosen] = np.arange(len(chosen))
            part = slice(*ends[number : number + 2])
            at = place[row[part]]
            inside = at >= 0
            weights[at[inside], column[part][inside] - columns.start] += value[part][inside]
            keys = heaviest_keys(weights, self._numbers[columns], n_kept)
            again = table[chosen, 0] > 0
            if again.any():
                keys[again] = merged_keys(table[chosen[again]], keys[again], n_kept)
            table[chosen] = keys
        return unpacked(table)

    def _entries(self, start: int, n_rows: int) -> tuple[NDArray[Any], ...]:
        """Return row, column and value of the sparse part of some rows, class by class."""
        starts = self._indptr[start : start + n_rows + 1]
        part = slice(starts[0], starts[-1])
        column = self._columns[part]
        order = np.argsort(self._group[column], kind="stable")  # by counting, as there are few
        row = np.repeat(np.arange(n_rows), np.diff(starts))
        return row[order], column[order], self._data[part][order]

    def _needed_classes(
        self,
        left: NDArray[np.float32],
        row: NDArray[np.intp],
        column: NDArray[Any],
        value: NDArray[np.float32],
        n_kept: int,
    ) -> NDArray[np.bool_]:
        """Tell, per class and row, whether one of the heaviest weights may be there."""
        bound = self._most.T @ left.T
        if len(row):
            cell = self._group[column].astype(np.intp) * len(left) + row
            first = run_starts(cell)
            bound.ravel()[cell[first]] += np.maximum.reduceat(value, first)
        reached = self._reached(left, n_kept)
        needed: NDArray[np.bool_] = (bound > 0) & (bound >= (1 - _ROUNDING) * reached)
        return needed

    def _reached(self, left: NDArray[np.float32], n_kept: int) -> NDArray[np.float32]:
        """Return, per row, a number that at least `n_kept` of its weights are known to reach."""
        least = left @ self._least
        order = np.argsort(-least, axis=1)
        enough = np.cumsum(self._sizes[order], axis=1) >= n_kept
        last = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
        reached = np.take_along_axis(least, last, axis=1)[:, 0]
        return np.where(enough[:, -1], reached, np.float32(0.0))
