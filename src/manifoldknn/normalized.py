"""S = D^-½ W D^-½ and its restrictions A_UU = I - αS_UU.

Entries of S are kept as logarithms. A restriction to some rows U knows how to
improve a solution with A_UU, and bounds the error of what it has. With the
residual r, all of these hold:

    |x_i - x̂_i| ≤ ‖r‖₂ / (1 - α)                        (eigenvalues of A are ≥ 1 - α),
    |x_i - x̂_i| ≤ √d_i · max_m (|r_m| / √d_m) / (1 - α)   (rows of P sum to at most 1),
    |x_i - x̂_i| ≤ (A⁻¹|r|)_i                             (A⁻¹ is nonnegative).

The third is sharper by a factor of about 100. One solve serves all columns, with
the largest |r| of each row, and may be rough: what is wrong with it is bounded
by the first two.

Corrections are computed in single precision, which halves what memory has to
deliver, and residuals in double: iterative refinement gives double precision
at the price of single.
"""

from __future__ import annotations

from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

from manifoldknn.blockcg import block_cg
from manifoldknn.factor import FactorizedInverse
from manifoldknn.graph import ConstrainedGraph

LOG_CUT = -700.0  # exp() of less is lost or nearly so
_LOG_UNDERFLOW = np.log(1e-290)  # what underflow can lose of numbers up to 1
_ENVELOPE_TOL = 1e-3
_CHUNK = 1 << 21


