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

Where every entry must be accurate by itself, all columns come into a part through the same few
doors: a row here that has weak edges, or a row elsewhere that has them to rows here. Then A_strong
is solved once for each door, and every column is a sum of what it brings to each, x = Σ_b g_b t_b.
How much that is, t, follows from a small system: each t_b is what x is at the other side.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.kernels import NUMPY
from manifoldknn.walk.levels import Columns, Solution, solve_by_levels
from manifoldknn.walk.normalized import Division, NormalizedGraph, add_log_products

_HARDLY = 1e-2  # of 1 - α: the largest entry of S between two parts
_NEGLIGIBLE = 0.1  # of the tolerance: what may be missing in the end
_OWN_SHARE = 0.5  # of it: what a solve may be wrong by; the rest is handed on
_APART = 10.0  # times the tolerance where classes stand apart, and an estimate will do
_LOOSE = 0.3  # tolerance of what should be little beside what is there
_BUSY = 0.3  # share of rows that a right-hand side must serve: wide products cost little more
_WIDER = 2  # times as many right-hand sides as columns, at most, in any part
_ROWS_AT_ONCE = 1 << 16


def solve_by_parts(
    graph: NormalizedGraph,
    columns: Columns,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    reference: Floats | None = None,
    wanted: Bools | None = None,
    start: Floats | None = None,
) -> Solution:
    """Solve (I - αS) x = b so that every row of x is accurate, and return log x.

    Parameters are as in `solve_by_levels`, which solves a graph that is one part, or is factorised.
    Other graphs begin from nothing. Each part that a walk passes through may add half of `tol`. If
    most rows lie in parts with sources of fewer than two columns, every entry is accurate by
    itself: the next class of such a row is far.
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
        tol *= _APART if columns.settle else 1.0  # β is small there, and so are errors of f^β
    if np.isinf(columns.reach):
        doors = _Doors(division, columns)
        if doors.are_few:
            return doors.solution(alpha=alpha, tol=tol, max_iter=max_iter, wanted=wanted)
    solver = _Parts(division, columns, alpha, tol, max_iter, reference, wanted)
    while solver.news.any():
        solver.hear()
        solver.tell()
    return Solution(solver.log_x, solver.n_iter, solver.converged, columns.reach)


def _sourced(division: Division, columns: Columns) -> Bools:
    """Tell which parts have sources of which columns."""
    sourced = np.zeros((division.n_parts, columns.n_columns), dtype=bool)
    sourced[division.part[columns.rows], columns.cols] = True
    return np.asarray(division.inside.together.max(sourced))


def _stand_apart(division: Division, columns: Columns) -> bool:
    """Tell whether most rows lie in parts with sources of fewer than two columns."""
    per_part = _sourced(division, columns).sum(axis=1)
    together = division.inside.together
    own = division.part[: together.own(len(division.part))]
    alone = together.sum(np.count_nonzero(per_part[own] < 2))
    return bool(alone > 0.5 * together.sum(len(own)))


class _Doors:
    """What comes into parts: right-hand sides of A_strong, numbered in every part from 0.

    In each part there are its own sources, column by column, and then its doors. A row elsewhere is
    one door to all rows here that it has weak edges to, if these are more than they have edges.
    """

    def __init__(self, division: Division, columns: Columns) -> None:
        self.division, self.columns = division, columns
        self.together = division.inside.together
        ends, others = division.rows[division.place], division.other
        part = division.part[ends]
        _, source, many = np.unique(
            np.stack([part, others]), axis=1, return_inverse=True, return_counts=True
        )
        source = source.ravel()
        outside = many[source] > np.bincount(division.place)[division.place]
        keys = np.where(outside, source, len(many) + division.place)
        _, first, door = np.unique(
            np.stack([part, keys]), axis=1, return_index=True, return_inverse=True
        )
        door = door.ravel()
        self.part = part[first]  # of every door, and the number it has there:
        sourced = _sourced(division, columns)
        own = np.cumsum(sourced, axis=1) - 1
        here = np.zeros((self.together.size, division.n_parts), dtype=np.intp)
        here[self.together.rank] = np.bincount(self.part, minlength=division.n_parts)
        here = self.together.sum(here)
        before = sourced.sum(axis=1) + here[: self.together.rank].sum(axis=0)
        run = NUMPY.runs_of(self.part).offsets
        self.slot = before[self.part] + np.arange(len(first)) - np.repeat(run[:-1], np.diff(run))
        self.numbers = sourced.sum(axis=1) + here.sum(axis=0)  # of right-hand sides in each part
        once = NUMPY.mask(first, len(door))  # a row that is a door, or what comes from one
        used = np.flatnonzero(outside | once)
        self.rows = np.concatenate([columns.rows, ends[used]])  # where these are not 0
        of_sources = own[division.part[columns.rows], columns.cols]
        self.slots = np.concatenate([of_sources, self.slot[door[used]]])
        logs = np.where(outside, division.log_values, 0.0)[used]
        self.log_values = np.concatenate([columns.log_values, logs])
        used = np.flatnonzero(~outside | once)
        used = used[np.argsort(door[used], kind="stable")]
        # What comes to a door, ascending, is α Σ exp(log factor) x of others.
        self.doors, self.others = door[used], others[used]
        self.log_factors = np.where(outside, 0.0, division.log_values)[used]
        self._own = (*np.nonzero(sourced), own[sourced])

    @property
    def are_few(self) -> bool:
        """Tell whether they are no more work than all columns in all parts, and little memory."""
        sizes, most, width = self._sizes(), int(self.numbers.max()), self.columns.n_columns
        n = sizes.sum()
        little = most <= _WIDER * width and most * len(sizes) <= n
        return bool(little and sizes @ self.numbers <= n * width)

    def solution(
        self, *, alpha: float, tol: float, max_iter: int, wanted: Bools | None
    ) -> Solution:
        """Return all columns, every entry accurate by itself."""
        # Logarithms of how much of a right-hand side a column has: of its own sources all.
        shape = len(self.numbers), int(self.numbers.max()), self.columns.n_columns
        self.taken = np.full(shape, -np.inf)
        where, which, slots = self._own
        self.taken[where, slots, which] = 0.0
        if wanted is not None:
            wanted = wanted.copy()
            wanted[self.division.rows] = True  # others hear from them
        solve = {"alpha": alpha, "tol": _OWN_SHARE * tol, "max_iter": max_iter, "wanted": wanted}
        solved = [self._solved(some, solve) for some in self._blocks()]
        found = np.hstack([of.log_values for of in solved])
        self._pass_on(self.together.halo(found)[self.others], alpha, tol)
        out = np.full((len(found), self.columns.n_columns), -np.inf)
        rows = np.arange(len(found)) if wanted is None else np.flatnonzero(wanted)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            out[some] = self._sums(found[some], self.division.part[some])
        return Solution(
            out, sum(of.n_iter for of in solved), all(of.converged for of in solved), np.inf
        )

    def _sizes(self) -> Ints:
        """Return how many rows the parts have."""
        own = self.division.part[: self.together.own(len(self.division.part))]
        sizes = np.bincount(own, minlength=self.division.n_parts)
        return np.asarray(self.together.sum(sizes))

    def _blocks(self) -> list[slice]:
        """Return slots that are solved at once: in few parts there are many, and others wait."""
        sizes = self._sizes()
        rows = [int(sizes[self.numbers > slot].sum()) for slot in range(self.numbers.max())]
        bounds = [0]
        for slot, count in enumerate(rows):
            if count < _BUSY * rows[bounds[-1]]:
                bounds.append(slot)
        return [slice(a, b) for a, b in pairwise([*bounds, len(rows)])]

    def _solved(self, some: slice, solve: dict[str, Any]) -> Solution:
        """Return g of some slots."""
        right = Columns(
            rows=self.rows, cols=self.slots, log_values=self.log_values,
            views=np.zeros((1, self.taken.shape[1])), reach=np.inf, settle=self.columns.settle,
        )  # fmt: skip
        return solve_by_levels(self.division.inside, right.block(some), **solve)

    def _pass_on(self, found: Floats, alpha: float, tol: float) -> None:
        """Let columns go on from part to part until nothing new arrives, given g at `others`."""
        part, going = self.division.part[self.others], True
        while going:
            taken = np.full(self.taken.shape, -np.inf)
            if len(part):
                terms = np.log(alpha) + self.log_factors[:, None] + self._sums(found, part)
                taken[self.part, self.slot] = NUMPY.runs_of(self.doors).log_sum(terms)
            taken = np.maximum(self.taken, self.together.max(taken))
            going = bool((taken > self.taken + _NEGLIGIBLE * tol).any())
            self.taken = taken

    def _sums(self, found: Floats, part: Ints) -> Floats:
        """Return log Σ_b g_b t_b in rows of some parts."""
        out = np.full((len(found), self.taken.shape[2]), -np.inf)
        for slot in range(found.shape[1]):
            here = np.flatnonzero(self.numbers[part] > slot)
            new = found[here, slot, None] + self.taken[part[here], slot]
            out[here] = np.logaddexp(out[here], new)
        return out


class _Parts:
    """What is known so far, and what is new to which part in which column.

    `log_x` has arrived; `right` are rows, columns and logarithms of what is new. Of parts and
    columns, `known` have been solved before, and `news` are solved next.
    """

    def __init__(
        self,
        division: Division,
        columns: Columns,
        alpha: float,
        tol: float,
        max_iter: int,
        reference: Floats | None,
        wanted: Bools | None,
    ) -> None:
        self.division, self.columns, self.reference = division, columns, reference
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.part, self.ends = division.part, division.rows
        self.together = division.inside.together
        self.wanted = wanted
        if wanted is not None:
            self.wanted = wanted.copy()
            self.wanted[self.ends] = True  # others hear from them
        self.n_iter, self.converged = 0, True
        self.log_x = np.full((len(self.part), columns.n_columns), -np.inf)
        self.heard = np.full((len(self.ends), columns.n_columns), -np.inf)
        self.right = columns.rows, columns.cols, columns.log_values
        self.news = _sourced(division, columns)
        self.known = np.zeros_like(self.news)

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
            again = echo & (np.log(_LOOSE) + ratio > np.log(finest))
            self._add(echo & ~again, found, place)
            if again.any():
                largest = float(ratio[again].max())
                tol = finest * max(1.0, 0.5 * float(np.exp(-max(largest, np.log(finest)))))
                self._add(again, self._solved(again, tol), self._places(again))
        self.known |= self.news

    def tell(self) -> None:
        """See what flows over weak edges now, and to whom it is news."""
        inflow = np.full(self.heard.shape, -np.inf)
        edges = self.division
        log_x = self.together.halo(self.log_x)
        add_log_products(edges.place, edges.other, edges.log_values, log_x, inflow)
        inflow += np.log(self.alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = inflow + np.log1p(-np.exp(self.heard - inflow))
        new[~(inflow > self.heard)] = -np.inf
        self.news = self._weight(new) > np.log(_NEGLIGIBLE * self.tol)
        ends, cols = np.nonzero(self.news[self.part[self.ends]] & (new > -np.inf))
        self.right = self.ends[ends], cols, new[ends, cols]
        self.heard[ends, cols] = inflow[ends, cols]

    def _places(self, news: Bools) -> Ints:
        """Return which right-hand side holds a column, for every part.

        Columns that are looked at alike take each other's place in different parts.
        """
        if (self.columns.views == self.columns.views[:, :1]).all():
            return np.cumsum(news, axis=1) - 1
        return np.tile(np.arange(self.columns.n_columns), (len(news), 1))

    def _solved(self, news: Bools, tol: float) -> Floats:
        """Return log (A_strong⁻¹ Δ) for some news, columns at their places."""
        rows, cols, log_values = self.right
        here = news[self.part[rows], cols]
        rows, cols, log_values = rows[here], cols[here], log_values[here]
        place, views, reach, largest = self._places(news), self.columns.views, np.inf, None
        if tol <= self.tol:  # else news are judged by themselves, and weighed afterwards
            reach = self.columns.reach
            largest = np.stack([(self.log_x + view).max(axis=1) for view in views])
            if self.reference is not None:
                largest = np.maximum(largest, self.reference)
        right = Columns(
            rows=rows, cols=place[self.part[rows], cols], log_values=log_values,
            views=views[:, : int(place[news].max()) + 1], reach=reach, settle=self.columns.settle,
        )  # fmt: skip
        found = solve_by_levels(
            self.division.inside, right, alpha=self.alpha, tol=tol, max_iter=self.max_iter,
            reference=largest, wanted=self.wanted,
        )  # fmt: skip
        self.n_iter += found.n_iter
        self.converged &= found.converged
        return found.log_values

    def _add(self, news: Bools, found: Floats, place: Ints) -> None:
        """Add what some news led to."""
        for c in np.flatnonzero(news.any(axis=0)):
            rows = np.flatnonzero(news[self.part, c])
            new = found[rows, place[self.part[rows], c]]
            self.log_x[rows, c] = np.logaddexp(self.log_x[rows, c], new)

    def _ratio(self, news: Bools, found: Floats, place: Ints) -> Floats:
        """Return how large news are beside what is there, at most: for part and column."""
        out = np.full(news.shape, -np.inf)
        for c in np.flatnonzero(news.any(axis=0)):
            asked = news[self.part, c]
            if self.wanted is not None:
                asked &= self.wanted
            rows = np.flatnonzero(asked)
            new = found[rows, place[self.part[rows], c]]
            rows, new = rows[new > -np.inf], new[new > -np.inf]
            np.maximum.at(out[:, c], self.part[rows], new - self.log_x[rows, c])
        return np.asarray(self.together.max(out))

    def _counts(self) -> Floats:
        """Return what an error is small against: the entry, or a larger one in another column."""
        if self.reference is None:
            return self.log_x
        least = np.full(self.log_x.shape, np.inf)
        for view, known in zip(self.columns.views, self.reference):
            seen = view > -np.inf
            allowed = known[:, None] - self.columns.reach - view[seen]
            least[:, seen] = np.minimum(least[:, seen], allowed)
        return np.maximum(self.log_x, least)

    def _weight(self, new: Floats) -> Floats:
        """Return a bound on what news can add to an entry, by what counts: for part and column.

        The smaller of two: the second bound of `iteration`, √d_i · max_m (Δ_m / √d_m) / (1 - α);
        and Σ_m Δ_m / x_m / (1 - α), as a walker from i comes to m no more often than x_i / x_m.
        """
        half = 0.5 * self.division.inside.log_degrees
        of_ends = self.part[self.ends]
        out = np.full(self.news.shape, -np.inf)
        np.maximum.at(out, of_ends, new - half[self.ends, None])
        out = self.together.max(out)
        heard = out > -np.inf
        if not heard.any():
            return out
        own = self.part[: self.together.own(len(self.part))]
        order = np.argsort(own, kind="stable")
        known = (self._counts() - half[:, None])[order]
        starts = NUMPY.runs_of(own[order]).offsets[:-1]
        least = np.full(out.shape, np.inf)
        least[own[order][starts]] = np.minimum.reduceat(known, starts, axis=0)
        out[heard] += self.together.max(-least)[heard]
        shares = np.full(new.shape, -np.inf)
        np.subtract(new, self.log_x[self.ends], out=shares, where=new > -np.inf)
        beside = np.full(out.shape, -np.inf)
        np.logaddexp.at(beside, of_ends, shares)
        beside = self.together.log_sum(beside)
        out[heard] = np.minimum(out, beside)[heard] - np.log1p(-self.alpha)
        return out
