"""Parts of a graph between which hardly anybody walks are solved one after the other.

Clusters that stand far apart are joined by edges of 1e-10 and less. Densities of a far class are
then 1e-10 of the near one's, and its vote still looks at them (see `densities`). Solved at once
they drown in rounding. So edges between parts, S_weak, are taken out, and their flow is brought
in afterwards,

    x ← x + A_strong⁻¹ Δ,   Δ = what is new of b + α S_weak x,

until nothing new arrives. Every part and column has a scale of its own, and terms are only added.
Where S_weak is below (1 - α)/100, what comes back to a part is at most 1e-4 of what left it, so a
part is solved about once for each column.

Parts do not touch in A_strong. So one right-hand side serves different columns in different
parts: about C of them in all, however many parts a walk passes through.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from manifoldknn.walk.levels import Columns, Solution, solve_by_levels
from manifoldknn.walk.normalized import Division, NormalizedGraph, add_log_products
from manifoldknn.walk.restriction import run_starts

_HARDLY = 1e-2  # of 1 - α: the largest entry of S between two parts
_NEGLIGIBLE = 0.1  # of the tolerance: what may be missing in the end
_OWN_SHARE = 0.5  # of it: what a solve may be wrong by; the rest is handed on
_LOOSE = 0.3  # tolerance of what should be little beside what is there


def solve_by_parts(
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
    graph, columns, alpha, tol, max_iter, reference, wanted, start
        As in `solve_by_levels`, which solves a graph that is one part, or is factorised.

    Returns
    -------
    Solution
        Logarithms of x. If most rows lie in parts with sources of fewer than two columns, every
        entry is accurate by itself: the next class of such a row is far.
    """
    division = None
    if graph.is_sparse and not graph.factorize:
        division = graph.divided(float(np.log(_HARDLY * (1.0 - alpha))))
    if division is None:
        return solve_by_levels(
            graph, columns, alpha=alpha, tol=tol, max_iter=max_iter, reference=reference,
            wanted=wanted, start=start,
        )  # fmt: skip
    if columns.reach and _stand_apart(division, columns):
        columns = replace(columns, reach=np.inf)
    solver = _Parts(division, columns, alpha, tol, max_iter, reference, wanted)
    while solver.news.any():
        solver.hear()
        solver.tell()
    return Solution(solver.log_x, solver.n_iter, solver.converged, columns.reach)


def _stand_apart(division: Division, columns: Columns) -> bool:
    """Tell whether most rows lie in parts with sources of fewer than two columns."""
    sourced = np.zeros((division.n_parts, columns.n_columns), dtype=bool)
    sourced[division.part[columns.rows], columns.cols] = True
    return bool((sourced.sum(axis=1)[division.part] < 2).mean() > 0.5)


