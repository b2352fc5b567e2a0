"""Weights as the sum of a sparse part and a smooth one, and the heaviest of every row.

The smooth part is a product of thin matrices, W = S + FG, all without negative entries. Columns of
one class have nearly the same smooth weights, so for a row i and a class c

    max over j in c of w_ij  ≤  F_i · max_j G_j + max_j s_ij,

both maxima over the class. A class whose bound lies below what the heaviest weights of the row are
known to reach need not be looked at, and most rows need one class only.

Where classes are large, not even that one is looked at: the heaviest labels of a row are those of
its sparse part and some leaders of each class, which are the heaviest in the smooth part for the
mean row. The same bound over all others tells where this is not so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.nearest import NearestLabeled
from manifoldknn.restriction import run_starts
from manifoldknn.selection import heaviest_keys, key_weights, merged_keys, row_keys, unpacked

_ROUNDING = 1e-5  # of single precision in a bound, with room
_LEADERS = 2  # of each class, per label that is kept
_ENTRIES = 1 << 22  # of weights at a time
_SLICE = 1 << 16  # entries of the sparse part at a time


@dataclass(frozen=True)
class _Leaders:
    """Some labels of each class, and what is known of the others.

    Attributes
    ----------
    columns, place : ndarray of int
        Columns of leaders, and where among them a column is; -1 elsewhere.
    right : ndarray of shape (rank, n_leaders)
        Their columns of G.
    most_of_others : ndarray of shape (rank, n_classes)
        Maxima of G over the others of each class.
    """

    columns: NDArray[np.intp]
    place: NDArray[np.intp]
    right: NDArray[np.float32]
    most_of_others: NDArray[np.float32]


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
    n_kept : int
        How many labels to find per row, at most the number of labelled samples.
    log_scale : ndarray of shape (n_samples,), optional
        Logarithms of what all weights of a row are multiplied by.
    slack : float, default=0
        A label may be taken for a heavier one if their weights differ by less than this share of
        the row's largest.
    """

    def __init__(
        self,
        local: Any,
        left: NDArray[np.float32],
        right: NDArray[np.float32],
        group: NDArray[np.intp],
        n_kept: int,
        *,
        log_scale: NDArray[np.float64] | None = None,
        slack: float = 0.0,
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
        self._log_scale, self._slack, self._n_kept = log_scale, slack, n_kept
        # Is looking at leaders less work than looking at all of a class?
        n_leaders = np.minimum(self._sizes, _LEADERS * n_kept).sum()
        in_row = len(local.data) / max(1, len(left))
        self._leaders = self._led() if self._sizes.max() > n_leaders + 2 * in_row else None

    def blocks(self, most_rows: int) -> list[slice]:
        """Return all rows, as many at a time as `heaviest` has room for.

        Parameters
        ----------
        most_rows : int
            Rows at a time, at most.

        Returns
        -------
        list of slice
            With start and stop.
        """
        n = len(self._left)
        if self._leaders is None:
            width = int(self._sizes.max())
        else:
            width = len(self._leaders.columns) + len(self._data) // max(1, n)
        height = int(np.clip(_ENTRIES // width, 1, most_rows))
        return [slice(start, min(start + height, n)) for start in range(0, n, height)]

    def heaviest(self, rows: slice) -> NearestLabeled:
        """Return the heaviest weights of some rows.

        Parameters
        ----------
        rows : slice
            Rows, with a start.

        Returns
        -------
        NearestLabeled
            Weights and labelled samples, heaviest first.

        Notes
        -----
        Costs O(rank) products for every entry of the sparse part and every leader, or, where
        that does not do, O(l·rank/C) for every class that a row needs.
        """
        left = self._left[rows]
        row, column, value = self._entries(rows.start, len(left))
        if self._leaders is None:
            table = np.zeros((len(left), self._n_kept), dtype=np.uint64)
            done = np.zeros(len(left), dtype=bool)
        else:
            table, done = self._among_leaders(left, row, column, value, self._leaders)
        if not done.all():
            self._among_all(left, row, column, value, table, done)
        nearest = unpacked(table)
        if self._log_scale is not None:
            nearest.log_scale[:] += self._log_scale[rows]
        return nearest

    def _led(self) -> _Leaders:
        """Return the leaders of all classes."""
        weight = self._left.mean(axis=0, dtype=np.float64) @ self._right
        chosen = np.zeros(len(weight), dtype=bool)
        for start, stop in pairwise(self._starts):
            count = min(stop - start, _LEADERS * self._n_kept)
            # Of equal ones the first, as everywhere.
            order = np.argsort(-weight[start:stop], kind="stable")
            chosen[start + order[:count]] = True
        columns = np.flatnonzero(chosen)
        columns = columns[np.argsort(self._numbers[columns])]
        place = np.full(len(weight), -1, dtype=np.intp)
        place[columns] = np.arange(len(columns))
        others = np.where(chosen, np.float32(0), self._right)
        most = np.maximum.reduceat(others, self._starts[:-1], axis=1)
        return _Leaders(columns, place, np.ascontiguousarray(self._right[:, columns]), most)

    def _among_leaders(
        self,
        left: NDArray[np.float32],
        row: NDArray[np.intp],
        column: NDArray[Any],
        value: NDArray[np.float32],
        leaders: _Leaders,
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the heaviest keys of sparse part and leaders, and where no others count."""
        smooth = left @ leaders.right
        at = leaders.place[column]
        smooth[row[at >= 0], at[at >= 0]] = 0.0  # they are in the sparse part
        keys = heaviest_keys(smooth, self._numbers[leaders.columns], self._n_kept)
        weight = value.copy()
        for start in range(0, len(value), _SLICE):
            part = slice(start, start + _SLICE)
            weight[part] += np.einsum("er,re->e", left[row[part]], self._right[:, column[part]])
        own = row_keys(row, len(left), weight, self._numbers[column], self._n_kept)
        table = merged_keys(own, keys, self._n_kept)
        reached = key_weights(table[:, -1]) + self._slack * key_weights(table[:, 0])
        bound = (left @ leaders.most_of_others).max(axis=1)
        return table, bound * (1 + _ROUNDING) <= reached

    def _among_all(
        self,
        left: NDArray[np.float32],
        row: NDArray[np.intp],
        column: NDArray[Any],
        value: NDArray[np.float32],
        table: NDArray[np.uint64],
        done: NDArray[np.bool_],
    ) -> None:
        """Write the heaviest keys of rows that are not done, from all classes that they need."""
        table[~done] = 0
        order = np.argsort(self._group[column], kind="stable")  # by counting, as there are few
        row, column, value = row[order], column[order], value[order]
        ends = np.searchsorted(column, self._starts)
        needed = self._needed_classes(left, row, column, value) & ~done
        place = np.empty(len(left), dtype=np.intp)
        for number in np.flatnonzero(needed.any(axis=1)):
            columns = slice(*self._starts[number : number + 2])
            part = slice(*ends[number : number + 2])
            height = max(1, _ENTRIES // (columns.stop - columns.start))
            everyone = np.flatnonzero(needed[number])
            for start in range(0, len(everyone), height):
                chosen = everyone[start : start + height]
                weights = left[chosen] @ self._right[:, columns]
                place[:] = -1
                place[chosen] = np.arange(len(chosen))
                at = place[row[part]]
                inside = at >= 0
                weights[at[inside], column[part][inside] - columns.start] += value[part][inside]
                keys = heaviest_keys(weights, self._numbers[columns], self._n_kept)
                again = table[chosen, 0] > 0
                if again.any():
                    keys[again] = merged_keys(table[chosen[again]], keys[again], self._n_kept)
                table[chosen] = keys

    def _entries(self, start: int, n_rows: int) -> tuple[NDArray[Any], ...]:
        """Return row, column and value of the sparse part of some rows, row by row."""
        starts = self._indptr[start : start + n_rows + 1]
        part = slice(starts[0], starts[-1])
        row = np.repeat(np.arange(n_rows), np.diff(starts))
        return row, self._columns[part], self._data[part]

    def _needed_classes(
        self,
        left: NDArray[np.float32],
        row: NDArray[np.intp],
        column: NDArray[Any],
        value: NDArray[np.float32],
    ) -> NDArray[np.bool_]:
        """Tell, per class and row, whether one of the heaviest weights may be there."""
        bound = self._most.T @ left.T
        if len(row):
            cell = self._group[column].astype(np.intp) * len(left) + row
            first = run_starts(cell)
            bound.ravel()[cell[first]] += np.maximum.reduceat(value, first)
        reached = self._reached(left)
        needed: NDArray[np.bool_] = (bound > 0) & (bound >= (1 - _ROUNDING) * reached)
        return needed

    def _reached(self, left: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return, per row, a number that at least `n_kept` of its weights are known to reach."""
        least = left @ self._least
        order = np.argsort(-least, axis=1)
        enough = np.cumsum(self._sizes[order], axis=1) >= self._n_kept
        last = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
        reached = np.take_along_axis(least, last, axis=1)[:, 0]
        return np.where(enough[:, -1], reached, np.float32(0.0))
