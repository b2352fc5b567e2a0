"""Columns of A⁻¹ = (I - αS)⁻¹ on a device, accurate in every row.

The levels of `manifoldknn.walk.levels`: solve, bound the error of every entry, take the rows
that are accurate as final, and solve the others again with those as their boundary, each
connected part and column on a scale of its own. Values travel as logarithms.

Conjugate gradients run in double precision, which a graphics processor does not mind:
the time goes into moving numbers.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import numpy as np
import torch

from manifoldknn.device.walk.bounds import log_error
from manifoldknn.device.walk.cg import ConjugateGradients
from manifoldknn.device.walk.normalized import NormalizedTorchGraph, Parts
from manifoldknn.device.walk.products import WalkOperator
from manifoldknn.walk.levels import BETWEEN_LOOKS, FIRST_LOOK
from manifoldknn.walk.normalized import LOG_CUT

logger = logging.getLogger(__name__)

_EARLY_GOAL = 1e-1  # relative residual at which a level is looked at first, as a share of tol
_FIRST_GOAL = 1e-3  # the same for the first sharp look,
_GOAL_FOR_FEW = 1e-2  # where only some rows are wanted,
_REACH = 1e-5  # and how small it may become before that if plain bounds will then do
_PLAIN_LOOKS = 4
_FURTHER = 1e-1  # how much smaller it becomes before each further look
_LEVEL_RANGE = 1e-4  # a level need not go below this share of tol
_ENOUGH = 0.9  # share of final rows at which the others are better solved on their own
_DRIFT = 2.0  # how far the true residual may be from the iterated one
_LOG_LARGE = 60.0  # of a guess, on the scale of the right-hand side


@dataclass(frozen=True)
class TorchColumns:
    """Right-hand sides b and what their solutions are for, as `manifoldknn.walk.levels.Columns`."""

    rows: torch.Tensor  # places where b is not 0
    cols: torch.Tensor
    log_values: torch.Tensor  # of b there
    # (n_views, n_columns): logarithms of column factors in which entries of a row are compared;
    # -inf leaves a column out.
    views: torch.Tensor
    # Entries down to exp(-reach) of the largest of their row must be accurate by themselves.
    reach: float = 0.0
    settle: bool = False  # whether it is enough that the rows wanted do not change any more

    @property
    def n_columns(self) -> int:
        """Number of right-hand sides."""
        return self.views.shape[1]

    def block(self, some: slice) -> TorchColumns:
        """Return consecutive columns."""
        here = (self.cols >= some.start) & (self.cols < some.stop)
        at = self.rows[here], self.cols[here] - some.start
        views = self.views[:, some]
        return TorchColumns(*at, self.log_values[here], views, self.reach, self.settle)


@dataclass(frozen=True)
class TorchSolution:
    """Nonnegative columns, as logarithms."""

    log_values: torch.Tensor  # -inf in whole rows that no source reaches
    n_iter: int  # products with the graph
    converged: bool  # whether every row reached the accuracy asked for


@dataclass(frozen=True)
class _Job:
    """Rows still to be solved for some columns."""

    rows: torch.Tensor
    cols: torch.Tensor


def solve_on_device(
    graph: NormalizedTorchGraph,
    columns: TorchColumns,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    reference: torch.Tensor | None = None,
    wanted: torch.Tensor | None = None,
    start: torch.Tensor | None = None,
) -> TorchSolution:
    """Solve (I - αS) x = b so that every row of x is accurate.

    An entry may be wrong by `tol` times the largest of its row; `max_iter` limits the iterations of
    a level. `reference`, of shape (n_views, n_samples), is the logarithm of an entry that the row
    is known to have in some other column, as each view sees it. `wanted` masks the rows that have
    to be accurate, if not all; `start` holds logarithms of a guess. Cost O(iterations · edges ·
    columns); memory is about 120 bytes per row and column.
    """
    solver = _Levels(graph, columns, alpha, tol, max_iter, reference, wanted, start)
    everyone = torch.arange(graph.n_samples, device=graph.device)
    jobs = [_Job(everyone, torch.arange(columns.n_columns, device=graph.device))]
    while jobs:
        jobs.extend(solver.level(jobs.pop()))
    return TorchSolution(solver.log_x, solver.n_iter, solver.converged)


class _Levels:
    """The state of a solve: what is known so far, and one step further."""

    def __init__(
        self,
        graph: NormalizedTorchGraph,
        columns: TorchColumns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: torch.Tensor | None,
        wanted: torch.Tensor | None,
        start: torch.Tensor | None,
    ) -> None:
        self.graph, self.columns, self.wanted, self.start = graph, columns, wanted, start
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.views, self.reach = columns.views, columns.reach
        self.shape = graph.n_samples, columns.n_columns
        nothing = self._nothing(len(self.views), graph.n_samples)
        self.reference = nothing if reference is None else reference.clone()
        self.log_x = self._nothing(*self.shape)
        self.n_iter = 0
        self.converged = True

    def level(self, job: _Job) -> list[_Job]:
        """Solve one job as far as it is accurate; return what is left of it."""
        parts = self.graph.parts(job.rows)
        rhs = self._log_rhs(parts.rows, job.cols)
        shift = parts.runs.max(rhs)
        sourced = torch.isfinite(shift).any(1)
        if not bool(sourced.any()):
            return []  # islands without a source
        waiting = job.rows[:0]
        if not bool(sourced.all()):
            here = sourced[parts.number]
            waiting, rhs = parts.rows[~here], rhs[here]
            parts, shift = parts.chosen(sourced), shift[sourced]
        scale = torch.where(torch.isneginf(shift), 0.0, shift)
        rhs.sub_(parts.spread(scale)).exp_()
        log_x, accurate, converged = self._refined(parts, job.cols, rhs, scale)
        del rhs
        if self._all_wanted(parts.rows, accurate) and self._all_wanted(waiting, None):
            accurate.fill_(True)  # nobody asks for the others
            waiting = waiting[:0]
        elif not converged or not bool(accurate.any()):
            self.converged = False  # nothing better can be had: take it and say so
            accurate.fill_(True)
        left = []
        for group in _column_groups(accurate):
            final = accurate[:, group].all(1)
            cols = job.cols[group]
            self._keep(parts.rows, final, cols, log_x[:, group])
            rest = torch.cat([parts.rows[~final], waiting])
            if len(rest):
                left.append(_Job(rest.sort()[0], cols))
        return left[::-1]  # the first group, the larger, is popped first and informs the other

    def _refined(
        self, parts: Parts, cols: torch.Tensor, rhs: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, bool]:
        """Solve A_UU x = rhs·exp(scale) until most rows are accurate.

        Returns log x, which entries are accurate, and whether iterations sufficed.
        """
        matrix = self.graph.restrict(parts.rows, self.alpha)
        half = 0.5 * self.graph.log_degrees[parts.rows]
        norms = rhs.norm(dim=0).clamp_(min=np.finfo(float).tiny)
        solver = ConjugateGradients(matrix, rhs, matrix.precondition)
        self._guess(solver, matrix, parts, cols, rhs, scale, norms)
        if self._settled(solver, parts, cols, scale, norms):
            self.n_iter += solver.n_iter
            log_x = solver.x.clamp(min=0.0).log_().add_(parts.spread(scale))
            return log_x, torch.ones_like(log_x, dtype=torch.bool), True
        relative = torch.full_like(norms, torch.inf)
        goals, looks = self.tol * _EARLY_GOAL * norms, 0
        first = self.tol * (_FIRST_GOAL if self.wanted is None else _GOAL_FOR_FEW)
        while True:
            converged = solver.advance(goals, self.max_iter - solver.n_iter)
            sharp, looks = looks >= _PLAIN_LOOKS, looks + 1
            residual = rhs - matrix(solver.x)
            log_x = solver.x.clamp(min=0.0).log_().add_(parts.spread(scale))
            error = log_error(matrix, solver.x, residual, parts, half, self.alpha, sharp=sharp)
            error += parts.spread(scale)
            if parts.n_cut:
                error = torch.logaddexp(error, self._cut_flow(log_x, parts.n_cut))
            accurate, excess = self._accurate(parts.rows, cols, log_x, error)
            del error
            before, relative = relative, residual.norm(dim=0) / norms
            if not sharp and converged:
                ahead = self._ahead(parts.rows, excess)
                if not bool((ahead > 0).any()):
                    break
                wished = relative * torch.exp(-ahead)
                if bool((wished >= self.tol * _REACH).all()):
                    goals = torch.where(ahead > 0, 0.9 * wished * norms, torch.inf)
                elif bool((relative > first).any()):
                    goals = first * norms
                else:
                    looks = _PLAIN_LOOKS
                relative.fill_(torch.inf)
                continue
            share = float(accurate.all(1).double().mean())
            # Columns that are not done, and that rounding does not keep from getting better.
            going = ~accurate.all(0) & (relative < 0.5 * before)
            deep = bool(accurate.any()) and bool((relative <= self.tol * _LEVEL_RANGE).all())
            enough = share >= _ENOUGH or self._all_wanted(parts.rows, accurate)
            if not converged or enough or deep or not bool(going.any()):
                break
            if bool((relative * norms > _DRIFT * solver.residual_norms()).any()):
                solver.restart(residual)
            goals = torch.where(going, _FURTHER * relative * norms, torch.inf)
        logger.debug(
            "%d rows, %d columns, %d iterations, %d looks: residual %.1e, %.1f %% accurate",
            len(half), len(norms), solver.n_iter, looks, float(relative.max()),
            100 * float(accurate.all(1).double().mean()),
        )  # fmt: skip
        self.n_iter += solver.n_iter
        return log_x, accurate, converged

    def _settled(
        self,
        solver: ConjugateGradients,
        parts: Parts,
        cols: torch.Tensor,
        scale: torch.Tensor,
        norms: torch.Tensor,
    ) -> bool:
        """Iterate until the rows wanted have settled, if that is enough: see `walk.levels`."""
        if not self.columns.settle or self.wanted is None or parts.n_cut:
            return False
        at = torch.nonzero(self.wanted[parts.rows]).squeeze(1)
        rows, there = parts.rows[at], parts.spread(scale)
        there = there if len(there) == 1 else there[at]
        before = solver.x[at]
        # A guess may be near already, and has to get better all the same.
        share = min(FIRST_LOOK, self._left(solver, norms) / BETWEEN_LOOKS)
        while share > self.tol * _GOAL_FOR_FEW:
            if not solver.advance(share * norms, self.max_iter - solver.n_iter):
                return False
            now = solver.x[at]
            value, change = (
                v.log().add_(there) for v in (now.clamp(min=0.0), (now - before).abs())
            )
            if bool(self._accurate(rows, cols, value, change)[0].all()):
                return True
            before, share = now, self._left(solver, norms) / BETWEEN_LOOKS
        return False

    def _left(self, solver: ConjugateGradients, norms: torch.Tensor) -> float:
        """Return the largest share of a right-hand side that is left."""
        return float((solver.residual_norms() / norms).max())

    def _ahead(self, rows: torch.Tensor, excess: torch.Tensor) -> torch.Tensor:
        """Return how much smaller, as logarithms, errors must become where somebody asks."""
        if self.wanted is not None:
            excess = torch.where(self.wanted[rows][:, None], excess, 0.0)
        return excess.amax(0)

    def _all_wanted(self, rows: torch.Tensor, accurate: torch.Tensor | None) -> bool:
        """Tell whether all rows that somebody asks for are accurate; of None, none is."""
        if self.wanted is None:
            return not len(rows)
        asked = self.wanted[rows]
        return not bool((asked if accurate is None else asked & ~accurate.all(1)).any())

    def _guess(
        self,
        solver: ConjugateGradients,
        matrix: WalkOperator,
        parts: Parts,
        cols: torch.Tensor,
        rhs: torch.Tensor,
        scale: torch.Tensor,
        norms: torch.Tensor,
    ) -> None:
        """Begin where somebody guesses the solution, if that is better than nothing."""
        if self.start is None or len(parts.rows) < self.shape[0]:
            return
        guess = self.start[parts.rows[:, None], cols] - parts.spread(scale)
        guess.clamp_(max=_LOG_LARGE).exp_()
        residual = rhs - matrix(guess)
        if bool((residual.norm(dim=0) < norms).all()):
            solver.x.copy_(guess)
            solver.restart(residual)

    def _cut_flow(self, log_x: torch.Tensor, n_cut: int) -> torch.Tensor:
        """Return a bound on what flows over the edges that were cut, for each column."""
        return log_x.amax(0) + (LOG_CUT + math.log(n_cut) - math.log1p(-self.alpha))

    def _log_rhs(self, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
        """Return log (b_U + α S_UR x_R)."""
        n, n_columns = self.shape
        row_place, col_place = (
            torch.full((size,), -1, dtype=torch.int64, device=rows.device) for size in self.shape
        )
        row_place[rows] = torch.arange(len(rows), device=rows.device)
        col_place[cols] = torch.arange(len(cols), device=rows.device)
        i, j = row_place[self.columns.rows], col_place[self.columns.cols]
        here = (i >= 0) & (j >= 0)
        out = self._nothing(len(rows), len(cols))
        out[i[here], j[here]] = self.columns.log_values[here]
        if len(rows) < n:
            log_x = self.log_x if len(cols) == n_columns else self.log_x[:, cols]
            boundary = self.graph.boundary(rows, row_place < 0, log_x)
            out = torch.logaddexp(out, boundary.add_(math.log(self.alpha)), out=out)
        return out

    def _accurate(
        self, rows: torch.Tensor, cols: torch.Tensor, log_x: torch.Tensor, error: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tell which entries are within `tol` of the largest of their row, in every view.

        Returns that, and by how much errors are larger, as logarithms.
        """
        excess = torch.zeros_like(log_x)
        # Only what stands clear of its own error may serve as "largest".
        clear = torch.where(error < log_x - math.log(2.0), log_x, -torch.inf)
        for view, reference in zip(self.views[:, cols], self.reference):
            own = clear + view
            least = torch.maximum(own.amax(1), reference[rows]) - self.reach
            allowed = math.log(self.tol) + torch.maximum(own, least[:, None])
            seen = error + view  # -inf where a column is left out
            torch.maximum(excess, torch.where(seen <= allowed, 0.0, seen - allowed), out=excess)
        return excess <= 0, excess

    def _keep(
        self, rows: torch.Tensor, final: torch.Tensor, cols: torch.Tensor, log_x: torch.Tensor
    ) -> None:
        rows, log_x = rows[final], log_x[final]
        self.log_x[rows[:, None], cols] = log_x
        for view, reference in zip(self.views[:, cols], self.reference):
            reference[rows] = torch.maximum(reference[rows], (log_x + view).amax(1))

    def _nothing(self, *shape: int) -> torch.Tensor:
        return torch.full(shape, -torch.inf, dtype=torch.float64, device=self.graph.device)


def _column_groups(accurate: torch.Tensor) -> list[torch.Tensor]:
    """Split off columns that would keep most rows of the others from being final."""
    everyone = torch.arange(accurate.shape[1], device=accurate.device)
    per_column = accurate.sum(0)
    good = per_column >= 0.5 * per_column.max()
    together = int(accurate.all(1).sum())
    if bool(good.all()) and together:
        return [everyone]
    if bool(good.all()):  # as many rows each, but no row in common
        good = (accurate == accurate[:, per_column.argmax()][:, None]).all(0)
    elif int(accurate[:, good].all(1).sum()) < 2 * together:
        return [everyone]
    return [everyone[good], everyone[~good]]