class _Parts:
    """What is known so far, and what is new to which part in which column.

    Attributes
    ----------
    log_x : ndarray of shape (n_rows, n_columns)
        What has arrived.
    news : ndarray of bool of shape (n_parts, n_columns)
        What has to be solved next.
    right : tuple of ndarray
        Rows, columns and logarithms of what is new.
    """

    def __init__(
        self,
        division: Division,
        columns: Columns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: NDArray[np.float64] | None,
        wanted: NDArray[np.bool_] | None,
    ) -> None:
        self.division, self.columns, self.reference = division, columns, reference
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.part, self.ends = division.part, division.rows
        self.wanted = wanted
        if wanted is not None:
            self.wanted = wanted.copy()
            self.wanted[self.ends] = True  # others hear from them
        self.n_iter, self.converged = 0, True
        self.log_x = np.full((len(self.part), columns.n_columns), -np.inf)
        self.heard = np.full((len(self.ends), columns.n_columns), -np.inf)
        self.right = columns.rows, columns.cols, columns.log_values
        self.news = np.zeros((division.n_parts, columns.n_columns), dtype=bool)
        self.news[self.part[columns.rows], columns.cols] = True

    def hear(self) -> None:
        """Solve parts for what is new to them.

        What may be little beside what is there is solved roughly first.
        """
        place = np.tile(np.arange(self.columns.n_columns), (len(self.news), 1))
        if (self.columns.views == self.columns.views[:, :1]).all():  # all are looked at alike
            place = np.cumsum(self.news, axis=1) - 1
        there = [np.flatnonzero(self.news[self.part, c]) for c in range(self.columns.n_columns)]
        at = [place[self.part[rows], c] for c, rows in enumerate(there)]
        known = [self.log_x[rows, c] for c, rows in enumerate(there)]
        finest = _OWN_SHARE * self.tol
        tol = finest
        if all((old > -np.inf).all() for old in known):
            tol = _LOOSE
        while True:
            found = self._solved(place, tol)
            new = [found[rows, slots] for rows, slots in zip(there, at)]
            ratio = max(float(np.max(a - b, initial=-np.inf)) for a, b in zip(new, known))
            if tol <= finest or np.log(tol) + ratio <= np.log(finest):
                break
            tol = finest * max(1.0, 0.5 * float(np.exp(-max(ratio, np.log(finest)))))
        for c, rows in enumerate(there):
            self.log_x[rows, c] = np.logaddexp(known[c], new[c])

    def tell(self) -> None:
        """See what flows over weak edges now, and to whom it is news."""
        inflow = np.full(self.heard.shape, -np.inf)
        edges = self.division
        add_log_products(edges.place, edges.other, edges.log_values, self.log_x, inflow)
        inflow += np.log(self.alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = inflow + np.log1p(-np.exp(self.heard - inflow))
        new[~(inflow > self.heard)] = -np.inf
        self.news = self._weight(new) > np.log(_NEGLIGIBLE * self.tol)
        ends, cols = np.nonzero(self.news[self.part[self.ends]] & (new > -np.inf))
        self.right = self.ends[ends], cols, new[ends, cols]
        self.heard[ends, cols] = inflow[ends, cols]

    def _solved(self, place: NDArray[np.intp], tol: float) -> NDArray[np.float64]:
        """Return log (A_strong⁻¹ Δ), each part's columns at their places."""
        rows, cols, log_values = self.right
        views, reach, largest = self.columns.views, np.inf, None
        if tol <= self.tol:  # else news are judged by themselves, and weighed afterwards
            reach = self.columns.reach
            largest = np.stack([(self.log_x + view).max(axis=1) for view in views])
            if self.reference is not None:
                largest = np.maximum(largest, self.reference)
        right = Columns(
            rows=rows, cols=place[self.part[rows], cols], log_values=log_values,
            views=views[:, : int(place[self.news].max()) + 1], reach=reach,
        )  # fmt: skip
        found = solve_by_levels(
            self.division.inside, right, alpha=self.alpha, tol=tol, max_iter=self.max_iter,
            reference=largest, wanted=self.wanted,
        )  # fmt: skip
        self.n_iter += found.n_iter
        self.converged &= found.converged
        return found.log_values

    def _counts(self) -> NDArray[np.float64]:
        """Return what an error is small against: the entry, or a larger one in another column."""
        if self.reference is None:
            return self.log_x
        least = self.reference[:, :, None] - self.columns.reach - self.columns.views[:, None, :]
        return np.maximum(self.log_x, least.min(axis=0))

    def _weight(self, new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a bound on what news can add to an entry, by what counts: for part and column.

        The second bound of `restriction`: √d_i · max_m (Δ_m / √d_m) / (1 - α).
        """
        half = 0.5 * self.division.inside.log_degrees
        out = np.full(self.news.shape, -np.inf)
        np.maximum.at(out, self.part[self.ends], new - half[self.ends, None])
        heard = out > -np.inf
        if heard.any():
            order = np.argsort(self.part, kind="stable")
            known = (self._counts() - half[:, None])[order]
            least = np.minimum.reduceat(known, run_starts(self.part[order]), axis=0)
            out[heard] -= least[heard] + np.log1p(-self.alpha)
        return out
