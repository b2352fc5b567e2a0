"""Columns of A⁻¹ = (I - αS)⁻¹, accurate in every row.

A vote compares weights *within one row*, and rows far from every label have
weights 1e-9, 1e-60 or 1e-250 of the largest. A solver that stops at a small
residual has said nothing about them. So the system is solved in levels:

1. solve; bound the error of every entry;
2. rows whose errors are below `tol` times their own largest entry are final (R);
3. the others (U) satisfy A_UU x_U = b_U + α S_UR x_R exactly: solve again, each
   connected part and column of U on a scale of its own.

Values travel between levels as logarithms, so no distance is too far. Rows of U
are nonnegative combinations of rows of R, so relative errors are passed on
without growing.

Columns usually finish the same rows. One whose source is an outlier does not:
it is then taken on alone, so that it does not hold back the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.progress import pulse
from manifoldknn.walk.blockcg import Watch
from manifoldknn.walk.normalized import LOG_CUT, NormalizedGraph
from manifoldknn.walk.restriction import SparseRestriction, of_rows, run_starts

logger = logging.getLogger(__name__)

_FIRST_GOAL = 1e-3  # relative residual at which a level is looked at first, as a share of tol;
_GOAL_FOR_FEW = 5e-3  # and where only some rows are wanted;
_GOAL_FOR_EACH = 2e-2  # of that, where entries must be accurate by themselves
_FURTHER = 1e-1  # how much smaller it becomes before each further look
_SMALLEST_STEP = 1e-4  # what one correction in single precision is asked to do
_LEVEL_RANGE = 1e-4  # a level need not go below this share of tol
_ROWS_AT_ONCE = 1 << 12  # whose accuracy is looked at together, in the cache
_TINY = np.finfo(float).tiny
_LOG_LARGE = 60.0  # of a guess, on the scale of the right-hand side
FIRST_LOOK, BETWEEN_LOOKS = 0.05, 3.0  # residual at which rows are looked at, and how it falls
_ENOUGH = 0.9  # share of final rows at which the others are better solved on their own


@dataclass(frozen=True)
class Columns:
    """Right-hand sides b and what their solutions are used for.

    Attributes
    ----------
    rows, cols : ndarray of int
        Places where b is not 0.
    log_values : ndarray of float
        Logarithms of b there.
    views : ndarray of shape (n_views, n_columns)
        Logarithms of column factors in which entries of a row are compared; -inf
        leaves a column out. An entry must be accurate in every view.
    reach : float, default=0
        Entries down to ``exp(-reach)`` of the largest of their row must be accurate by
        themselves, smaller ones beside that; 0: all beside the largest.
    settle : bool, default=False
        Whether it is enough that the rows wanted do not change any more: see `_Settling`.
    """

    rows: NDArray[np.intp]
    cols: NDArray[np.intp]
    log_values: NDArray[np.float64]
    views: NDArray[np.float64]
    reach: float = 0.0
    settle: bool = False

    @property
    def n_columns(self) -> int:
        """Number of right-hand sides."""
        return self.views.shape[1]

    def log_sources(
        self, rows: NDArray[np.intp], cols: NDArray[np.intp], n_samples: int
    ) -> NDArray[np.float64]:
        """Return log b in some rows and columns."""
        row_place = np.full(n_samples, -1, dtype=np.intp)
        row_place[rows] = np.arange(len(rows))
        col_place = np.full(self.n_columns, -1, dtype=np.intp)
        col_place[cols] = np.arange(len(cols))
        i, j = row_place[self.rows], col_place[self.cols]
        here = (i >= 0) & (j >= 0)
        out = np.full((len(rows), len(cols)), -np.inf)
        out[i[here], j[here]] = self.log_values[here]
        return out


@dataclass(frozen=True)
class Solution:
    """Nonnegative columns, as logarithms.

    Attributes
    ----------
    log_values : ndarray of shape (n_samples, n_columns)
        Logarithms; -inf in whole rows that no source reaches.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.
    reach : float
        How far below the largest of their row entries are accurate by themselves.
    """

    log_values: NDArray[np.float64]
    n_iter: int
    converged: bool
    reach: float


@dataclass(frozen=True)
class _Job:
    """Rows still to be solved for some columns."""

    rows: NDArray[np.intp]
    cols: NDArray[np.intp]


def solve_by_levels(
    graph: NormalizedGraph,
    columns: Columns,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    reference: NDArray[np.float64] | None = None,
    wanted: NDArray[np.bool_] | None = None,
    start: NDArray[np.float64] | None = None,
) -> Solution:
    """Solve (I - αS) x = b so that every row of x is accurate.

    Parameters
    ----------
    graph : NormalizedGraph
        S.
    columns : Columns
        Right-hand sides.
    alpha : float
        Share of strength kept per step.
    tol : float
        Error allowed in an entry, relative to the largest of its row.
    max_iter : int
        Limit on conjugate-gradient iterations per level.
    reference : ndarray of shape (n_views, n_samples), optional
        Logarithm of an entry that the row is known to have in some other column, as
        each view sees it.
    wanted : ndarray of bool of shape (n_samples,), optional
        The rows that have to be accurate, if not all.
    start : ndarray of shape (n_samples, n_columns), optional
        Logarithms of a guess, such as the solution for a graph that was much the same.

    Returns
    -------
    Solution
        Logarithms of x.

    Notes
    -----
    Sparse graphs cost O(iterations · edges · columns), dense ones O(n³ / 3).
    """
    solver = _Levels(graph, columns, alpha, tol, max_iter, reference, wanted, start)
    jobs = [_Job(np.arange(graph.n_samples), np.arange(columns.n_columns))]
    while jobs:
        jobs.extend(solver.level(jobs.pop()))
    reach = columns.reach if graph.is_sparse and not graph.factorize else np.inf
    return Solution(solver.log_x, solver.n_iter, solver.converged, reach)


class _Levels:
    """The state of a solve: what is known so far, and one step further."""

    def __init__(
        self,
        graph: NormalizedGraph,
        columns: Columns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: NDArray[np.float64] | None,
        wanted: NDArray[np.bool_] | None,
        start: NDArray[np.float64] | None,
    ) -> None:
        self.wanted, self.start = wanted, start
        self.graph = graph
        self.columns = columns
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        n = graph.n_samples
        nothing = np.full((len(columns.views), n), -np.inf)
        self.reference = nothing if reference is None else reference.copy()
        self.log_x = np.full((n, columns.n_columns), -np.inf)
        self.n_iter = 0
        self.converged = True

    def level(self, job: _Job) -> list[_Job]:
        """Solve one job as far as it is accurate; return what is left of it."""
        rows, parts, n_cut = self.graph.parts(job.rows)
        log_rhs = self._log_rhs(rows, job.cols)
        shift = np.maximum.reduceat(log_rhs, run_starts(parts), axis=0)
        sourced = np.asarray(np.isfinite(shift).any(axis=1))
        here = sourced[parts]
        if not here.any():
            return []  # islands without a source
        if self.graph.factorize and len(rows) == self.graph.n_samples:
            sourced[:], here[:] = True, True  # the one factorisation is of all rows
        # Only over edges that were passed over does anybody come to the others.
        waiting = rows[~here] if n_cut else rows[:0]
        rows, parts = rows[here], _renumbered_runs(parts[here])
        scale = np.where(np.isneginf(shift), 0.0, shift)[sourced]
        if not here.all():
            log_rhs = log_rhs[here]
        log_rhs -= of_rows(scale, parts)
        rhs = np.exp(log_rhs, out=log_rhs)
        matrix = self.graph.restrict(rows)
        if isinstance(matrix, SparseRestriction):
            log_x, accurate, converged = self._refined(
                matrix, rows, parts, n_cut, job.cols, rhs, scale
            )
        else:
            log_x = matrix.log_solution(rhs, self.alpha)
            log_x += of_rows(scale, parts)
            log_error = scale + matrix.log_error
            if n_cut:
                log_error = np.logaddexp(log_error, self._cut_flow(log_x, n_cut))
            accurate = self._accurate_parts(rows, parts, job.cols, log_x, log_error)
            self.n_iter, converged = self.n_iter + 1, True
        if self._all_wanted(rows, accurate) and not self._is_wanted(waiting).any():
            accurate[:] = True  # nobody asks for the others
            waiting = waiting[:0]
        elif not converged or not accurate.any():
            self.converged = False  # nothing better can be had: take it and say so
            accurate[:] = True
        left = []
        for group in _column_groups(accurate):
            final = accurate[:, group].all(axis=1)
            cols = job.cols[group]
            self._keep(rows[final], cols, log_x[np.ix_(final, group)])
            rest = np.concatenate([rows[~final], waiting])
            if rest.size:
                left.append(_Job(np.sort(rest), cols))
        return left[::-1]  # the first group, the larger, is popped first and informs the other

    def _refined(
        self,
        matrix: SparseRestriction,
        rows: NDArray[np.intp],
        parts: NDArray[np.intp],
        n_cut: int,
        cols: NDArray[np.intp],
        rhs: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], bool]:
        """Solve A_UU x = rhs·exp(scale) until most rows are accurate.

        Returns log x, which entries are accurate, and whether iterations sufficed.
        """
        norms = np.maximum(np.linalg.norm(rhs, axis=0), _TINY)
        x, residual, begun = self._guess(matrix, rows, parts, cols, rhs, scale, norms)
        going = np.flatnonzero(rhs.any(axis=0))
        relative = np.full(len(norms), np.inf)
        goal = self.tol * (_FIRST_GOAL if self.wanted is None else _GOAL_FOR_FEW)
        if self.wanted is not None and np.isinf(self.columns.reach):
            goal *= _GOAL_FOR_EACH
        spent, ahead = 0, np.minimum(0.5, goal / begun)
        told = _Told(len(rows), len(cols))
        sourced = np.logical_or.reduceat(rhs > 0, run_starts(parts), axis=0)
        # The preconditioner may carry rounding into parts that a column does not reach.
        idle = None if sourced.all() else ~sourced[parts]
        settling = None
        if self.columns.settle and self.wanted is not None and self.start is None and not n_cut:
            log_scale = np.where(sourced, scale, -np.inf)[:, going]
            settling = _Settling(self, rows, parts, cols[going], log_scale)
        while True:
            step = np.maximum(ahead, _SMALLEST_STEP)
            # A slice needs no copies, and at first all columns go on.
            some: Any = slice(None) if len(going) == len(norms) else going
            correction, n_iter, converged = matrix.correction(
                residual[:, some], alpha=self.alpha, tol=step[some],
                max_iter=self.max_iter - spent, watch=_watched(told, settling),
            )  # fmt: skip
            told.after(n_iter, float(step.max()))
            spent += n_iter
            x[:, some] += correction
            del correction
            if settling is not None and settling.done:
                self.n_iter += spent
                with np.errstate(divide="ignore"):
                    log_x = np.log(np.maximum(x, 0.0)) + of_rows(scale, parts)
                if idle is not None:
                    log_x[idle] = -np.inf
                return log_x, np.ones(x.shape, dtype=bool), True
            settling = None  # it is a matter of bounds now
            residual[:, some] = matrix.residual(rhs[:, some], x[:, some], self.alpha)
            if (step > ahead).any() and converged:
                ahead = np.minimum(0.5, ahead / step)
                continue
            log_x = np.maximum(x, 0.0)
            with np.errstate(divide="ignore"):
                np.log(log_x, out=log_x)
            log_x += of_rows(scale, parts)
            log_error = matrix.log_error(residual, parts, self.alpha)
            log_error += of_rows(scale, parts)
            if idle is not None:
                log_x[idle], log_error[idle] = -np.inf, -np.inf
            if n_cut:
                log_error = np.logaddexp(log_error, self._cut_flow(log_x, n_cut))
            accurate, excess = self.accurate(rows, cols, log_x, log_error)
            # One step to where wanted rows should be accurate, and no further than a level goes.
            ahead = np.exp(-np.maximum(excess, -np.log(_FURTHER)))
            before, relative = relative, np.linalg.norm(residual, axis=0) / norms
            # Columns that are not done, and that rounding does not keep from getting better.
            going = np.flatnonzero(~accurate.all(axis=0) & (relative < 0.5 * before))
            enough = accurate.all(axis=1).mean() >= _ENOUGH or self._all_wanted(rows, accurate)
            deep = accurate.any() and (relative <= self.tol * _LEVEL_RANGE).all()
            ahead = np.maximum(
                ahead, np.minimum(_FURTHER, self.tol * _LEVEL_RANGE / np.maximum(relative, _TINY))
            )
            logger.debug(
                "%d rows, %d columns, %d iterations: residual %.1e, %.1f %% of rows accurate",
                len(rows), len(cols), spent, relative.max(), 100 * accurate.all(axis=1).mean(),
            )  # fmt: skip
            if not converged or not going.size or enough or deep:
                break
        self.n_iter += spent
        return log_x, accurate, converged

    def _is_wanted(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        return np.ones(len(rows), dtype=bool) if self.wanted is None else self.wanted[rows]

    def _all_wanted(self, rows: NDArray[np.intp], accurate: NDArray[np.bool_]) -> bool:
        """Tell whether all rows that somebody asks for are accurate."""
        return self.wanted is not None and bool(accurate[self.wanted[rows]].all())

    def _guess(
        self,
        matrix: SparseRestriction,
        rows: NDArray[np.intp],
        parts: NDArray[np.intp],
        cols: NDArray[np.intp],
        rhs: NDArray[np.float64],
        scale: NDArray[np.float64],
        norms: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return where to begin on the scale of this level, its residuals, and their sizes.

        A guess x is multiplied by what brings Ax nearest to b, column by column: a class that
        got one more label has a smaller share of each.
        """
        if self.start is None or len(rows) < len(self.log_x):
            return np.zeros_like(rhs), rhs.copy(), np.ones(len(norms))
        x = self.start[np.ix_(rows, cols)] - of_rows(scale, parts)
        x = np.exp(np.minimum(x, _LOG_LARGE, out=x), out=x)
        product = rhs - matrix.residual(rhs, x, self.alpha)
        squares = np.square(product).sum(axis=0)
        x *= np.where(squares > 0, (rhs * product).sum(axis=0) / np.maximum(squares, _TINY), 0.0)
        residual = matrix.residual(rhs, x, self.alpha)
        return x, residual, np.maximum(np.linalg.norm(residual, axis=0) / norms, _TINY)

    def _cut_flow(self, log_x: NDArray[np.float64], n_cut: int) -> NDArray[np.float64]:
        """Return a bound on what flows over the edges that were cut, for each column."""
        return np.asarray(LOG_CUT + log_x.max(axis=0) + np.log(n_cut) - np.log1p(-self.alpha))

    def _log_rhs(self, rows: NDArray[np.intp], cols: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return log (b_U + α S_UR x_R)."""
        n = len(self.log_x)
        out = self.columns.log_sources(rows, cols, n)
        if len(rows) < n:
            final = np.ones(n, dtype=bool)
            final[rows] = False
            boundary = self.graph.boundary(rows, final, self.log_x[:, cols])
            np.logaddexp(out, np.log(self.alpha) + boundary, out=out)
        return out

    def accurate(
        self,
        rows: NDArray[np.intp],
        cols: NDArray[np.intp],
        log_x: NDArray[np.float64],
        log_error: NDArray[np.float64],
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Tell which entries are within `tol` of the largest of their row, in every view.

        Returns that, and by how much errors of wanted rows are too large, as logarithms; 0 if all
        rows are wanted.
        """
        accurate = np.ones(log_x.shape, dtype=bool)
        excess = np.zeros(len(cols))
        log_tol, reach = np.log(self.tol), self.columns.reach
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            value, error, out = log_x[part], log_error[part], accurate[part]
            # Only what stands clear of its own error may serve as "largest".
            clear = np.where(error < value - np.log(2.0), value, -np.inf)
            for view, reference in zip(self.columns.views[:, cols], self.reference):
                seen = np.flatnonzero(view > -np.inf)
                if seen.size:
                    largest = (clear[:, seen] + view[seen]).max(axis=1)
                    least = np.maximum(largest, reference[rows[part]]) - reach
                    allowed = np.maximum(clear[:, seen] + view[seen], least[:, None])
                    most = log_tol + allowed - view[seen]
                    out[:, seen] &= error[:, seen] <= most
                    if self.wanted is not None:
                        asked = self.wanted[rows[part]][:, None] & (error[:, seen] > most)
                        over = np.subtract(
                            error[:, seen], most, where=asked, out=np.zeros_like(most)
                        )
                        excess[seen] = np.maximum(excess[seen], over.max(axis=0, initial=0.0))
        return accurate, excess

    def _accurate_parts(
        self,
        rows: NDArray[np.intp],
        parts: NDArray[np.intp],
        cols: NDArray[np.intp],
        log_x: NDArray[np.float64],
        log_error: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Do the same where errors are known for each part and column, and only take away.

        What is too small serves as "largest" of its row as well as what is right.
        """
        accurate = np.ones(log_x.shape, dtype=bool)
        for view, reference in zip(self.columns.views[:, cols], self.reference):
            seen = np.flatnonzero(view > -np.inf)
            if seen.size:
                largest = (log_x[:, seen] + view[seen]).max(axis=1)
                least = np.maximum(largest, reference[rows]) - self.columns.reach
                for column in seen:
                    allowed = np.log(self.tol) + np.maximum(log_x[:, column] + view[column], least)
                    accurate[:, column] &= allowed >= (log_error[:, column] + view[column])[parts]
        return accurate

    def _keep(
        self, rows: NDArray[np.intp], cols: NDArray[np.intp], log_x: NDArray[np.float64]
    ) -> None:
        self.log_x[np.ix_(rows, cols)] = log_x
        for view, reference in zip(self.columns.views[:, cols], self.reference):
            largest = (log_x + view).max(axis=1)
            reference[rows] = np.maximum(reference[rows], largest)


class _Settling:
    """Looks at the rows wanted while iterations go on: whether they have settled.

    They have if they changed by no more than `tol` while the residual fell to a third. As errors
    fall like residuals, about half of that change is still to come. That is an estimate: bounds on
    errors ask for residuals a hundred times smaller, and are for answers; this is for rows whose
    labels are hidden, which only say how sharp a vote should be.
    """

    def __init__(
        self,
        levels: _Levels,
        rows: NDArray[np.intp],
        parts: NDArray[np.intp],
        cols: NDArray[np.intp],
        scale: NDArray[np.float64],
    ) -> None:
        assert levels.wanted is not None
        self._levels, self._cols = levels, cols
        self._at = np.flatnonzero(levels.wanted[rows])
        self._rows = rows[self._at]
        self._scale = scale[parts[self._at]]
        self._before, self._next = np.zeros((len(self._at), len(cols))), FIRST_LOOK
        self.done = not len(self._at)

    def __call__(self, share: float, look: Callable[[NDArray[np.intp]], Any]) -> bool:
        """Tell whether they have, at a share of the first residual."""
        if share > self._next:
            return False
        now = look(self._at).astype(np.float64)
        with np.errstate(divide="ignore"):
            value = np.log(np.maximum(now, 0.0)) + self._scale
            change = np.log(np.abs(now - self._before)) + self._scale
        accurate, _ = self._levels.accurate(self._rows, self._cols, value, change)
        self._before, self._next = now, share / BETWEEN_LOOKS
        self.done = bool(accurate.all())
        return self.done


def _watched(told: _Told, settling: _Settling | None) -> Watch:
    """Return what is done after every iteration."""

    def watch(n_iter: int, share: float, look: Callable[[NDArray[np.intp]], Any]) -> bool:
        told.within(n_iter, share)
        return settling is not None and settling(share, look)

    return watch


class _Told:
    """Lines about a solve that takes long: iterations and residual over all its corrections."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._size = n_rows, n_columns
        self._n_iter, self._residual = 0, 1.0  # before the correction that is under way

    def within(self, n_iter: int, share: float) -> None:
        """Tell how far a correction has come, and what share of the residual it has left."""
        pulse(
            "walking over %d rows from %d sources: %d iterations, residual %.1e",
            *self._size, self._n_iter + n_iter, self._residual * share,
        )  # fmt: skip

    def after(self, n_iter: int, share: float) -> None:
        """Count a correction that is made."""
        self._n_iter += n_iter
        self._residual *= share


def _column_groups(accurate: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Split off columns that would keep most rows of the others from being final."""
    n_columns = accurate.shape[1]
    everyone = np.arange(n_columns)
    per_column = accurate.sum(axis=0)
    good = per_column >= 0.5 * per_column.max()
    together = accurate.all(axis=1).sum()
    if good.all() and together:
        return [everyone]
    if good.all():  # as many rows each, but no row in common
        good = (accurate == accurate[:, [np.argmax(per_column)]]).all(axis=0)
    elif accurate[:, good].all(axis=1).sum() < 2 * together:
        return [everyone]
    return [everyone[good], everyone[~good]]


def _renumbered_runs(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of the run each number stands in."""
    changed = numbers[1:] != numbers[:-1]
    return np.concatenate([[0], np.cumsum(changed)]).astype(np.intp)
