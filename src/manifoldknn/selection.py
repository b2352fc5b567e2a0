"""The heaviest entries of every row of a dense matrix, block by block in the same memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifoldknn.nearest import NearestLabeled, heaviest_first
from manifoldknn.restriction import run_starts

_GROUPS = 16  # of columns whose maxima tell where the heaviest begin


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
        starts = run_starts(row)
        counts = np.diff(np.append(starts, len(row)))
        rank = np.arange(len(row)) - np.repeat(starts, counts)
        shape = n_rows, max(self._n_kept, int(counts.max(initial=0)))
        logs, voters = np.full(shape, -np.inf), np.zeros(shape, dtype=np.int32)
        logs[row, rank] = np.log(weights.ravel()[at])
        voters[row, rank] = column
        return heaviest_first(logs, voters, self._n_kept)

    def _least_kept(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a number for every row that at least n_kept of its entries reach."""
        width, maxima = self._width, self._maxima[: len(weights)]
        maxima[:] = weights[:, :width]
        for start in range(width, weights.shape[1] - width + 1, width):
            np.maximum(maxima, weights[:, start : start + width], out=maxima)
        place = width - self._n_kept
        maxima.partition(place, axis=1)
        return maxima[:, place]
