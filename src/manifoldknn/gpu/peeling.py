"""Columns of A⁻¹ = (I - αS)⁻¹ on a device, accurate in every row.

The levels of `manifoldknn.peeling`: solve, bound the error of every entry, take the rows
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

from manifoldknn.gpu.bounds import log_error
from manifoldknn.gpu.cg import ConjugateGradients
from manifoldknn.gpu.normalized import NormalizedTorchGraph, Parts
from manifoldknn.normalized import LOG_CUT
from manifoldknn.peeling import Columns

logger = logging.getLogger(__name__)

_FIRST_GOAL = 1e-3  # relative residual at which a level is looked at first, as a share of tol
_FURTHER = 1e-1  # how much smaller it becomes before each further look
_LEVEL_RANGE = 1e-4  # a level need not go below this share of tol
_ENOUGH = 0.9  # share of final rows at which the others are better solved on their own
_DRIFT = 2.0  # how far the true residual may be from the iterated one


@dataclass(frozen=True)
class TorchSolution:
    """Nonnegative columns, as logarithms.

    Attributes
    ----------
    log_values : Tensor of shape (n_samples, n_columns)
        Logarithms; -inf in whole rows that no source reaches.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.
    """

    log_values: torch.Tensor
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class _Job:
    """Rows still to be solved for some columns."""

    rows: torch.Tensor
    cols: torch.Tensor


def solve_on_device(
    graph: NormalizedTorchGraph,
    columns: Columns,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    reference: torch.Tensor | None = None,
) -> TorchSolution:
    """Solve (I - αS) x = b so that every row of x is accurate.

    Parameters
    ----------
    graph : NormalizedTorchGraph
        S.
    columns : Columns
        Right-hand sides.
    alpha : float
        Share of strength kept per step.
    tol : float
        Error allowed in an entry, relative to the largest of its row.
    max_iter : int
        Limit on conjugate-gradient iterations per level.
    reference : Tensor of shape (n_views, n_samples), optional
        Logarithm of an entry that the row is known to have in some other column, as
        each view sees it.

    Returns
    -------
    TorchSolution
        Logarithms of x.

    Notes
    -----
    Cost O(iterations · edges · columns); memory is about 120 bytes per row and column.
    """
    solver = _Levels(graph, columns, alpha, tol, max_iter, reference)
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
        columns: Columns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: torch.Tensor | None,
    ) -> None:
        self.graph = graph
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.sources = tuple(
            torch.as_tensor(np.asarray(values), device=graph.device)
            for values in (columns.rows, columns.cols, columns.log_values)
        )
        self.views = torch.as_tensor(columns.views, device=graph.device)
        self.shape = graph.n_samples, columns.n_columns
        nothing = torch.full((len(self.views), graph.n_samples), -torch.inf, dtype=torch.float64)
        self.reference = nothing.to(graph.device) if reference is None else reference.clone()
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
        if not converged or not bool(accurate.any()):
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
        solver = ConjugateGradients(matrix, rhs)
        relative = torch.full_like(norms, torch.inf)
        goals = self.tol * _FIRST_GOAL * norms
        while True:
            converged = solver.advance(goals, self.max_iter - solver.n_iter)
            residual = rhs - matrix(solver.x)
            log_x = solver.x.clamp(min=0.0).log_().add_(parts.spread(scale))
            error = log_error(matrix, solver.x, residual, parts, half, self.alpha)
            error += parts.spread(scale)
            if parts.n_cut:
                error = torch.logaddexp(error, self._cut_flow(log_x, parts.n_cut))
            accurate = self._accurate(parts.rows, cols, log_x, error)
            del error
            before, relative = relative, residual.norm(dim=0) / norms
            share = float(accurate.all(1).double().mean())
            # Columns that are not done, and that rounding does not keep from getting better.
            going = ~accurate.all(0) & (relative < 0.5 * before)
            deep = bool(accurate.any()) and bool((relative <= self.tol * _LEVEL_RANGE).all())
            logger.debug(
                "%d rows, %d columns, %d iterations: residual %.1e, %.1f %% of rows accurate",
                len(half), len(norms), solver.n_iter, float(relative.max()), 100 * share,
            )  # fmt: skip
            if not converged or share >= _ENOUGH or deep or not bool(going.any()):
                break
            if bool((relative * norms > _DRIFT * solver.residual_norms()).any()):
                solver.restart(residual)
            goals = torch.where(going, _FURTHER * relative * norms, torch.inf)
        self.n_iter += solver.n_iter
        return log_x, accurate, converged

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
        i, j = row_place[self.sources[0]], col_place[self.sources[1]]
        here = (i >= 0) & (j >= 0)
        out = self._nothing(len(rows), len(cols))
        out[i[here], j[here]] = self.sources[2][here]
        if len(rows) < n:
            log_x = self.log_x if len(cols) == n_columns else self.log_x[:, cols]
            boundary = self.graph.boundary(rows, row_place < 0, log_x)
            out = torch.logaddexp(out, boundary.add_(math.log(self.alpha)), out=out)
        return out

    def _accurate(
        self, rows: torch.Tensor, cols: torch.Tensor, log_x: torch.Tensor, error: torch.Tensor
    ) -> torch.Tensor:
        """Tell which entries are within `tol` of the largest of their row, in every view."""
        accurate = torch.ones_like(log_x, dtype=torch.bool)
        # Only what stands clear of its own error may serve as "largest".
        clear = torch.where(error < log_x - math.log(2.0), log_x, -torch.inf)
        for view, reference in zip(self.views[:, cols], self.reference):
            largest = (clear + view).amax(1)
            allowed = math.log(self.tol) + torch.maximum(largest, reference[rows])
            accurate &= error + view <= allowed[:, None]  # -inf where a column is left out
        return accurate

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
