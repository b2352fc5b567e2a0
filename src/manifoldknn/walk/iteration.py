"""Iterating with A_UU = I - αS_UU for some rows U, and how wrong a solution can be.

With the residual r, all of these hold:

    |x_i - x̂_i| ≤ ‖r‖₂ / (1 - α)                        (eigenvalues of A are ≥ 1 - α),
    |x_i - x̂_i| ≤ √d_i · max_m (|r_m| / √d_m) / (1 - α)   (rows of P sum to at most 1),
    |x_i - x̂_i| ≤ (A⁻¹|r|)_i                             (A⁻¹ is nonnegative).

The third is sharper by a factor of about 100. One solve serves all columns, with
the largest |r| of each row, and may be rough: what is wrong with it is bounded
by the first two.

On the processor, corrections are computed in single precision, which halves what memory has
to deliver, and residuals in double: iterative refinement gives double precision
at the price of single.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.base.csr import row_range
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.base.progress import pulse
from manifoldknn.base.threads import Crew
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.walk.aggregates import Levels, Preconditioner
from manifoldknn.walk.blockcg import Watch, block_cg

LOG_CUT = -700.0  # exp() of less is lost or nearly so
LONG_WALK = 0.995  # α from which conjugate gradients are slow without a preconditioner
ENVELOPE_TOL, ENVELOPE_ITERATIONS = 1e-3, 200  # of the solve for the third bound
_ENTRIES_PER_THREAD = 1 << 17  # of S, times columns: less is not worth sharing out
_SINGLE_UP_TO = 1 - 1e-4  # α, for corrections in single precision
_SMALLEST_STEP = 1e-4  # what one correction in single precision is asked to do


class Parts:
    """Some rows, those of one connected part together.

    `number` is the part of each, ascending from 0; `n_cut` edges were passed over because their
    entry in S is below ``exp(LOG_CUT)``.
    """

    def __init__(
        self,
        rows: Any,
        number: Any,
        n_cut: int,
        kernels: Kernels = NUMPY,
        together: Alone = ALONE,
    ) -> None:
        self.rows, self.number, self.n_cut, self.kernels = rows, number, n_cut, kernels
        self.together = together
        self.runs = kernels.runs_of(number)
        if together.size > 1:
            self.runs = _SharedRuns(self.runs, number, together)

    def spread(self, values: Any) -> Any:
        """Return for every row what holds for its part, or one row where that does for all."""
        return values if len(values) == 1 else values[self.number]

    def chosen(self, wanted: Any) -> Parts:
        """Return the parts of a mask."""
        here = wanted[self.number]
        number = (self.kernels.xp.cumsum(wanted, 0) - 1)[self.number[here]]
        return Parts(self.rows[here], number, self.n_cut, self.kernels, self.together)


class _SharedRuns:
    """Runs of rows that go on on other machines; `number` names the run of each row here."""

    def __init__(self, here: Any, number: Any, together: Alone) -> None:
        self._here, self._together = here, together
        self._named = number[here.offsets[:-1]]
        self._count = int(together.max(number.max(initial=-1))) + 1

    def max(self, values: Any) -> Any:
        """Return the maximum of every run."""
        return self._together.max(self._placed(self._here.max, values, -np.inf))

    def sum(self, values: Any) -> Any:
        """Return the sum of every run."""
        return self._together.sum(self._placed(self._here.sum, values, 0.0))

    def _placed(self, reduced: Callable[[Any], Any], values: Any, empty: float) -> Any:
        out = np.full((self._count, *values.shape[1:]), empty)
        if len(self._named):
            out[self._named] = reduced(values)
        return out


def log_error(
    size: Any,
    parts: Parts,
    half_log_degrees: Any,
    alpha: float,
    spread: Callable[[Any], tuple[Any, Any]] | None,
) -> Any:
    """Return the logarithm of the smallest bound in the text of this module, for every entry.

    `size` is |r|, which is written over; errors are bounded part by part. `half_log_degrees` are
    log √d. `spread` returns about A⁻¹ times a column, and what is left of that; without it, the
    third bound is left out.
    """
    xp, kernels = parts.kernels.xp, parts.kernels
    plain = _log_norm_bound(size, parts, half_log_degrees, alpha)
    scale = parts.together.max(_top(xp, size))
    if spread is None or not scale.any():
        return plain
    size /= xp.where(scale > 0, scale, 1.0)
    envelope = xp.amax(size, axis=1, keepdims=True)
    found, rest = spread(envelope)
    walked = xp.logaddexp(
        kernels.log(kernels.at_least(found, 0.0)),
        _log_norm_bound(xp.abs(rest), parts, half_log_degrees, alpha),
    )
    return xp.minimum(plain, walked + kernels.log(scale), out=plain)


def _top(xp: Any, block: Any) -> Any:
    """Return the largest of every column of something not negative; 0 without rows."""
    return xp.amax(block, axis=0) if len(block) else xp.zeros(block.shape[1:])


def _log_norm_bound(size: Any, parts: Parts, half_log_degrees: Any, alpha: float) -> Any:
    """Return the smaller of the first two bounds, for absolute residuals."""
    xp, kernels, half = parts.kernels.xp, parts.kernels, half_log_degrees[:, None]
    largest = parts.runs.max(size)
    # Squares of residuals below 1e-162 would vanish: scale them first.
    work = size / parts.spread(xp.where(largest > 0, largest, 1.0))
    norm = kernels.log(largest) + 0.5 * kernels.log(parts.runs.sum(xp.square(work, out=work)))
    kernels.log(size, out=work)
    work -= half
    xp.add(half, parts.spread(parts.runs.max(work)), out=work)
    xp.minimum(work, parts.spread(norm), out=work)
    work -= float(np.log1p(-alpha))
    return work


class _Product:
    """v → v - α(S v + must-links) in one precision; `off` is -αS.

    Must-links are D^-½ (YYᵀ - I) D^-½ on the labelled rows, never written out: O(l).
    """

    def __init__(
        self,
        off: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        scale: NDArray[np.float64],
        alpha: float,
        together: Alone,
        dtype: Any,
    ) -> None:
        self._alpha, self._together = alpha, together
        self.off = _converted(off, dtype)
        self.linked = linked
        self.scale = scale.astype(dtype)[:, None]
        self.n_groups = int(together.max(group.max(initial=-1))) + 1
        size = len(linked), max(1, self.n_groups)
        self.indicator = sparse.csr_array(
            (
                np.ones(len(linked), dtype=dtype),
                group.astype(off.indices.dtype),
                np.arange(len(linked) + 1, dtype=off.indptr.dtype),
            ),
            shape=size,
        )
        self.gather = sparse.csr_array(self.indicator.T)

    def __call__(self, v: NDArray[Any], crew: Crew) -> NDArray[Any]:
        """Return the product with a block of columns."""
        if not self.n_groups:
            out = self._rows_times(self._together.halo(v), crew)
        else:
            scaled = self.scale * v[self.linked]
            seen, sums = self._together.halo_and_sum(v, self.gather @ scaled)
            out = self._rows_times(seen, crew)
            more = self.scale * (self.indicator @ sums - scaled)
            out[self.linked] -= out.dtype.type(self._alpha) * more
        out += v
        return out

    def _rows_times(self, v: NDArray[Any], crew: Crew) -> NDArray[Any]:
        """Return -αS v, rows shared out over threads: each row is summed by one."""
        off = self.off
        shares = min(len(crew), off.nnz * v.shape[1] // _ENTRIES_PER_THREAD)
        if shares < 2:
            return np.asarray(off @ v)
        cuts = np.searchsorted(off.indptr, np.linspace(0, off.nnz, shares + 1)[1:-1])
        bounds = [0, *cuts.tolist(), off.shape[0]]
        out = np.empty((off.shape[0], v.shape[1]), dtype=v.dtype)

        def fill(ends: tuple[int, int]) -> None:
            rows = slice(*ends)
            out[rows] = row_range(off, rows) @ v

        crew.do(fill, list(pairwise(bounds)))
        return out


class SparseRestriction:
    """A_UU = I - αS_UU for a sparse graph, by conjugate gradients.

    Parameters
    ----------
    s : csr_array
        S_UU without must-links; it is taken over.
    linked, group : ndarray of int
        Rows with must-links and their class.
    half_log_degrees : ndarray
        log √d of the rows.
    alpha : float
        Share of strength kept per step.
    levels : tuple of ndarray, optional
        Rows that belong together, from `aggregates`: long walks are then much quicker.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    together : Alone, optional
        Who shares the rows; their halo has columns in S after those of the rows.
    """

    is_exact = False

    def __init__(
        self,
        s: Any,
        linked: NDArray[np.intp],
        group: NDArray[np.intp],
        half_log_degrees: NDArray[np.float64],
        alpha: float,
        levels: Levels = (),
        n_jobs: int | None = 1,
        together: Alone = ALONE,
    ) -> None:
        s.data *= -alpha
        parts = s, linked, group, np.exp(-half_log_degrees[linked]), alpha, together
        self._together = together
        self.half_log_degrees, self.alpha = half_log_degrees, alpha
        # Beside 1 - α, which eigenvalues come near to, roundings of single precision are not small.
        self._precision = np.float32 if alpha <= _SINGLE_UP_TO else np.float64
        self._double, self._single = (
            _Product(*parts, precision) for precision in (np.float64, self._precision)
        )
        self._levels, self._n_jobs = levels, n_jobs
        self._preconditioner: Preconditioner | None = None

    def precondition(self) -> Preconditioner | None:
        """Return about A⁻¹ where walks are long; made once, before threads ask for it."""
        if not self._levels or self.alpha < LONG_WALK:
            return None
        if self._preconditioner is None:
            product = self._double
            n, m = len(self.half_log_degrees), product.indicator.shape[1]
            links = sparse.csr_array(
                (product.scale[:, 0], (product.linked, product.indicator.indices)), shape=(n, m)
            )
            self._preconditioner = Preconditioner(
                product.off, links, self.half_log_degrees, self._levels, self.alpha, self._together
            )
        return self._preconditioner

    def correction(
        self,
        residual: NDArray[np.float64],
        *,
        tol: float | NDArray[np.float64],
        max_iter: int,
        watch: Watch | None = None,
    ) -> tuple[NDArray[np.float64], int, bool]:
        """Solve A_UU e = residual to a relative residual of `tol`, in single precision.

        It is not below 1e-5; `watch` is as in `block_cg`. Returns e, to be added to the solution,
        the products with the matrix that were needed, and whether `tol` was reached.
        """
        scale = np.maximum(residual.max(axis=0, initial=0.0), -residual.min(axis=0, initial=0.0))
        scale = self._together.max(scale)
        scale[scale == 0] = 1.0
        rhs = np.empty(residual.shape, dtype=self._precision)
        np.divide(residual, scale, out=rhs, casting="same_kind")
        with Crew(self._n_jobs) as crew:
            x, n_iter, converged = block_cg(
                lambda v: self._single(v, crew),
                rhs,
                tol=tol,
                max_iter=max_iter,
                precondition=self.precondition(),
                watch=watch and _watching(watch, scale),
                total=self._together.sum,
            )
        return x * scale, n_iter, converged

    def residual(self, rhs: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return rhs - A_UU x in double precision."""
        with Crew(self._n_jobs) as crew:
            product = self._double(x, crew)
        return np.subtract(rhs, product, out=product)

    def log_error(self, residual: NDArray[np.float64], parts: Parts, sharp: bool = True) -> Any:
        """Return the logarithm of a bound on the error of every entry, given ``rhs - A_UU x``."""

        def spread(envelope: Any) -> tuple[Any, Any]:
            found, _, _ = self.correction(envelope, tol=ENVELOPE_TOL, max_iter=ENVELOPE_ITERATIONS)
            return found, self.residual(envelope, found)

        how = self.half_log_degrees, self.alpha, spread if sharp else None
        return log_error(np.abs(residual), parts, *how)

    def iteration(
        self, rhs: NDArray[np.float64], x: NDArray[np.float64] | None, residual: Any
    ) -> Refinement:
        """Return what goes from x, or from nothing, towards the solution of A_UU x = rhs."""
        return Refinement(self, rhs, x, residual)


