"""S = D^-½ W D^-½ and its restrictions A_UU = I - αS_UU.

Entries of S are kept as logarithms. A restriction to some rows U knows how to
solve with A_UU, and bounds the error of what it returns. With the residual r
measured after the solve, both of these hold:

    |x_i - x̂_i| ≤ ‖r‖₂ / (1 - α)                        (eigenvalues of A are ≥ 1 - α),
    |x_i - x̂_i| ≤ √d_i · max_m (|r_m| / √d_m) / (1 - α)   (rows of P sum to at most 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

from manifoldknn.blockcg import block_cg
from manifoldknn.graph import ConstrainedGraph

LOG_CUT = -700.0  # exp() of less is lost or nearly so
_LOG_UNDERFLOW = np.log(1e-290)
_CHUNK = 1 << 21


class NormalizedGraph:
    """S = D^-½ W D^-½ with entries as logarithms, and its restrictions."""

    def __init__(self, graph: ConstrainedGraph, log_degrees: NDArray[np.float64]) -> None:
        self.log_degrees = log_degrees
        self.is_sparse = graph.is_sparse
        half = 0.5 * log_degrees
        if graph.is_sparse:
            log_s = graph.log_weights.copy()
            log_s.data = log_s.data - half[log_s.indices] - np.repeat(half, np.diff(log_s.indptr))
            self.log_s = log_s
        else:
            self.log_s = graph.log_weights - half[:, None] - half[None, :]
        linked = graph.must_links_per_row() > 0
        self.group = np.where(linked, graph.must_link, -1)

    def parts(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
        """Return connected parts of some rows.

        Parameters
        ----------
        rows : ndarray of int
            Ascending row numbers.

        Returns
        -------
        rows : ndarray of int
            The same rows, those of one part together.
        parts : ndarray of int
            The number of the part of each, ascending.
        n_cut : int
            Edges passed over because their entry in S is below ``exp(LOG_CUT)``.
        """
        if not self.is_sparse:
            return rows, np.zeros(len(rows), dtype=np.intp), 0
        s = self._sub(rows)
        seen = s.data > LOG_CUT
        s.data = seen.astype(np.float64)
        s.eliminate_zeros()
        linked = np.flatnonzero(self.group[rows] >= 0)
        linked = linked[np.argsort(self.group[rows[linked]], kind="stable")]
        same = self.group[rows[linked[1:]]] == self.group[rows[linked[:-1]]]
        chain = sparse.coo_array(
            (np.ones(same.sum()), (linked[:-1][same], linked[1:][same])), shape=s.shape
        )
        _, part = csgraph.connected_components(s + chain.tocsr(), directed=False)
        order = np.argsort(part, kind="stable")
        return rows[order], part[order].astype(np.intp), int(np.sum(~seen))

    def restrict(self, rows: NDArray[np.intp]) -> Restriction:
        """A_UU for U = rows."""
        half = 0.5 * self.log_degrees[rows]
        if not self.is_sparse:
            return Restriction(np.exp(self.log_s[np.ix_(rows, rows)]), None, half)
        s = self._sub(rows)
        s.data = np.exp(s.data)
        linked = np.flatnonzero(self.group[rows] >= 0)
        group = _renumbered(self.group[rows[linked]])
        return Restriction(s, _Clique(linked, group, np.exp(-half[linked])), half)

    def boundary(
        self, rows: NDArray[np.intp], final: NDArray[np.bool_], log_x: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return log (S_UR x_R) for U = rows and R the final rows."""
        out = np.full((len(rows), log_x.shape[1]), -np.inf)
        if self.is_sparse:
            self._edge_boundary(rows, final, log_x, out)
            self._clique_boundary(rows, final, log_x, out)
            return out
        known = np.flatnonzero(final)
        block = self.log_s[np.ix_(rows, known)]
        for column in range(log_x.shape[1]):
            out[:, column] = np.logaddexp.reduce(block + log_x[known, column], axis=1)
        return out

    def _edge_boundary(
        self,
        rows: NDArray[np.intp],
        final: NDArray[np.bool_],
        log_x: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None:
        sub = self.log_s[rows]
        place = np.repeat(np.arange(len(rows)), np.diff(sub.indptr))
        crossing = final[sub.indices]
        place, target, value = place[crossing], sub.indices[crossing], sub.data[crossing]
        for part in _row_chunks(place, log_x.shape[1]):
            terms = value[part, None] + log_x[target[part]]
            at = place[part]
            starts = run_starts(at)
            top = np.maximum.reduceat(terms, starts, axis=0)
            top = np.where(np.isneginf(top), 0.0, top)
            sums = np.add.reduceat(np.exp(terms - np.repeat(top, _lengths(at), axis=0)), starts)
            with np.errstate(divide="ignore"):
                out[at[starts]] = np.log(sums) + top

    def _clique_boundary(
        self,
        rows: NDArray[np.intp],
        final: NDArray[np.bool_],
        log_x: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None:
        half = 0.5 * self.log_degrees
        inside = np.flatnonzero(self.group[rows] >= 0)
        for group in np.unique(self.group[rows[inside]]):
            known = np.flatnonzero(final & (self.group == group))
            if known.size:
                total = np.logaddexp.reduce(log_x[known] - half[known, None], axis=0)
                members = inside[self.group[rows[inside]] == group]
                terms = total[None, :] - half[rows[members], None]
                out[members] = np.logaddexp(out[members], terms)

    def _sub(self, rows: NDArray[np.intp]) -> Any:
        if len(rows) == self.log_s.shape[0] and (np.diff(rows) == 1).all():
            return self.log_s.copy()
        return self.log_s[rows][:, rows]


class _Clique:
    """Must-links among `linked` rows, D^-½ (YYᵀ - I) D^-½, never written out: O(l)."""

    def __init__(
        self, linked: NDArray[np.intp], group: NDArray[np.intp], scale: NDArray[np.float64]
    ) -> None:
        self.linked = linked
        self.scale = scale[:, None]
        size = len(linked), int(group.max(initial=0)) + 1
        self.indicator = sparse.csr_array(
            (np.ones(len(linked)), group, np.arange(len(linked) + 1)), shape=size
        )
        self.gather = sparse.csr_array(self.indicator.T)

    def add_product(self, v: NDArray[Any], out: NDArray[Any]) -> None:
        """Add the product with v to out."""
        if self.linked.size:
            scaled = self.scale * v[self.linked]
            sums = self.indicator @ (self.gather @ scaled)
            out[self.linked] += self.scale * (sums - scaled)


@dataclass(frozen=True)
class Solved:
    """What a restriction answers.

    Attributes
    ----------
    x : ndarray of shape (n_rows, n_columns)
        The solution.
    log_error : ndarray of shape (n_rows, n_columns)
        Logarithm of a bound on the error of each entry.
    n_iter : int
        Products with the matrix that were needed.
    converged : bool
        Whether the residual asked for was reached.
    """

    x: NDArray[np.float64]
    log_error: NDArray[np.float64]
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Restriction:
    """A_UU = I - α S_UU: how to solve with it, and how wrong the answer can be."""

    s: Any
    clique: _Clique | None
    half_log_degrees: NDArray[np.float64]

    def solve(
        self,
        rhs: NDArray[np.float64],
        parts: NDArray[np.intp],
        *,
        alpha: float,
        precision: float,
        max_iter: int,
    ) -> Solved:
        """Solve A_UU x = rhs: by Cholesky if dense, by conjugate gradients if sparse.

        Parameters
        ----------
        rhs : ndarray of shape (n_rows, n_columns)
            Right-hand sides, not negative.
        parts : ndarray of shape (n_rows,)
            Connected part of each row, ascending; errors are bounded part by part.
        alpha : float
            Share of strength kept per step.
        precision : float
            Relative residual asked for.
        max_iter : int
            Limit on iterations.

        Returns
        -------
        Solved
            Solution and error bound.
        """
        if self.clique is None:
            matrix = -alpha * self.s
            matrix[np.diag_indices_from(matrix)] += 1.0
            # Cholesky of an M-matrix adds terms of one sign: every entry keeps its relative
            # accuracy, and only underflow can lose one.
            factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
            return Solved(
                linalg.cho_solve(factor, rhs), np.full(rhs.shape, _LOG_UNDERFLOW), 1, True
            )
        clique = self.clique

        def apply(v: NDArray[Any]) -> NDArray[Any]:
            product: NDArray[Any] = self.s @ v
            clique.add_product(v, product)
            product *= -alpha
            product += v
            return product

        x, n_iter, converged = block_cg(apply, rhs, tol=precision, max_iter=max_iter)
        error = self._log_error(np.abs(rhs - apply(x)), parts, alpha)
        return Solved(np.asarray(x, dtype=np.float64), error, n_iter, converged)

    def _log_error(
        self, residual: NDArray[np.float64], parts: NDArray[np.intp], alpha: float
    ) -> NDArray[np.float64]:
        """Log error bound for every entry: the smaller of the two in the module's text."""
        starts = run_starts(parts)
        half = self.half_log_degrees
        largest = np.maximum.reduceat(residual, starts, axis=0)
        # Squares of residuals below 1e-162 would vanish: scale them first.
        scaled = residual / np.where(largest > 0, largest, 1.0)[parts]
        with np.errstate(divide="ignore"):
            norm = np.log(largest) + 0.5 * np.log(np.add.reduceat(scaled**2, starts, axis=0))
            walk = np.maximum.reduceat(np.log(residual) - half[:, None], starts, axis=0)
        bound = np.minimum(norm[parts], half[:, None] + walk[parts])
        return bound - np.log1p(-alpha)


def run_starts(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first position of each run of equal numbers."""
    return np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))


def _lengths(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.diff(np.append(run_starts(numbers), len(numbers)))


def _renumbered(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.unique(numbers, return_inverse=True)[1].astype(np.intp)


def _row_chunks(place: NDArray[np.intp], n_columns: int) -> list[slice]:
    """Slices of a sorted array, each a bounded number of whole runs."""
    step = max(1, _CHUNK // max(1, n_columns))
    bounds = [0]
    while bounds[-1] < len(place):
        last = min(bounds[-1] + step, len(place)) - 1
        bounds.append(int(np.searchsorted(place, place[last], side="right")))
    return [slice(a, b) for a, b in pairwise(bounds)]
