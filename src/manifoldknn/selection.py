"""The heaviest entries of the rows of a matrix, as integers that sort by themselves.

Positive numbers in single precision are ordered as their bits are. A key is those bits and, behind
them, the number of a column counted from the end: larger keys belong to heavier entries, and of
equally heavy ones to that of the first column. 0 is nobody's key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.nearest import NearestLabeled

_GROUPS = 16  # of columns whose maxima tell where the heaviest begin
_LAST = (1 << 32) - 1
_LONG = 4  # times the mean number of entries, and more, is a long row


def heaviest_keys(
    weights: NDArray[np.float32], numbers: NDArray[np.intp], n_kept: int
) -> NDArray[np.uint64]:
    """Return the keys of the heaviest entries of every row, heaviest first.

    Parameters
    ----------
    weights : ndarray of shape (n_rows, n_columns)
        A contiguous matrix; entries that are not positive count as absent.
    numbers : ndarray of shape (n_columns,)
        Numbers of the columns, ascending, below 2³².
    n_kept : int
        How many to keep per row.

    Returns
    -------
    ndarray of shape (n_rows, n_kept)
        Keys, 0 where a row has no more.
    """
    n_rows = len(weights)
    bar = np.maximum(_least_kept(weights, n_kept), np.finfo(np.float32).tiny)
    above = weights >= bar[:, None]
    counts = np.count_nonzero(above, axis=1)
    at = np.flatnonzero(above)
    row = np.repeat(np.arange(n_rows), counts)
    found = numbers[at - row * weights.shape[1]]
    return _largest_first(_table(row, counts, weights.ravel()[at], found, n_kept), n_kept)


def row_keys(
    row: NDArray[np.intp],
    n_rows: int,
    weights: NDArray[np.float32],
    numbers: NDArray[Any],
    n_kept: int,
) -> NDArray[np.uint64]:
    """Return the keys of the entries of a sparse matrix, row by row; of long rows the heaviest.

    Parameters
    ----------
    row : ndarray of shape (n_entries,)
        Rows of the entries, ascending.
    n_rows : int
        Number of rows.
    weights : ndarray of shape (n_entries,)
        The entries; such as are not positive count as absent.
    numbers : ndarray of shape (n_entries,)
        Numbers of their columns.
    n_kept : int
        How many are wanted of every row.

    Returns
    -------
    ndarray of shape (n_rows, n)
        Keys in no order, 0 where a row has no more. A few long rows do not make it wide.
    """
    counts = np.bincount(row, minlength=n_rows)
    weights = np.maximum(weights, np.float32(0))
    usual = n_kept + _LONG * len(row) // max(1, n_rows)
    ends = np.cumsum(counts)
    for long in np.flatnonzero(counts > usual):
        part = weights[ends[long] - counts[long] : ends[long]]
        # Lighter ones than the last that is kept become absent; equally heavy ones stay.
        part[part < np.partition(part, len(part) - n_kept)[len(part) - n_kept]] = 0.0
    there = weights > 0
    row, weights, numbers = row[there], weights[there], numbers[there]
    return _table(row, np.bincount(row, minlength=n_rows), weights, numbers, 0)


def key_weights(keys: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Return the weights that keys stand for."""
    weights: NDArray[np.float32] = (keys >> np.uint64(32)).astype(np.uint32).view(np.float32)
    return weights


def _table(
    row: NDArray[np.intp],
    counts: NDArray[np.intp],
    weights: NDArray[np.float32],
    numbers: NDArray[Any],
    width: int,
) -> NDArray[np.uint64]:
    """Return keys in a table, at least so wide, with a line for every row."""
    keys = weights.view(np.uint32).astype(np.uint64)
    keys <<= 32
    keys |= (_LAST - numbers).astype(np.uint64)
    table = np.zeros((len(counts), max(width, int(counts.max(initial=0)))), dtype=np.uint64)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    table[row, rank] = keys
    return table


def merged_keys(
    one: NDArray[np.uint64], other: NDArray[np.uint64], n_kept: int
) -> NDArray[np.uint64]:
    """Return the heaviest of two sets of keys for the same rows, heaviest first."""
    return _largest_first(np.hstack([one, other]), n_kept)


def unpacked(keys: NDArray[np.uint64]) -> NearestLabeled:
    """Return weights and columns from their keys."""
    weights = key_weights(keys).astype(np.float64)
    voters = np.where(keys > 0, _LAST - (keys & _LAST).astype(np.int64), 0).astype(np.int32)
    largest = weights[:, 0].copy()
    reached = largest > 0
    weights[reached] /= largest[reached, None]
    log_scale = np.full(len(keys), -np.inf)
    log_scale[reached] = np.log(largest[reached])
    return NearestLabeled(weights, voters, log_scale)


def _least_kept(weights: NDArray[np.float32], n_kept: int) -> NDArray[np.float32]:
    """Return a number for every row that at least n_kept of its entries reach, 0 if it has fewer.

    The n_kept-th largest of the maxima of disjoint groups of columns is no more than the
    n_kept-th largest of all, and few entries lie between the two: finding it among maxima is
    cheaper than among all.
    """
    n_rows, n_columns = weights.shape
    if n_columns <= n_kept:
        return np.zeros(n_rows, dtype=np.float32)
    n_maxima = max(n_columns // _GROUPS, min(n_columns, 2 * n_kept))
    maxima = weights[:, :n_maxima].copy()
    for start in range(n_maxima, n_columns, n_maxima):
        stop = min(start + n_maxima, n_columns)
        part = maxima[:, : stop - start]
        np.maximum(part, weights[:, start:stop], out=part)
    place = n_maxima - n_kept
    maxima.partition(place, axis=1)
    return maxima[:, place]


def _largest_first(keys: NDArray[np.uint64], n_kept: int) -> NDArray[np.uint64]:
    """Sort every row, in place, and return its largest keys."""
    keys.sort(axis=1)
    return keys[:, : -n_kept - 1 : -1]
