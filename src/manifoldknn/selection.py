"""The heaviest entries of every row of a dense matrix, block by block in the same memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifoldknn.nearest import NearestLabeled

_GROUPS = 16  # of columns whose maxima tell where the heaviest begin
_LAST = (1 << 32) - 1


class HeaviestOfRows:
    """Selects the heaviest entries of rows; a block of them at a time.

    Parameters
    ----------
    n_rows : int
        Rows of the largest block.
    n_columns : int
        Columns of every block.
    n_kept : int
        Entries kept of every row, at most `n_columns`.

    Notes
    -----
    The n_kept-th largest of the maxima of disjoint groups of columns is no more than the
    n_kept-th largest of all, and few entries lie between the two: finding it among maxima is
    cheaper than among all.
    """

    def __init__(self, n_rows: int, n_columns: int, n_kept: int) -> None:
        self._n_kept = n_kept
        width = n_columns // _GROUPS
        self._width = width if width >= n_kept else n_columns
        self._maxima = np.empty((n_rows, self._width), dtype=np.float32)
        self._above = np.empty((n_rows, n_columns), dtype=bool)

    def __call__(self, weights: NDArray[np.float32]) -> NearestLabeled:
        """Return the heaviest entries of every row.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, n_columns)
            Weights; those that are not positive count as absent.

        Returns
        -------
        NearestLabeled
            Weights and columns, heaviest first.
        """
        n_rows, n_columns = weights.shape
        bar = np.maximum(self._least_kept(weights), np.finfo(np.float32).tiny)
        at = np.flatnonzero(np.greater_equal(weights, bar[:, None], out=self._above[:n_rows]))
        row, column = np.divmod(at, n_columns)
        counts = np.bincount(row, minlength=n_rows)
        width = max(self._n_kept, int(counts.max()))
        # Positive numbers are ordered as their bits are. With those of a column behind them, one
        # sort of integers puts the heaviest last, and of equal ones that of the first column.
        keys = weights.ravel()[at].view(np.uint32).astype(np.uint64)
        keys <<= 32
        keys |= (_LAST - column).astype(np.uint64)
        table = np.zeros((n_rows, width), dtype=np.uint64)
        starts = np.cumsum(counts) - counts
        at = np.arange(len(keys)) + np.repeat(np.arange(n_rows) * width - starts, counts)
        table.ravel()[at] = keys
        table.sort(axis=1)
        return _unpacked(table[:, : -self._n_kept - 1 : -1])

    def _least_kept(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number for every row that at least n_kept of its entries reach."""
        width, maxima = self._width, self._maxima[: len(weights)]
        maxima[:] = weights[:, :width]
        for start in range(width, weights.shape[1] - width + 1, width):
            np.maximum(maxima, weights[:, start : start + width], out=maxima)
        place = width - self._n_kept
        maxima.partition(place, axis=1)
        return maxima[:, place]


def _unpacked(keys: NDArray[np.uint64]) -> NearestLabeled:
    """Return weights and columns from their keys, heaviest first."""
    weights = (keys >> 32).astype(np.uint32).view(np.float32).astype(np.float64)
    voters = np.where(keys > 0, _LAST - (keys & _LAST).astype(np.int64), 0).astype(np.int32)
    largest = weights[:, 0].copy()
    reached = largest > 0
    weights[reached] /= largest[reached, None]
    log_scale = np.full(len(keys), -np.inf)
    log_scale[reached] = np.log(largest[reached])
    return NearestLabeled(weights, voters, log_scale)