class Refinement:
    """A_UU x = rhs on its way to a solution: corrections in single precision, residuals in double.

    `x` is what there is so far, `residual` what is left of `rhs`, after `n_iter` iterations.
    """

    plain_looks = 0  # the third bound costs little beside corrections

    def __init__(
        self, matrix: SparseRestriction, rhs: NDArray[np.float64], x: Any, residual: Any
    ) -> None:
        self._matrix, self._rhs = matrix, rhs
        self.x = np.zeros_like(rhs) if x is None else x
        self.residual = rhs.copy() if x is None else residual
        self.n_iter, self._share = 0, 1.0

    def advance(
        self,
        ahead: NDArray[np.float64],
        going: NDArray[np.bool_],
        max_iter: int,
        settled: Callable[[float, Callable[[Any], Any]], bool] | None = None,
    ) -> bool:
        """Make residuals of some columns smaller by the factors `ahead`, and tell if they are.

        `settled` is asked after every iteration: see `Iteration`.
        """
        # A slice needs no copies, and at first all columns go on.
        some: Any = slice(None) if going.all() else np.flatnonzero(going)
        ahead, last = ahead[some], self.n_iter + max_iter
        while True:
            step = np.maximum(ahead, _SMALLEST_STEP)
            enough = False

            def watch(n_iter: int, share: float, look: Any) -> bool:
                nonlocal enough
                share *= self._share
                pulse(
                    "walking over %d rows from %d sources: %d iterations, residual %.1e",
                    *self.x.shape, self.n_iter + n_iter, share,
                )  # fmt: skip
                enough = settled is not None and settled(
                    share, lambda rows: self.x[rows][:, some] + look(rows)
                )
                return enough

            correction, n_iter, converged = self._matrix.correction(
                self.residual[:, some], tol=step, max_iter=last - self.n_iter, watch=watch
            )
            self.n_iter += n_iter
            self._share *= float(step.max())
            self.x[:, some] += correction
            del correction
            if enough:
                return True  # and nobody looks at the residual
            self.residual[:, some] = self._matrix.residual(self._rhs[:, some], self.x[:, some])
            if not converged or not (step > ahead).any():
                return converged
            ahead = np.minimum(0.5, ahead / step)

    def log_error(self, parts: Parts, *, sharp: bool) -> Any:
        """Return the logarithm of a bound on the error of every entry."""
        return self._matrix.log_error(self.residual, parts, sharp)


def _watching(watch: Watch, scale: NDArray[np.float64]) -> Watch:
    """Let somebody watch a solution whose columns were divided by `scale`."""
    return lambda n_iter, share, look: watch(n_iter, share, lambda rows: look(rows) * scale)


def _converted(matrix: Any, dtype: Any) -> Any:
    """Return a CSR matrix in another precision that shares its structure."""
    data = matrix.data.astype(dtype, copy=False)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
