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

All this is written once, over kernels. A processor and a graphics card differ in the graph they
bring, and in what it says of a level (`LevelGraph`, `Iteration`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.graph.together import Alone
from manifoldknn.walk.iteration import LOG_CUT, Parts

logger = logging.getLogger(__name__)

_FIRST_GOAL = 1e-3  # relative residual at which a level is looked at first, as a share of tol;
_GOAL_FOR_FEW = 5e-3  # and where only some rows are wanted;
_GOAL_FOR_EACH = 2e-2  # of that, where entries must be accurate by themselves
_EARLY_GOAL = 1e-1  # the same for a look with plain bounds,
_PLAIN_REACH = 1e-5  # and how small it may become where these will then do
_FURTHER = 1e-1  # how much smaller it becomes before each further look
_LEVEL_RANGE = 1e-4  # a level need not go below this share of tol
_TINY = float(np.finfo(float).tiny)
_LOG_2 = float(np.log(2.0))
_LOG_LARGE = 60.0  # of a guess, on the scale of the right-hand side
_SETTLES = 1e-5  # the finest tolerance at which that says something, in single precision
_SETTLES_UP_TO = 1 - 2.5e-4  # α: longer walks change too slowly for that to be seen
_FIRST_LOOK, _BETWEEN_LOOKS = 0.05, 3.0  # residual at which rows are looked at, and how it falls
_ENOUGH = 0.9  # share of final rows at which the others are better solved on their own


class Iteration(Protocol):
    """A_UU x = rhs on its way to a solution, from `n_iter` products with the matrix."""

    x: Any  # so far
    residual: Any  # rhs - A_UU x
    n_iter: int
    plain_looks: int  # how often bounds that cost nothing come before sharp ones

    def advance(
        self, ahead: Any, going: Any, max_iter: int, settled: Callable[..., bool] | None = None
    ) -> bool:
        """Make residuals of the columns of a mask smaller by factors; tell if all got there.

        Ends early once `settled` says so: of the largest share of its residual that a column has
        left, and of what returns rows of x in these columns.
        """

    def log_error(self, parts: Parts, *, sharp: bool) -> Any:
        """Return the logarithm of a bound on the error of every entry."""


class LevelGraph(Protocol):
    """S of some rows, on the machine of its kernels.

    `restrict` returns A_UU for the rows of some parts. That `is_exact` and has a `log_solution`,
    with errors of no more than exp(`log_error`); or it has a `residual`, and an `iteration`.
    """

    n_samples: int
    factorize: bool

    @property
    def together(self) -> Alone:
        """Who shares the rows."""

    @property
    def kernels(self) -> Kernels:
        """Those of its arrays."""

    def parts(self, rows: Any) -> Parts:
        """Return connected parts of some ascending rows."""

    def restrict(self, rows: Any, alpha: float) -> Any:
        """Return A_UU for U = rows."""

    def boundary(self, rows: Any, final: Any, log_x: Any) -> Any:
        """Return log (S_UR x_R) for U = rows and R the final rows, a mask."""


@dataclass(frozen=True)
class Columns:
    """Right-hand sides b and what their solutions are used for.

    `views`, of shape (n_views, n_columns), are logarithms of column factors in which entries of a
    row are compared; -inf leaves a column out. An entry must be accurate in every view. Entries
    down to ``exp(-reach)`` of the largest of their row must be so by themselves, smaller ones
    beside that; with a reach of 0, all beside the largest.
    """

    rows: Any  # places where b is not 0
    cols: Any
    log_values: Any  # log b there
    views: Any
    reach: float = 0.0
    settle: bool = False  # whether it is enough that rows wanted stay as they are: see `_Settling`

    @property
    def n_columns(self) -> int:
        """Number of right-hand sides."""
        return int(self.views.shape[1])

    def block(self, some: slice) -> Columns:
        """Return consecutive columns."""
        here = (self.cols >= some.start) & (self.cols < some.stop)
        return replace(
            self, rows=self.rows[here], cols=self.cols[here] - some.start,
            log_values=self.log_values[here], views=self.views[:, some],
        )  # fmt: skip

    def log_sources(self, rows: Any, cols: Any, n_samples: int, kernels: Kernels = NUMPY) -> Any:
        """Return log b in some rows and columns."""
        i = kernels.inverse(rows, n_samples)[self.rows]
        j = kernels.inverse(cols, self.n_columns)[self.cols]
        here = (i >= 0) & (j >= 0)
        out = kernels.full((len(rows), len(cols)), -np.inf)
        out[i[here], j[here]] = self.log_values[here]
        return out


@dataclass(frozen=True)
class Solution:
    """Nonnegative columns, as logarithms."""

    log_values: Any  # of shape (n_samples, n_columns); -inf in whole rows that no source reaches
    n_iter: int  # products with the graph that were needed; 1 for each factorised solve
    converged: bool  # whether every row reached the accuracy asked for
    reach: float  # how far below the largest of their row entries are accurate by themselves


@dataclass(frozen=True)
class _Job:
    """Rows still to be solved for some columns."""

    rows: Any
    cols: Any


def solve_by_levels(
    graph: LevelGraph, columns: Columns, *, alpha: float, tol: float, max_iter: int,
    reference: Any = None, wanted: Any = None, start: Any = None,
) -> Solution:  # fmt: skip
    """Solve (I - αS) x = b so that every row of x is accurate, and return log x.

    Errors are at most `tol` of the largest entry of a row, after at most `max_iter` iterations in
    each level. `reference`, of shape (n_views, n_samples), holds the logarithm of an entry that a
    row is known to have in some other column, as each view sees it. `wanted` is a mask of the rows
    that have to be accurate, if not all. `start` are logarithms of a guess, such as the solution
    for a graph that was much the same. Sparse graphs cost O(iterations · edges · columns), dense
    ones O(n³ / 3).
    """
    solver = _Levels(graph, columns, alpha, tol, max_iter, reference, wanted, start)
    arange = graph.kernels.arange
    own = graph.together.own(graph.n_samples)
    jobs = [_Job(arange(own), arange(columns.n_columns))]
    while jobs:
        jobs.extend(solver.level(jobs.pop()))
    reach = np.inf if solver.exact and not solver.lost else columns.reach
    return Solution(solver.log_x, solver.n_iter, solver.converged, reach)


class _Levels:
    """The state of a solve: what is known so far, and one step further."""

    def __init__(
        self, graph: LevelGraph, columns: Columns, alpha: float, tol: float, max_iter: int,
        reference: Any, wanted: Any, start: Any,
    ) -> None:  # fmt: skip
        self.graph, self.columns, self.wanted, self.start = graph, columns, wanted, start
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.kernels, self.xp = graph.kernels, graph.kernels.xp
        self.together, n = graph.together, graph.n_samples
        self.reference = self.kernels.full((len(columns.views), n), -np.inf)
        if reference is not None:
            self.reference[:] = reference
        self.log_x = self.kernels.full((n, columns.n_columns), -np.inf)
        self.n_iter, self.converged, self.exact = 0, True, False
        self.lost = False  # whether entries that nobody asked for underflowed

    def level(self, job: _Job) -> list[_Job]:
        """Solve one job as far as it is accurate; return what is left of it."""
        xp, parts = self.xp, self.graph.parts(job.rows)
        rhs = self._log_rhs(parts.rows, job.cols)
        shift = parts.runs.max(rhs)
        sourced = xp.isfinite(shift).any(axis=1)
        if not sourced.any():
            return []  # islands without a source
        if self.graph.factorize and self._are_all(parts.rows):
            sourced[:] = True  # the one factorisation is of all rows
        waiting = job.rows[:0]
        if not sourced.all():
            here = sourced[parts.number]
            # Only over edges that were passed over does anybody come to the others.
            waiting = parts.rows[~here] if parts.n_cut else waiting
            rhs, shift, parts = rhs[here], shift[sourced], parts.chosen(sourced)
        scale = xp.where(xp.isneginf(shift), 0.0, shift)
        rhs -= parts.spread(scale)
        xp.exp(rhs, out=rhs)
        matrix = self.graph.restrict(parts.rows, self.alpha)
        solve = self._exact if matrix.is_exact else self._refined
        log_x, accurate, converged = solve(matrix, parts, job.cols, rhs, scale)
        del rhs
        if self._all_wanted(parts.rows, accurate) and not self._any(self._asked(waiting)):
            accurate[:] = True  # nobody asks for the others
            waiting = waiting[:0]
        elif not converged or not self._any(accurate):
            self.converged = False  # nothing better can be had: take it and say so
            accurate[:] = True
        left = []
        for group in _column_groups(accurate, self.kernels, self.together):
            final = accurate[:, group].all(axis=1)
            cols = job.cols[group]
            self._keep(parts.rows, self.kernels.places(final), cols, log_x[:, group])
            rest = xp.concatenate([parts.rows[~final], waiting])
            if self.together.any(len(rest) > 0):
                left.append(_Job(self.kernels.distinct(rest), cols))
        return left[::-1]  # the first group, the larger, is popped first and informs the other

    def _exact(
        self, matrix: Any, parts: Parts, cols: Any, rhs: Any, scale: Any
    ) -> tuple[Any, Any, bool]:
        """Solve A_UU x = rhs·exp(scale) by a factorisation; returns as `_refined` does."""
        log_x = matrix.log_solution(rhs)
        log_x += parts.spread(scale)
        log_error = scale + matrix.log_error
        if parts.n_cut:
            log_error = self.xp.logaddexp(log_error, self._cut_flow(log_x, parts.n_cut))
        self.n_iter, self.exact = self.n_iter + 1, True
        accurate, _ = self.accurate(parts.rows, cols, log_x, log_error, number=parts.number)
        least = log_error - float(np.log(self.tol))
        silent = parts.runs.max(rhs) == 0
        nobody = silent & silent.all(axis=0) if parts.n_cut else silent
        least[nobody] = -np.inf  # nobody comes there, which is exact
        self.lost |= bool((accurate & (log_x < parts.spread(least))).any())
        if self.graph.factorize:  # parts are connected: what is lost there is so small
            log_error[silent] = -np.inf
            self.xp.maximum(log_x, parts.spread(log_error), out=log_x)
        return log_x, accurate, True

    def _refined(
        self, matrix: Any, parts: Parts, cols: Any, rhs: Any, scale: Any
    ) -> tuple[Any, Any, bool]:
        """Solve A_UU x = rhs·exp(scale) until most rows are accurate.

        Returns log x, which entries are accurate, and whether iterations sufficed.
        """
        xp, rows = self.xp, parts.rows
        norms = self.kernels.at_least(self._norms(rhs), _TINY)
        solver, begun = self._begun(matrix, parts, cols, rhs, scale, norms)
        sourced = parts.runs.max(rhs) > 0
        # A preconditioner may carry rounding into parts that a column does not reach.
        idle = None if sourced.all() else ~sourced[parts.number]
        going = sourced.any(axis=0)
        settling = None
        rough = self.columns.settle and self.tol >= _SETTLES and self.alpha <= _SETTLES_UP_TO
        if rough and self.wanted is not None and not parts.n_cut:
            log_scale = xp.where(sourced, scale, -np.inf)[:, going]
            settling = _Settling(self, parts, cols[going], log_scale, solver.x[:, going], begun)
        first, looks = self._first_goal(), 0
        early = self.tol * _EARLY_GOAL if solver.plain_looks and settling is None else first
        ahead = self.kernels.at_most(early / begun, 0.5)
        relative = xp.full_like(norms, np.inf)
        while True:
            converged = solver.advance(ahead, going, self.max_iter - solver.n_iter, settling)
            log_x = self.kernels.at_least(solver.x, 0.0)
            self.kernels.log(log_x, out=log_x)
            log_x += parts.spread(scale)
            if settling is not None and settling.done:
                if idle is not None:
                    log_x[idle] = -np.inf
                self.n_iter += solver.n_iter
                return log_x, xp.ones_like(log_x, dtype=bool), True
            settling = None  # it is a matter of bounds now
            sharp, looks = looks >= solver.plain_looks, looks + 1
            log_error = solver.log_error(parts, sharp=sharp)
            log_error += parts.spread(scale)
            if idle is not None:
                log_x[idle], log_error[idle] = -np.inf, -np.inf
            if parts.n_cut:
                log_error = xp.logaddexp(log_error, self._cut_flow(log_x, parts.n_cut))
            measured = self.wanted is not None or not sharp
            accurate, excess = self.accurate(rows, cols, log_x, log_error, measured=measured)
            del log_error
            before, relative = relative, self._norms(solver.residual) / norms
            final = accurate.all(axis=1)
            share = float(self.together.sum(final.sum())) / int(self.together.sum(len(final)))
            logger.debug(
                "%d rows, %d columns, %d iterations: residual %.1e, %.1f %% of rows accurate",
                len(rows), len(cols), solver.n_iter, float(relative.max()), 100 * share,
            )  # fmt: skip
            if not sharp and converged:
                if not (excess > 0).any():
                    break
                ahead, going, over = self._plainly(excess, relative, first)
                looks = solver.plain_looks if over else looks
                relative[:] = np.inf
                continue
            # Columns that are not done, and that rounding does not keep from getting better.
            going = ~self._every(accurate) & (relative < 0.5 * before)
            deep = self._any(accurate) and (relative <= self.tol * _LEVEL_RANGE).all()
            enough = share >= _ENOUGH or self._all_wanted(rows, accurate)
            if not converged or not going.any() or enough or deep:
                break
            # One step to where wanted rows should be accurate, and no further than a level goes.
            ahead = xp.exp(-self.kernels.at_least(excess, -np.log(_FURTHER)))
            deepest = self.tol * _LEVEL_RANGE / self.kernels.at_least(relative, _TINY)
            ahead = xp.maximum(ahead, self.kernels.at_most(deepest, _FURTHER))
        self.n_iter += solver.n_iter
        return log_x, accurate, bool(converged)

    def _first_goal(self) -> float:
        """Return the relative residual at which sharp bounds are looked at first."""
        if self.wanted is None:
            return self.tol * _FIRST_GOAL
        return self.tol * _GOAL_FOR_FEW * (_GOAL_FOR_EACH if np.isinf(self.columns.reach) else 1.0)

    def _plainly(self, excess: Any, relative: Any, first: float) -> tuple[Any, Any, bool]:
        """Return how far which columns go before the next look, and whether that is a sharp one.

        It is not where plain bounds will do soon, or residuals are not yet worth a sharp look.
        """
        ahead = 0.9 * self.xp.exp(-excess)
        if (relative * ahead >= 0.9 * self.tol * _PLAIN_REACH).all():
            return ahead, excess > 0, False
        if (relative > first).any():
            return first / self.kernels.at_least(relative, _TINY), excess >= 0, False
        return ahead, excess < 0, True

    def _all_wanted(self, rows: Any, accurate: Any) -> bool:
        """Tell whether all rows that somebody asks for are accurate."""
        if self.wanted is None:
            return False
        return not self._any(self.wanted[rows] & ~accurate.all(axis=1))

    def _asked(self, rows: Any) -> Any:
        return rows[:0] if self.wanted is None else self.wanted[rows]

    def _are_all(self, rows: Any) -> bool:
        """Tell whether rows are all that there are, on every machine."""
        return self.together.all(len(rows) == self.together.own(len(self.log_x)))

    def _any(self, truth: Any) -> bool:
        """Tell whether anything is true of rows, on any machine."""
        return self.together.any(truth.any())

    def _every(self, truth: Any) -> Any:
        """Tell in which columns something is true of all rows, on every machine."""
        return ~self.together.max(~truth.all(axis=0))

    def _norms(self, block: Any) -> Any:
        """Return the norms of columns over the rows of all machines."""
        norms = self.xp.linalg.norm(block, axis=0)
        if self.together.size == 1:
            return norms
        return self.xp.sqrt(self.together.sum(self.xp.square(norms)))

    def _begun(
        self, matrix: Any, parts: Parts, cols: Any, rhs: Any, scale: Any, norms: Any
    ) -> tuple[Iteration, Any]:
        """Return an iteration on the scale of this level, and the sizes of its residuals.

        A guess x is multiplied by what brings Ax nearest to b, column by column: a class that
        got one more label has a smaller share of each.
        """
        xp, at_least = self.xp, self.kernels.at_least
        if self.start is None or not self._are_all(parts.rows):
            return matrix.iteration(rhs, None, None), xp.ones_like(norms)
        x = self.start[parts.rows[:, None], cols]
        x -= parts.spread(scale)
        self.kernels.at_most(x, _LOG_LARGE, out=x)
        xp.exp(x, out=x)
        product = rhs - matrix.residual(rhs, x)
        squares = self.together.sum(xp.square(product).sum(axis=0))
        near = self.together.sum((rhs * product).sum(axis=0))
        x *= xp.where(squares > 0, near / at_least(squares, _TINY), 0.0)
        residual = matrix.residual(rhs, x)
        begun = at_least(self._norms(residual) / norms, _TINY)
        return matrix.iteration(rhs, x, residual), begun

    def _cut_flow(self, log_x: Any, n_cut: int) -> Any:
        """Return a bound on what flows over the edges that were cut, for each column."""
        largest = self.together.max(_largest(log_x, self.xp))
        return largest + float(LOG_CUT + np.log(n_cut) - np.log1p(-self.alpha))

    def _log_rhs(self, rows: Any, cols: Any) -> Any:
        """Return log (b_U + α S_UR x_R)."""
        n, n_columns = self.log_x.shape
        out = self.columns.log_sources(rows, cols, n, self.kernels)
        if not self._are_all(rows):
            log_x = self.log_x if len(cols) == n_columns else self.log_x[:, cols]
            left = self.together.halo(self.kernels.mask(rows, n))
            boundary = self.graph.boundary(rows, ~left, self.together.halo(log_x))
            boundary += float(np.log(self.alpha))
            self.xp.logaddexp(out, boundary, out=out)
        return out

    def accurate(
        self, rows: Any, cols: Any, log_x: Any, log_error: Any, *, number: Any = None,
        measured: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Tell which entries are within `tol` of the largest of their row, in every view.

        Returns that, and by how much errors of wanted rows are too large, as logarithms, if that
        is to be `measured`. With the `number` of their parts, rows have errors by part, which
        only take away: what is too small serves as "largest" as well as what is right.
        """
        xp, reach, log_tol = self.xp, self.columns.reach, float(np.log(self.tol))
        accurate, excess = xp.ones_like(log_x, dtype=bool), self.kernels.full(len(cols), 0.0)
        views = list(self._views(cols))
        for start in range(0, len(rows), self.kernels.rows_at_once):
            part = slice(start, start + self.kernels.rows_at_once)
            value, out = log_x[part], accurate[part]
            if number is None:
                error = log_error[part]
                # Only what stands clear of its own error may serve as "largest".
                value = xp.where(error < value - _LOG_2, value, -np.inf)
            else:
                error = log_error[number[part]]
            for view, seen, reference in views:
                own = value[:, seen] + view
                largest = xp.maximum(xp.amax(own, axis=1), reference[rows[part]])
                most = log_tol + xp.maximum(own, (largest - reach)[:, None]) - view
                over = error[:, seen] > most
                out[:, seen] &= ~over
                if measured:
                    if self.wanted is not None:
                        over &= self.wanted[rows[part]][:, None]
                    by = xp.where(over, error[:, seen], 0.0) - xp.where(over, most, 0.0)
                    excess[seen] = xp.maximum(excess[seen], xp.amax(by, axis=0))
        return accurate, self.together.max(excess) if measured else excess

    def _views(self, cols: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Yield, for every view that compares some of the columns: factors, which, reference."""
        for view, reference in zip(self.columns.views[:, cols], self.reference):
            seen = view > -np.inf
            if seen.any():
                places = slice(None) if seen.all() else self.kernels.places(seen)
                yield view[places], places, reference

    def _keep(self, rows: Any, final: Any, cols: Any, log_x: Any) -> None:
        rows, log_x = rows[final], log_x[final]
        self.log_x[rows[:, None], cols] = log_x
        for view, reference in zip(self.columns.views[:, cols], self.reference):
            largest = self.xp.amax(log_x + view, axis=1)
            reference[rows] = self.xp.maximum(reference[rows], largest)


class _Settling:
    """Looks at the rows wanted while iterations go on: whether they have settled.

    They have if they changed by no more than `tol` while the residual fell to a third. As errors
    fall like residuals, about half of that change is still to come. That is an estimate: bounds on
    errors ask for residuals a hundred times smaller, and are for densities of answers. This is
    for rows whose labels are hidden, which only say how sharp a vote should be, and for the sums
    that labels are divided by, which get a quarter of the tolerance.
    """

    def __init__(
        self, levels: _Levels, parts: Parts, cols: Any, scale: Any, x: Any, begun: Any
    ) -> None:
        self._levels, self._cols, self._begun = levels, cols, float(begun.max())
        self._at = levels.kernels.places(levels.wanted[parts.rows])
        self._rows = parts.rows[self._at]
        self._scale = scale[parts.number[self._at]]
        # A guess may be near already, and has to get better all the same.
        self._before, self._next = x[self._at], min(_FIRST_LOOK, self._begun / _BETWEEN_LOOKS)
        self.done = not levels.together.any(len(self._at) > 0)

    def __call__(self, share: float, look: Callable[[Any], Any]) -> bool:
        """Tell whether they have, at a share of the first residual."""
        if share * self._begun > self._next:
            return False
        log, now = self._levels.kernels.log, look(self._at)
        value = log(self._levels.kernels.at_least(now, 0.0)) + self._scale
        change = log(abs(now - self._before)) + self._scale
        accurate, _ = self._levels.accurate(self._rows, self._cols, value, change)
        self._before, self._next = now, share * self._begun / _BETWEEN_LOOKS
        self.done = self._levels.together.all(bool(accurate.all()))
        return self.done


def _largest(block: Any, xp: Any) -> Any:
    """Return the largest of every column; -inf of nothing."""
    return xp.amax(block, axis=0) if len(block) else xp.full(block.shape[1:], -np.inf)


def _column_groups(accurate: Any, kernels: Kernels, together: Alone) -> list[Any]:
    """Split off columns that would keep most rows of the others from being final."""
    everyone = kernels.arange(accurate.shape[1])
    per_column = together.sum(accurate.sum(axis=0))
    good = per_column >= 0.5 * per_column.max()
    in_common = int(together.sum(accurate.all(axis=1).sum()))
    if good.all() and in_common:
        return [everyone]
    if good.all():  # as many rows each, but no row in common
        same = (accurate == accurate[:, int(per_column.argmax())][:, None]).all(axis=0)
        good = ~together.max(~same)
    elif int(together.sum(accurate[:, good].all(axis=1).sum())) < 2 * in_common:
        return [everyone]
    return [everyone[good], everyone[~good]]