class NormalizedGraph:
    """S = D^-½ W D^-½ with entries as logarithms, and its restrictions.

    Parameters
    ----------
    graph : ConstrainedGraph
        W.

    Attributes
    ----------
    log_degrees : ndarray of shape (n_samples,)
        Logarithms of D.
    n_samples : int
        Number of nodes.
    is_sparse : bool
        Whether W is.
    factorize : bool
        Whether restrictions of a sparse graph are solved by factorisation.
    """

    def __init__(self, graph: ConstrainedGraph) -> None:
        self.factorize = False
        self.log_degrees = graph.log_degrees()
        self.n_samples = graph.n_samples
        self.is_sparse = graph.is_sparse
        half = 0.5 * self.log_degrees
        self.log_s: Any
        if graph.is_sparse:
            log_s = graph.log_weights.copy()
            log_s.data = log_s.data - half[log_s.indices] - np.repeat(half, np.diff(log_s.indptr))
            self.log_s = log_s
        else:
            self.log_s = graph.log_weights - half[:, None] - half[None, :]
        linked = graph.must_links_per_row() > 0
        self.group = np.where(linked, graph.must_link, -1)
        self._whole: Restriction | None = None
        self._whole_parts: tuple[NDArray[np.intp], NDArray[np.intp], int] | None = None

    @classmethod
    def of_parts(
        cls, log_s: Any, log_degrees: NDArray[np.float64], group: NDArray[np.intp]
    ) -> NormalizedGraph:
        """Return the graph with a given sparse log S, log D and must-link classes."""
        graph = object.__new__(cls)
        graph.log_s, graph.log_degrees, graph.group = log_s, log_degrees, group
        graph.n_samples, graph.is_sparse, graph.factorize = len(log_degrees), True, False
        graph._whole, graph._whole_parts = None, None
        return graph

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
        everything = len(rows) == len(self.log_degrees)
        if everything and self._whole_parts is not None:
            return self._whole_parts
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
        found = rows[order], part[order].astype(np.intp), int(np.sum(~seen))
        if everything:
            self._whole_parts = found
        return found

    def restrict(self, rows: NDArray[np.intp]) -> Restriction:
        """Return A_UU for U = rows; the one for all rows, in the order of `parts`, is kept."""
        known = self._whole_parts
        everything = known is not None and np.array_equal(rows, known[0])
        if everything and self._whole is not None:
            return self._whole
        half = 0.5 * self.log_degrees[rows]
        restriction: Restriction
        if self.is_sparse:
            s = self._sub(rows)
            s.data = np.exp(s.data)
            linked = np.flatnonzero(self.group[rows] >= 0)
            group = _renumbered(self.group[rows[linked]])
            kind = FactorRestriction if self.factorize else SparseRestriction
            restriction = kind(s, linked, group, half)
        else:
            restriction = DenseRestriction(np.exp(self.log_s[np.ix_(rows, rows)]))
        if everything:
            self._whole = restriction
        return restriction

    def boundary(
        self, rows: NDArray[np.intp], final: NDArray[np.bool_], log_x: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return log (S_UR x_R) for U = rows and R the final rows."""
        out = np.full((len(rows), log_x.shape[1]), -np.inf)
        if self.is_sparse:
            inside = self.log_s[rows]
            crossing = final[inside.indices]
            place = np.repeat(np.arange(len(rows)), np.diff(inside.indptr))[crossing]
            add_log_products(place, inside.indices[crossing], inside.data[crossing], log_x, out)
            self._clique_boundary(rows, final, log_x, out)
            return out
        known = np.flatnonzero(final)
        block = self.log_s[np.ix_(rows, known)]
        for column in range(log_x.shape[1]):
            out[:, column] = np.logaddexp.reduce(block + log_x[known, column], axis=1)
        return out

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


class _Product:
    """v → v - α(S v + must-links) in one precision.

    Must-links are D^-½ (YYᵀ - I) D^-½ on the labelled rows, never written out: O(l).
    """

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        scale: NDArray[np.float64],
        dtype: Any,
    ) -> None:
        self.s = s.astype(dtype)
        self.linked = linked
        self.scale = scale.astype(dtype)[:, None]
        size = len(linked), int(group.max(initial=0)) + 1
        self.indicator = sparse.csr_array(
            (np.ones(len(linked), dtype=dtype), group, np.arange(len(linked) + 1)), shape=size
        )
        self.gather = sparse.csr_array(self.indicator.T)

    def __call__(self, v: NDArray[Any], alpha: float) -> NDArray[Any]:
        """Return the product with a block of columns."""
        out: NDArray[Any] = self.s @ v
        if self.linked.size:
            scaled = self.scale * v[self.linked]
            sums = self.indicator @ (self.gather @ scaled)
            out[self.linked] += self.scale * (sums - scaled)
        out *= -out.dtype.type(alpha)
        out += v
        return out


class SparseRestriction:
    """A_UU = I - αS_UU for a sparse graph, by conjugate gradients.

    Parameters
    ----------
    s : csr_array
        S_UU without must-links.
    linked, group : ndarray of int
        Rows with must-links and their class.
    half_log_degrees : ndarray
        log √d of the rows.
    """

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        half_log_degrees: NDArray[np.float64],
    ) -> None:
        scale = np.exp(-half_log_degrees[linked])
        self.half_log_degrees = half_log_degrees
        self._double = _Product(s, linked, group, scale, np.float64)
        self._single = _Product(s, linked, group, scale, np.float32)

    def correction(
        self, residual: NDArray[np.float64], *, alpha: float, tol: float, max_iter: int
    ) -> tuple[NDArray[np.float64], int, bool]:
        """Solve A_UU e = residual to a relative residual of `tol`, in single precision.

        Parameters
        ----------
        residual : ndarray of shape (n_rows, n_columns)
            What is left of the right-hand sides.
        alpha : float
            Share of strength kept per step.
        tol : float
            Relative residual, not below 1e-5.
        max_iter : int
            Limit on iterations.

        Returns
        -------
        correction : ndarray of shape (n_rows, n_columns)
            To be added to the solution.
        n_iter : int
            Products with the matrix that were needed.
        converged : bool
            Whether `tol` was reached.
        """
        scale = np.abs(residual).max(axis=0, initial=0.0)
        scale[scale == 0] = 1.0
        x, n_iter, converged = block_cg(
            lambda v: self._single(v, alpha),
            (residual / scale).astype(np.float32),
            tol=tol,
            max_iter=max_iter,
        )
        return x * scale, n_iter, converged

    def residual(
        self, rhs: NDArray[np.float64], x: NDArray[np.float64], alpha: float
    ) -> NDArray[np.float64]:
        """Return rhs - A_UU x in double precision."""
        return rhs - self._double(x, alpha)

    def log_error(
        self, residual: NDArray[np.float64], parts: NDArray[np.intp], alpha: float
    ) -> NDArray[np.float64]:
        """Return the logarithm of a bound on the error of every entry.

        Parameters
        ----------
        residual : ndarray of shape (n_rows, n_columns)
            ``rhs - A_UU x``.
        parts : ndarray of shape (n_rows,)
            Connected part of each row, ascending; errors are bounded part by part.
        alpha : float
            Share of strength kept per step.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The smallest of the three bounds in the text of this module.
        """
        size = np.abs(residual)
        plain = self._log_norm_bound(size, parts, alpha)
        scale = size.max(axis=0, initial=0.0)
        if not scale.any():
            return plain
        envelope = np.max(size / np.where(scale > 0, scale, 1.0), axis=1, keepdims=True)
        spread, _, _ = self.correction(envelope, alpha=alpha, tol=_ENVELOPE_TOL, max_iter=200)
        rest = np.abs(self.residual(envelope, spread, alpha))
        with np.errstate(divide="ignore"):
            walked = np.logaddexp(
                np.log(np.maximum(spread, 0.0)), self._log_norm_bound(rest, parts, alpha)
            )
            return np.minimum(plain, walked + np.log(scale))

    def _log_norm_bound(
        self, size: NDArray[np.float64], parts: NDArray[np.intp], alpha: float
    ) -> NDArray[np.float64]:
        """Return the smaller of the first two bounds, for absolute residuals."""
        starts = run_starts(parts)
        half = self.half_log_degrees[:, None]
        largest = np.maximum.reduceat(size, starts, axis=0)
        # Squares of residuals below 1e-162 would vanish: scale them first.
        scaled = size / np.where(largest > 0, largest, 1.0)[parts]
        with np.errstate(divide="ignore"):
            norm = np.log(largest) + 0.5 * np.log(np.add.reduceat(scaled**2, starts, axis=0))
            walk = np.maximum.reduceat(np.log(size) - half, starts, axis=0)
        return np.minimum(norm[parts], half + walk[parts]) - np.log1p(-alpha)


class FactorRestriction:
    """A_UU = I - αS_UU for a sparse graph, by sparse factorisation.

    Factorising an M-matrix adds terms of one sign: every entry of the solution keeps
    its relative accuracy, and only underflow can lose one.

    Parameters
    ----------
    s, linked, group, half_log_degrees
        As in `SparseRestriction`.
    """

    log_error = _LOG_UNDERFLOW

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        half_log_degrees: NDArray[np.float64],
    ) -> None:
        self._parts = s, linked, group, np.exp(-half_log_degrees[linked])
        self._inverses: dict[float, FactorizedInverse] = {}
        self._lock = Lock()

    def log_solution(self, rhs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Return log x for A_UU x = rhs, with errors of no more than exp(log_error)."""
        with self._lock:  # several threads want the one factorisation
            if alpha not in self._inverses:
                self._inverses[alpha] = FactorizedInverse(*self._parts, alpha)
        return _log_of_nonnegative(self._inverses[alpha].solve(rhs))


class DenseRestriction:
    """A_UU = I - αS_UU for a dense graph, by Cholesky factorisation, as accurate.

    Parameters
    ----------
    s : ndarray
        S_UU.
    """

    log_error = _LOG_UNDERFLOW

    def __init__(self, s: NDArray[np.float64]) -> None:
        self.s = s

    def log_solution(self, rhs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Return log x for A_UU x = rhs, with errors of no more than exp(log_error)."""
        matrix = -alpha * self.s
        matrix[np.diag_indices_from(matrix)] += 1.0
        factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        return _log_of_nonnegative(linalg.cho_solve(factor, rhs))


Restriction = SparseRestriction | FactorRestriction | DenseRestriction


def _log_of_nonnegative(x: NDArray[np.float64]) -> NDArray[np.float64]:
    np.maximum(x, 0.0, out=x)
    with np.errstate(divide="ignore"):
        return np.log(x, out=x)


def add_log_products(
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    log_values: NDArray[np.float64],
    log_x: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write log (M x) for a sparse M into the rows of `out` in which M has entries.

    Parameters
    ----------
    rows, cols : ndarray of int
        Places of the entries of M, rows ascending.
    log_values : ndarray of float
        Logarithms of the entries.
    log_x : ndarray of shape (n_columns_of_m, any)
        Logarithms of x.
    out : ndarray of shape (n_rows_of_m, any)
        Where to write; other rows are left as they are.
    """
    for part in _row_chunks(rows, log_x.shape[1]):
        terms = log_values[part, None] + log_x[cols[part]]
        at = rows[part]
        starts = run_starts(at)
        top = np.maximum.reduceat(terms, starts, axis=0)
        top = np.where(np.isneginf(top), 0.0, top)
        sums = np.add.reduceat(np.exp(terms - np.repeat(top, _lengths(at), axis=0)), starts)
        with np.errstate(divide="ignore"):
            out[at[starts]] = np.log(sums) + top


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
