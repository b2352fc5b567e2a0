"""Parts of a graph between which hardly anybody walks are solved one after the other.

Clusters that stand far apart are joined by edges of 1e-10 and less. Densities of a far class are
then 1e-10 of the near one's, and its vote still looks at them (see `densities`). Solved at once
they drown in rounding. So edges between parts, S_weak, are taken out, and their flow is brought
in afterwards,

    x ← x + A_strong⁻¹ Δ,   Δ = what is new of b + α S_weak x,

until nothing new arrives. Every part and column has a scale of its own, and terms are only added.
Entries of S_weak are below (1 - α)/100, so what comes back over an edge is at most 1e-4 of what
left: with few edges between parts, a part is solved about once for each column.

Parts do not touch in A_strong. So one right-hand side serves different columns in different
parts: about C of them in all, however many parts a walk passes through.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from manifoldknn.walk.levels import Columns, Solution, solve_by_levels
from manifoldknn.walk.normalized import Division, NormalizedGraph, add_log_products
from manifoldknn.walk.restriction import Parts

_HARDLY = 1e-2  # of 1 - α: the largest entry of S between two parts
_NEGLIGIBLE = 0.1  # of the tolerance: what may be missing in the end
_OWN_SHARE = 0.5  # of it: what a solve may be wrong by; the rest is handed on
_LARGE = 1e300  # what stands for infinity where logarithms are added up
_LOOSE = 0.3  # tolerance of what should be little beside what is there


def solve_by_parts(
    graph: NormalizedGraph,
    columns: Columns,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    reference: Any = None,
    wanted: Any = None,
    start: Any = None,
) -> Solution:
    """Solve (I - αS) x = b so that every row of x is accurate.

    Parameters
    ----------
    graph, columns, alpha, tol, max_iter, reference, wanted, start
        As in `solve_by_levels`, which solves a graph that is one part, or is factorised. In other
        graphs, a guess serves only where no column takes another's place. Each part that a walk
        passes through may add half of `tol`.

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
    solver = _Parts(division, columns, alpha, tol, max_iter, reference, wanted, start)
    while solver.news.any():
        solver.hear()
        solver.tell()
    return Solution(solver.log_x, solver.n_iter, solver.converged, columns.reach)


def _sourced(division: Division, columns: Columns) -> Any:
    """Tell which parts have sources of which columns."""
    kernels = division.inside.kernels
    sourced = kernels.full((division.n_parts, columns.n_columns), 0.0) > 0
    sourced[division.part[columns.rows], columns.cols] = True
    return sourced


def _stand_apart(division: Division, columns: Columns) -> bool:
    """Tell whether most rows lie in parts with sources of fewer than two columns."""
    few = (_sourced(division, columns).sum(axis=1) < 2)[division.part]
    return float(few.sum()) / len(few) > 0.5


