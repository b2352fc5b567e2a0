"""The walk by sparse factorisation, for many labels on a graph of modest size.

Conjugate gradients pay per label; a factorisation pays once, and then little
per label. Must-links would fill the factor, so they are kept apart. With
Q = D_L^-½ Y and A₀ the matrix without them,

    A = A₀ - αQQᵀ,   A₀ = I + αD_L⁻¹ - αD^-½W₀D^-½,
    A⁻¹ = A₀⁻¹ + α R (I - αQᵀR)⁻¹ Rᵀ,   R = A₀⁻¹Q,

where D_L⁻¹ acts on rows with must-links. A₀ = LDLᵀ is an M-matrix: factorising
and solving add terms of one sign, so every entry keeps its relative accuracy.

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

from manifoldknn.graph import ConstrainedGraph

_STEM = 500  # rows at the top of the elimination tree that are solved as a dense block


class FactorizedInverse:
    """A⁻¹ = (I - αS)⁻¹ from one factorisation.

    Parameters
    ----------
    s : csr_array
        S without must-links.
    linked, group : ndarray of int
        Rows with must-links and their class, numbered from 0.
    scale : ndarray of float
        D^-½ of those rows.
    alpha : float
        Share of strength kept per step.

    Notes
    -----
    Each column costs two passes over the factor, typically 3 to 30 times as large
    as the graph.
    """

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        scale: NDArray[np.float64],
        alpha: float,
    ) -> None:
        n = s.shape[0]
        diagonal = np.ones(n)
        diagonal[linked] += alpha * np.square(scale)
        matrix = sparse.csc_array(sparse.diags_array(diagonal) - alpha * s)
        self._factor = _SortedFactor(matrix)
        Q = np.zeros((n, int(group.max(initial=-1)) + 1))
        Q[linked, group] = scale
        self._left = self._factor.solve(Q)
        inner = np.eye(Q.shape[1]) - alpha * (Q.T @ self._left)
        self._right = alpha * np.linalg.solve(inner, self._left.T)

    def in_precision(self, dtype: Any) -> FactorizedInverse:
        """Return the same inverse with numbers of another type."""
        other = copy(self)
        other._factor = self._factor.in_precision(np.dtype(dtype))
        other._left, other._right = self._left.astype(dtype), self._right.astype(dtype)
        return other

    def solve(self, rhs: NDArray[Any]) -> NDArray[Any]:
        """Return A⁻¹ rhs."""
        x = self._factor.solve(rhs)
        x += self._left @ (self._right @ rhs)
        return x

    def columns(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the columns of A⁻¹ that belong to some rows."""
        x = self._factor.unit_columns(rows)
        x += self._left @ self._right[:, rows]
        return x


class FactorizedWalk:
    """Label columns of the walk from one factorisation.

    Parameters
    ----------
    graph : ConstrainedGraph
        A sparse graph.
    alpha : float
        Share of strength kept per step.
    dtype : dtype, default=float64
        Precision of the columns. As nothing cancels, single precision keeps six digits
        of every entry, for half the time and memory.
    """

    def __init__(self, graph: ConstrainedGraph, alpha: float, dtype: Any = np.float64) -> None:
        half = 0.5 * graph.log_degrees()
        # √(d_i/d_j) and its inverse, as products of a row's and a column's factor.
        self._root = np.exp(half - 0.5 * (half.max() + half.min())).astype(dtype)
        S = graph.log_weights.copy()
        S.data = np.exp(S.data - half[S.indices] - np.repeat(half, np.diff(S.indptr)))
        linked = np.flatnonzero(graph.must_links_per_row() > 0)
        group = np.unique(graph.must_link[linked], return_inverse=True)[1].astype(np.intp)
        inverse = FactorizedInverse(S, linked, group, np.exp(-half[linked]), alpha)
        self._inverse = inverse.in_precision(dtype)

    def weights(self, labeled: NDArray[np.intp]) -> NDArray[Any]:
        """Return w̄_ij between every sample and some labelled ones.

        Parameters
        ----------
        labeled : ndarray of int
            Labelled samples.

        Returns
        -------
        ndarray of shape (n_samples, len(labeled))
            Weights of equation 4.
        """
        x = self._inverse.columns(labeled)
        row, column = self._root[:, None], self._root[labeled]
        x *= (0.5 * row) * (1 / column) + (0.5 / row) * column
        return x


class _SortedFactor:
    """LDLᵀ of a symmetric M-matrix, its rows sorted by height in the elimination tree."""

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
        bounds = np.searchsorted(height[order], np.arange(height.max() + 2))
        place = np.empty(n, dtype=np.intp)
        place[order] = np.arange(n)
        coo = lower.tocoo()
        off = coo.row != coo.col
        sorted_lower = sparse.csr_array(
            (coo.data[off], (place[coo.row[off]], place[coo.col[off]])), shape=(n, n)
        )
        self._diagonal = np.asarray(lu.U.diagonal())[order][:, None]
        # Row i of the matrix stands at position perm_r[i] of the factor.
        self._position = place[lu.perm_r]
        sorted_upper = sparse.csr_array(sorted_lower.T)
        # The top of the tree is a long thin stem: its rows are solved together, as a dense block.
        stem = int(np.argmax(n - bounds <= _STEM))
        slices = [slice(a, b) for a, b in pairwise(bounds[: stem + 1])]
        self._stem = slice(bounds[stem], n)
        inverse = sorted_lower[self._stem, self._stem].toarray()
        inverse[np.diag_indices_from(inverse)] = 1.0
        self._stem_inverse = linalg.solve_triangular(
            inverse, np.eye(len(inverse)), lower=True, unit_diagonal=True
        )
        self._to_stem = sorted_lower[self._stem, : self._stem.start]
        self._forward = [(s, sorted_lower[s]) for s in slices[1:]]
        self._backward = [(s, sorted_upper[s]) for s in slices[::-1]]

    def in_precision(self, dtype: np.dtype[Any]) -> _SortedFactor:
        """Return the same factor with entries of another type."""
        other = copy(self)
        other._diagonal = self._diagonal.astype(dtype)
        other._stem_inverse = self._stem_inverse.astype(dtype)
        other._to_stem = self._to_stem.astype(dtype)
        other._forward = [(rows, block.astype(dtype)) for rows, block in self._forward]
        other._backward = [(rows, block.astype(dtype)) for rows, block in self._backward]
        return other

    def unit_columns(self, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return columns of the inverse."""
        x = np.zeros((len(self._position), len(columns)), dtype=self._diagonal.dtype)
        x[self._position[columns], np.arange(len(columns))] = 1.0
        return self._solve(x)

    def solve(self, rhs: NDArray[Any]) -> NDArray[Any]:
        """Solve for all columns of rhs."""
        x = np.empty(rhs.shape, dtype=self._diagonal.dtype)
        x[self._position] = rhs
        return self._solve(x)

    def _solve(self, x: NDArray[Any]) -> NDArray[Any]:
        for rows, block in self._forward:
            x[rows] -= block @ x
        stem = self._stem
        x[stem] -= self._to_stem @ x[: stem.start]
        x[stem] = self._stem_inverse @ x[stem]
        x /= self._diagonal
        x[stem] = self._stem_inverse.T @ x[stem]
        for rows, block in self._backward:
            x[rows] -= block @ x
        return x[self._position]


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
