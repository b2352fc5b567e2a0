"""A sparse symmetric M-matrix factorised as LDLᵀ, its rows sorted for solving many at once.

Rows of the factor are sorted by their height in the elimination tree. Rows of
one height do not depend on each other, and one sparse product solves them all.
"""

from __future__ import annotations

from copy import copy
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from manifoldknn.csr import assembled, row_range

_STEM = 500  # at most so many rows at the top of the elimination tree are solved as a dense block
# Seconds per level below that block and per entry of it, for some hundred columns at a time:
# they say where it begins.
_LEVEL_COST = 3e-5
_ENTRY_COST = 4e-8


class SortedFactor:
    """LDLᵀ of a symmetric M-matrix, its rows sorted by height in the elimination tree.

    Parameters
    ----------
    matrix : csc_array
        A symmetric M-matrix.

    Attributes
    ----------
    position : ndarray of int
        Where each row of the matrix stands in the factor.
    bounds : ndarray of int
        Where each height begins, and the number of rows.
    lower, upper : csr_array
        L without its diagonal, which is 1, and its transpose.
    diagonal : ndarray of shape (n, 1)
        D.

    Notes
    -----
    Factorising and solving add terms of one sign where the right-hand side is not negative, so
    every entry keeps its relative accuracy.
    """

    def __init__(self, matrix: Any) -> None:
        n = matrix.shape[0]
        lu = splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,  # keeps to the diagonal, as an M-matrix allows
            options={"SymmetricMode": True},
        )
        lower = sparse.csc_array(lu.L)
        height = _heights(lower)
        order = np.argsort(height, kind="stable")
        self.bounds = np.searchsorted(height[order], np.arange(height.max() + 2))
        place = np.empty(n, dtype=lower.indices.dtype)
        place[order] = np.arange(n)
        self.diagonal = np.asarray(lu.U.diagonal())[order][:, None]
        # Row i of the matrix stands at position perm_r[i] of the factor.
        self.position = place[lu.perm_r]
        coo = lower.tocoo()
        del lower, lu
        off = coo.row != coo.col
        self.lower = sparse.csr_array(
            (coo.data[off], (place[coo.row[off]], place[coo.col[off]])), shape=(n, n)
        )
        del coo, off
        self.upper = sparse.csr_array(self.lower.T)
        # The top of the tree is a long thin stem: its rows are solved together, as a dense block.
        size = n - self.bounds
        cost = _LEVEL_COST * np.arange(len(size)) + _ENTRY_COST * np.square(size)
        self._n_levels = int(np.argmin(np.where(size <= _STEM, cost, np.inf)))
        stem = slice(self.bounds[self._n_levels], n)
        self._stem = stem
        inverse = row_range(self.lower, stem)[:, stem].toarray()
        inverse[np.diag_indices_from(inverse)] = 1.0
        self._stem_forward = linalg.solve_triangular(
            inverse, np.eye(len(inverse)), lower=True, unit_diagonal=True
        )
        self._stem_backward = self._stem_forward.T
        self._set_blocks()

    def _set_blocks(self) -> None:
        slices = [slice(a, b) for a, b in pairwise(self.bounds[: self._n_levels + 1])]
        self._to_stem = row_range(self.lower, self._stem)[:, : self._stem.start]
        self._forward = [(rows, row_range(self.lower, rows)) for rows in slices[1:]]
        self._backward = [(rows, row_range(self.upper, rows)) for rows in slices[::-1]]

    def in_precision(self, dtype: np.dtype[Any]) -> SortedFactor:
        """Return the same factor with entries of another type."""
        other = copy(self)
        other.diagonal = self.diagonal.astype(dtype)
        other._stem_forward = self._stem_forward.astype(dtype)
        other._stem_backward = other._stem_forward.T
        other.lower, other.upper = _converted(self.lower, dtype), _converted(self.upper, dtype)
        other._set_blocks()
        return other

    def rescaled(self, log_scale: NDArray[np.float64], dtype: np.dtype[Any]) -> SortedFactor:
        """Return a factor that solves for x_i / s_i, given such right-hand sides.

        Parameters
        ----------
        log_scale : ndarray of shape (n,)
            log s, for the rows as they stand in the factor; -inf cuts a row off from others.
        dtype : dtype
            Of the new factor's entries.

        Returns
        -------
        SortedFactor
            Its `upper` is no longer the transpose of its `lower`.
        """
        other = copy(self)
        other.diagonal = self.diagonal.astype(dtype)
        other.lower = _rescaled(self.lower, log_scale, dtype)
        other.upper = _rescaled(self.upper, log_scale, dtype)
        of_stem = log_scale[self._stem]
        ratio = _ratios(of_stem, of_stem[:, None])
        other._stem_forward = (self._stem_forward * ratio).astype(dtype)
        other._stem_backward = (self._stem_backward * ratio).astype(dtype)
        other._set_blocks()
        return other

    def unit_columns(self, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return columns of the inverse."""
        x = np.zeros((len(self.position), len(columns)), dtype=self.diagonal.dtype)
        x[self.position[columns], np.arange(len(columns))] = 1.0
        return self.solve_sorted(x)[self.position]

    def solve(self, rhs: NDArray[Any]) -> NDArray[Any]:
        """Solve for all columns of rhs."""
        x = np.empty(rhs.shape, dtype=self.diagonal.dtype)
        x[self.position] = rhs
        return self.solve_sorted(x)[self.position]

    def solve_sorted(self, x: NDArray[Any]) -> NDArray[Any]:
        """Solve in place, for a right-hand side whose rows stand as in the factor."""
        for rows, block in self._forward:
            x[rows] -= block @ x
        stem = self._stem
        x[stem] -= self._to_stem @ x[: stem.start]
        x[stem] = self._stem_forward @ x[stem]
        x /= self.diagonal
        x[stem] = self._stem_backward @ x[stem]
        for rows, block in self._backward:
            x[rows] -= block @ x
        return x


def _converted(matrix: Any, dtype: np.dtype[Any]) -> Any:
    """Return a CSR matrix with entries of another type, in the same places."""
    return assembled(matrix.data.astype(dtype), matrix.indices, matrix.indptr, matrix.shape)


def _ratios(log_a: NDArray[np.float64], log_b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a / b, and 0 where either is 0."""
    zero = np.isneginf(log_a) | np.isneginf(log_b)
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.exp(log_a - log_b)
    out: NDArray[np.float64] = np.where(zero, 0.0, ratio)
    return out


def _rescaled(matrix: Any, log_scale: NDArray[np.float64], dtype: np.dtype[Any]) -> Any:
    """Return a CSR matrix with entries times s_j / s_i, of another type."""
    of_row = np.repeat(log_scale, np.diff(matrix.indptr))
    data = _ratios(log_scale[matrix.indices], of_row)
    data *= matrix.data
    return assembled(data.astype(dtype), matrix.indices, matrix.indptr, matrix.shape)


def _heights(lower: Any) -> NDArray[np.intp]:
    """Return a height for each node that is above those of all nodes it depends on."""
    n = lower.shape[0]
    lower.sort_indices()
    starts = lower.indptr[:-1]
    has_parent = np.diff(lower.indptr) > 1  # the first stored entry is the diagonal
    parent = np.full(n, -1)
    parent[has_parent] = lower.indices[starts[has_parent] + 1]
    height = [0] * n
    for node, above in enumerate(parent.tolist()):  # children come before parents
        if above >= 0 and height[above] <= height[node]:
            height[above] = height[node] + 1
    return _above_all_entries(np.array(height), lower)


def _above_all_entries(height: NDArray[np.intp], lower: Any) -> NDArray[np.intp]:
    """Raise heights where a node depends on one that is not below it in the elimination tree.

    The tree is made of stored entries, and entries that underflowed are not stored.
    """
    column = np.repeat(np.arange(len(height)), np.diff(lower.indptr))
    wrong = (height[lower.indices] <= height[column]) & (lower.indices != column)
    waiting = np.unique(column[wrong]).tolist()
    heapify(waiting)
    seen = set(waiting)
    while waiting:  # in ascending order, so that each is final when its turn comes
        node = heappop(waiting)
        above = lower.indices[lower.indptr[node] + 1 : lower.indptr[node + 1]]
        above = above[height[above] <= height[node]]
        height[above] = height[node] + 1
        for other in set(above.tolist()) - seen:
            seen.add(other)
            heappush(waiting, other)
    return height