class _Parts:
    """What is known so far, and what is new to which part in which column.

    Attributes
    ----------
    log_x : array of shape (n_rows, n_columns)
        What has arrived.
    news : array of bool of shape (n_parts, n_columns)
        What has to be solved next.
    right : tuple of array
        Rows, columns and logarithms of what is new.
    known : array of bool of shape (n_parts, n_columns)
        What has been solved before.
    """

    def __init__(
        self,
        division: Division,
        columns: Columns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: Any,
        wanted: Any,
        start: Any,
    ) -> None:
        self.division, self.columns, self.reference = division, columns, reference
        self.start = start
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.part, self.ends = division.part, division.rows
        self.kernels, self.xp = division.inside.kernels, division.inside.kernels.xp
        order, of_ends = (self.kernels.order(part) for part in (self.part, self.part[self.ends]))
        self.in_order = Parts(order, self.part[order], 0, self.kernels)
        self.ends_in_order = Parts(of_ends, self.part[self.ends[of_ends]], 0, self.kernels)
        self.wanted = wanted
        if wanted is not None:  # and others hear from the ends
            self.wanted = wanted | self.kernels.mask(self.ends, len(wanted))
        self.n_iter, self.converged = 0, True
        self.log_x = self.kernels.full((len(self.part), columns.n_columns), -np.inf)
        self.heard = self.kernels.full((len(self.ends), columns.n_columns), -np.inf)
        self.right = columns.rows, columns.cols, columns.log_values
        self.news = _sourced(division, columns)
        self.known = self.xp.zeros_like(self.news)

    def hear(self) -> None:
        """Solve parts for what is new to them.

        What should be little beside what is there is solved roughly first; only where it is not,
        again.
        """
        finest = _OWN_SHARE * self.tol
        fresh, echo = self.news & ~self.known, self.news & self.known
        if fresh.any():
            self._add(fresh, self._solved(fresh, finest), self._places(fresh))
        if echo.any():
            found, place = self._solved(echo, _LOOSE), self._places(echo)
            ratio = self._ratio(echo, found, place)
            again = echo & (float(np.log(_LOOSE)) + ratio > float(np.log(finest)))
            self._add(echo & ~again, found, place)
            if again.any():
                largest = float(ratio[again].max())
                tol = finest * max(1.0, 0.5 * float(np.exp(-max(largest, np.log(finest)))))
                self._add(again, self._solved(again, tol), self._places(again))
        self.known |= self.news

    def tell(self) -> None:
        """See what flows over weak edges now, and to whom it is news."""
        xp, edges = self.xp, self.division
        inflow = self.kernels.full(tuple(self.heard.shape), -np.inf)
        add_log_products(
            edges.place, edges.other, edges.log_values, self.log_x, inflow, self.kernels
        )
        inflow += float(np.log(self.alpha))
        with np.errstate(divide="ignore", invalid="ignore"):
            new = inflow + xp.log1p(-xp.exp(self.heard - inflow))
        new[~(inflow > self.heard)] = -np.inf
        self.news = self._weight(new) > float(np.log(_NEGLIGIBLE * self.tol))
        ends, cols = xp.where(self.news[self.part[self.ends]] & (new > -np.inf))
        self.right = self.ends[ends], cols, new[ends, cols]
        self.heard[ends, cols] = inflow[ends, cols]

    def _places(self, news: Any) -> Any:
        """Return which right-hand side holds a column, for every part.

        Columns that are looked at alike take each other's place in different parts.
        """
        counts = self.xp.cumsum(news, 1)
        if (self.columns.views == self.columns.views[:, :1]).all():
            return counts - 1
        return self.xp.zeros_like(counts) + self.kernels.arange(self.columns.n_columns)

    def _solved(self, news: Any, tol: float) -> Any:
        """Return log (A_strong⁻¹ Δ) for some news, columns at their places."""
        rows, cols, log_values = self.right
        here = news[self.part[rows], cols]
        rows, cols, log_values = rows[here], cols[here], log_values[here]
        place, views, reach, largest = self._places(news), self.columns.views, np.inf, None
        if tol <= self.tol:  # else news are judged by themselves, and weighed afterwards
            reach = self.columns.reach
            largest = self.xp.stack([self.xp.amax(self.log_x + view, axis=1) for view in views])
            if self.reference is not None:
                largest = self.xp.maximum(largest, self.reference)
        right = Columns(
            rows=rows, cols=place[self.part[rows], cols], log_values=log_values,
            views=views[:, : int(place[news].max()) + 1], reach=reach, settle=self.columns.settle,
        )  # fmt: skip
        start, self.start = self.start, None  # it is for the first solve, and columns in place
        if start is not None and not (place == self.kernels.arange(place.shape[1]))[news].all():
            start = None
        found = solve_by_levels(
            self.division.inside, right, alpha=self.alpha, tol=tol, max_iter=self.max_iter,
            reference=largest, wanted=self.wanted, start=start,
        )  # fmt: skip
        self.n_iter += found.n_iter
        self.converged &= found.converged
        return found.log_values

    def _add(self, news: Any, found: Any, place: Any) -> None:
        """Add what some news led to."""
        for c in self.kernels.places(news.any(axis=0)).tolist():
            rows = self.kernels.places(news[self.part, c])
            new = found[rows, place[self.part[rows], c]]
            self.log_x[rows, c] = self.xp.logaddexp(self.log_x[rows, c], new)

    def _ratio(self, news: Any, found: Any, place: Any) -> Any:
        """Return how large news are beside what is there, at most: for part and column."""
        out, everyone = self.kernels.full(tuple(news.shape), -np.inf), self.in_order.rows
        for c in self.kernels.places(news.any(axis=0)).tolist():
            new = found[everyone, place[self.in_order.number, c]]
            asked = news[self.in_order.number, c] & (new > -np.inf)
            if self.wanted is not None:
                asked &= self.wanted[everyone]
            beside = self.xp.where(asked, self.log_x[everyone, c], 0.0)
            larger = self.xp.where(asked, new, -np.inf) - beside
            out[:, c] = self.in_order.runs.max(larger[:, None])[:, 0]
        return out

    def _counts(self) -> Any:
        """Return what an error is small against: the entry, or a larger one in another column."""
        if self.reference is None:
            return self.log_x
        least = self.xp.full_like(self.log_x, np.inf)
        for view, known in zip(self.columns.views, self.reference):
            seen = view > -np.inf
            allowed = known[:, None] - self.columns.reach - view[seen]
            least[:, seen] = self.xp.minimum(least[:, seen], allowed)
        return self.xp.maximum(self.log_x, least)

    def _weight(self, new: Any) -> Any:
        """Return a bound on what news can add to an entry, by what counts: for part and column.

        The smaller of two: the second bound of `restriction`, √d_i · max_m (Δ_m / √d_m) / (1 - α);
        and Σ_m Δ_m / x_m / (1 - α), as a walker from i comes to m no more often than x_i / x_m.
        """
        xp, ends = self.xp, self.ends_in_order
        half = 0.5 * self.division.inside.log_degrees
        out = self.kernels.full(tuple(self.news.shape), -np.inf)
        beside, there = xp.full_like(out, -np.inf), ends.number[ends.runs.offsets[:-1]]
        out[there] = ends.runs.max((new - half[self.ends, None])[ends.rows])
        heard = out > -np.inf
        if not heard.any():
            return out
        known = (half[:, None] - self._counts())[self.in_order.rows]
        out[heard] += self.in_order.runs.max(known)[heard]
        shares = new - xp.where(new > -np.inf, self.log_x[self.ends], 0.0)
        shares = self.kernels.at_most(shares, _LARGE)
        beside[there] = ends.runs.log_sum(shares[ends.rows])
        out[heard] = xp.minimum(out, beside)[heard] - float(np.log1p(-self.alpha))
        return out
