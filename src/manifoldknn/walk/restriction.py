"""Solving with A_UU = I - αS_UU for some rows U, and how wrong a solution can be.

A factorisation is accurate to rounding. Conjugate gradients are not; with the
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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from manifoldknn.base.csr import row_range
from manifoldknn.base.threads import Crew
from manifoldknn.walk.aggregates import Levels, Preconditioner
from manifoldknn.walk.blockcg import Watch, block_cg
from manifoldknn.walk.factor import FactorizedInverse

_LOG_UNDERFLOW = np.log(1e-290)  # what underflow can lose of numbers up to 1
_ENVELOPE_TOL = 1e-3
_ENTRIES_PER_THREAD = 1 << 17  # of S, times columns: less is not worth sharing out
LONG_WALK = 0.995  # α from which conjugate gradients are slow without a preconditioner


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
        self.s = _converted(s, dtype)
        self.linked = linked
        self.scale = scale.astype(dtype)[:, None]
        size = len(linked), int(group.max(initial=0)) + 1
        self.indicator = sparse.csr_array(
            (
                np.ones(len(linked), dtype=dtype),
                group.astype(s.indices.dtype),
                np.arange(len(linked) + 1, dtype=s.indptr.dtype),
            ),
            shape=size,
        )
        self.gather = sparse.csr_array(self.indicator.T)

    def __call__(self, v: NDArray[Any], alpha: float, crew: Crew) -> NDArray[Any]:
        """Return the product with a block of columns."""
        out = self._rows_times(v, crew)
        if self.linked.size:
            scaled = self.scale * v[self.linked]
            sums = self.indicator @ (self.gather @ scaled)
            out[self.linked] += self.scale * (sums - scaled)
        out *= -out.dtype.type(alpha)
        out += v
        return out

    def _rows_times(self, v: NDArray[Any], crew: Crew) -> NDArray[Any]:
        """Return S v, rows shared out over threads: each row is summed by one."""
        shares = min(len(crew), self.s.nnz * v.shape[1] // _ENTRIES_PER_THREAD)
        if shares < 2:
            return np.asarray(self.s @ v)
        cuts = np.searchsorted(self.s.indptr, np.linspace(0, self.s.nnz, shares + 1)[1:-1])
        bounds = [0, *cuts.tolist(), self.s.shape[0]]
        out = np.empty((self.s.shape[0], v.shape[1]), dtype=v.dtype)

        def fill(ends: tuple[int, int]) -> None:
            rows = slice(*ends)
            out[rows] = row_range(self.s, rows) @ v

        crew.do(fill, list(pairwise(bounds)))
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
    levels : tuple of ndarray, optional
        Rows that belong together, from `aggregates`: long walks are then much quicker.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    """

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        half_log_degrees: NDArray[np.float64],
        levels: Levels = (),
        n_jobs: int | None = 1,
    ) -> None:
        scale = np.exp(-half_log_degrees[linked])
        self.half_log_degrees = half_log_degrees
        self._double = _Product(s, linked, group, scale, np.float64)
        self._single = _Product(s, linked, group, scale, np.float32)
        self._levels, self._n_jobs = levels, n_jobs
        self._preconditioner: Preconditioner | None = None

    def precondition(self, alpha: float) -> Preconditioner | None:
        """Return about A⁻¹ where walks are long; made once, before threads ask for it."""
        if not self._levels or alpha < LONG_WALK:
            return None
        if self._preconditioner is None:
            product = self._double
            n, m = len(self.half_log_degrees), product.indicator.shape[1]
            links = sparse.csr_array(
                (product.scale[:, 0], (product.linked, product.indicator.indices)), shape=(n, m)
            )
            self._preconditioner = Preconditioner(
                product.s, links, self.half_log_degrees, self._levels, alpha
            )
        return self._preconditioner

    def correction(
        self,
        residual: NDArray[np.float64],
        *,
        alpha: float,
        tol: float | NDArray[np.float64],
        max_iter: int,
        watch: Watch | None = None,
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
        watch : callable, optional
            As in `block_cg`.

        Returns
        -------
        correction : ndarray of shape (n_rows, n_columns)
            To be added to the solution.
        n_iter : int
            Products with the matrix that were needed.
        converged : bool
            Whether `tol` was reached.
        """
        scale = np.maximum(residual.max(axis=0, initial=0.0), -residual.min(axis=0, initial=0.0))
        scale[scale == 0] = 1.0
        rhs = np.empty(residual.shape, dtype=np.float32)
        np.divide(residual, scale, out=rhs, casting="same_kind")
        with Crew(self._n_jobs) as crew:
            x, n_iter, converged = block_cg(
                lambda v: self._single(v, alpha, crew),
                rhs,
                tol=tol,
                max_iter=max_iter,
                precondition=self.precondition(alpha),
                watch=watch and _watching(watch, scale),
            )
        return x * scale, n_iter, converged

    def residual(
        self, rhs: NDArray[np.float64], x: NDArray[np.float64], alpha: float
    ) -> NDArray[np.float64]:
        """Return rhs - A_UU x in double precision."""
        with Crew(self._n_jobs) as crew:
            product = self._double(x, alpha, crew)
        return np.subtract(rhs, product, out=product)

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
            walked = walked + np.log(scale)
        return np.minimum(plain, walked, out=plain)

    def _log_norm_bound(
        self, size: NDArray[np.float64], parts: NDArray[np.intp], alpha: float
    ) -> NDArray[np.float64]:
        """Return the smaller of the first two bounds, for absolute residuals."""
        starts = run_starts(parts)
        half = self.half_log_degrees[:, None]
        largest = np.maximum.reduceat(size, starts, axis=0)
        # Squares of residuals below 1e-162 would vanish: scale them first.
        work = size / of_rows(np.where(largest > 0, largest, 1.0), parts)
        np.square(work, out=work)
        with np.errstate(divide="ignore"):
            norm = np.log(largest) + 0.5 * np.log(np.add.reduceat(work, starts, axis=0))
            np.log(size, out=work)
        work -= half
        walk = np.maximum.reduceat(work, starts, axis=0)
        np.add(half, of_rows(walk, parts), out=work)
        np.minimum(of_rows(norm, parts), work, out=work)
        work -= np.log1p(-alpha)
        return work


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
        self._inverse: FactorizedInverse | None = None

    def log_solution(self, rhs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Return log x for A_UU x = rhs, with errors of no more than exp(log_error)."""
        if self._inverse is None:
            self._inverse = FactorizedInverse(*self._parts, alpha)
        return _log_of_nonnegative(self._inverse.solve(rhs))


class DenseRestriction:
    """A_UU = I - αS_UU for a dense graph, by Cholesky factorisation, as accurate.

    Parameters
    ----------
    s : ndarray
        S_UU, symmetric, in an array of its own: the factor takes its place.
    """

    log_error = _LOG_UNDERFLOW

    def __init__(self, s: NDArray[np.float64]) -> None:
        self._matrix = s
        self._factor: Any = None

    def log_solution(self, rhs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Return log x for A_UU x = rhs, with errors of no more than exp(log_error)."""
        if self._factor is None:
            matrix = self._matrix.T  # column by column in memory, as LAPACK wants it
            matrix *= -alpha
            matrix[np.diag_indices_from(matrix)] += 1.0
            self._factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        return _log_of_nonnegative(linalg.cho_solve(self._factor, rhs))


Restriction = SparseRestriction | FactorRestriction | DenseRestriction


def _watching(watch: Watch, scale: NDArray[np.float64]) -> Watch:
    """Let somebody watch a solution whose columns were divided by `scale`."""
    return lambda n_iter, share, look: watch(n_iter, share, lambda rows: look(rows) * scale)


def _log_of_nonnegative(x: NDArray[np.float64]) -> NDArray[np.float64]:
    np.maximum(x, 0.0, out=x)
    with np.errstate(divide="ignore"):
        return np.log(x, out=x)


def of_rows(values: NDArray[np.float64], parts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the values of each row's part; with a single part, one row that serves all."""
    return values if len(values) == 1 else values[parts]


def _converted(matrix: Any, dtype: Any) -> Any:
    """Return a CSR matrix in another precision that shares its structure."""
    data = matrix.data.astype(dtype, copy=False)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def run_starts(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first position of each run of equal numbers."""
    return np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
