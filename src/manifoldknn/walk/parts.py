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
_BUSY = 0.3  # share of rows that a right-hand side must serve: wide products cost little more
_WIDER = 2  # times as many right-hand sides as columns, at most, in any part
_ROWS_AT_ONCE = 1 << 16


def solve_by_parts(
    graph: NormalizedGraph, columns: Columns, *, alpha: float, tol: float, max_iter: int,
    reference: Floats | None = None, wanted: Bools | None = None, start: Floats | None = None,
) -> Solution:  # fmt: skip
    """Solve (I - αS) x = b so that every row of x is accurate, and return log x.

    Parameters are as in `solve_by_levels`, which solves a graph that is one part, or is factorised.
    Other graphs begin from nothing. Each part that a walk passes through may add half of `tol`. If
    most rows lie in parts with sources of fewer than two columns, every entry is accurate by
    itself: the next class of such a row is far.
    """
    how: dict[str, Any] = {"alpha": alpha, "tol": tol, "max_iter": max_iter, "wanted": wanted}
    division = None
    if graph.is_sparse and not graph.factorize:
        division = graph.divided(float(np.log(_HARDLY * (1.0 - alpha))))
    if division is None:
        return solve_by_levels(graph, columns, reference=reference, start=start, **how)
    if wanted is not None:
        how["wanted"] = wanted.copy()
        how["wanted"][division.rows] = True  # others hear from them
    if columns.reach and _stand_apart(division, columns):
        columns = replace(columns, reach=np.inf)
        how["tol"] *= (
            _APART if columns.settle else 1.0
        )  # β is small there, and so are errors of f^β
    if np.isinf(columns.reach):
        doors = _Doors(division, columns)
        if doors.are_few:
            return doors.solution(**how)
    return _from_part_to_part(division, columns, reference, **how)


def _sourced(division: Division, columns: Columns) -> Bools:
    """Tell which parts have sources of which columns."""
    sourced = np.zeros((division.n_parts, columns.n_columns), dtype=bool)
    sourced[division.part[columns.rows], columns.cols] = True
    return np.asarray(division.inside.together.max(sourced))


def _sizes(division: Division) -> Ints:
    """Return how many rows the parts have."""
    together = division.inside.together
    own = division.part[: together.own(len(division.part))]
    return np.asarray(together.sum(np.bincount(own, minlength=division.n_parts)))


def _stand_apart(division: Division, columns: Columns) -> bool:
    """Tell whether most rows lie in parts with sources of fewer than two columns."""
    sizes, per_part = _sizes(division), _sourced(division, columns).sum(axis=1)
    return bool(sizes[per_part < 2].sum() > 0.5 * sizes.sum())


def _from_part_to_part(
    division: Division, columns: Columns, reference: Floats | None, *, alpha: float, tol: float,
    **solve: Any,
) -> Solution:  # fmt: skip
    """Return all columns: what is new to parts is solved, and told to the next, until it is little.

    A walker from i comes to m no more often than x_i / x_m. So what is new there, Δ_m, adds to an
    entry no more than Σ_m Δ_m / x_m / (1 - α) of itself.
    """
    inside, part, ends = division.inside, division.part, division.rows
    together, views, everyone = inside.together, columns.views, np.arange(columns.n_columns)
    alike, n_iter, converged = (views == views[:, :1]).all(), 0, True
    log_x = np.full((len(part), len(everyone)), -np.inf)
    heard = np.full((len(ends), len(everyone)), -np.inf)
    rows, cols, log_values = columns.rows, columns.cols, columns.log_values
    news = _sourced(division, columns)  # to which part, in which column
    while news.any():
        # Columns that are looked at alike take each other's place in different parts.
        place = np.cumsum(news, axis=1) - 1 if alike else np.tile(everyone, (len(news), 1))
        right = replace(
            columns, rows=rows, cols=place[part[rows], cols], log_values=log_values,
            views=views[:, : int(place[news].max()) + 1],
        )  # fmt: skip
        largest = np.stack([(log_x + view).max(axis=1) for view in views])
        if reference is not None:
            largest = np.maximum(largest, reference)
        found = solve_by_levels(
            inside, right, alpha=alpha, tol=_OWN_SHARE * tol, reference=largest, **solve
        )
        n_iter, converged = n_iter + found.n_iter, converged and found.converged
        for c in np.flatnonzero(news.any(axis=0)):
            here = np.flatnonzero(news[part, c])
            added = found.log_values[here, place[part[here], c]]
            log_x[here, c] = np.logaddexp(log_x[here, c], added)
        inflow, seen = np.full(heard.shape, -np.inf), together.halo(log_x)
        add_log_products(division.place, division.other, division.log_values, seen, inflow)
        inflow += np.log(alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = inflow + np.log1p(-np.exp(heard - inflow))
        new[~(inflow > heard)] = -np.inf
        shares, weight = np.full(new.shape, -np.inf), np.full(news.shape, -np.inf)
        beside = _that_counts(columns, log_x, reference)[ends]
        np.subtract(new, beside, out=shares, where=new > -np.inf)
        np.logaddexp.at(weight, part[ends], shares)
        news = together.log_sum(weight) > np.log(_NEGLIGIBLE * tol) + np.log1p(-alpha)
        told, cols = np.nonzero(news[part[ends]] & (new > -np.inf))
        rows, log_values = ends[told], new[told, cols]
        heard[told, cols] = inflow[told, cols]
    return Solution(log_x, n_iter, converged, columns.reach)


def _that_counts(columns: Columns, log_x: Floats, reference: Floats | None) -> Floats:
    """Return what an error is small against: the entry, or a larger one in another column."""
    if reference is None:
        return log_x
    least = np.full(log_x.shape, np.inf)
    for view, known in zip(columns.views, reference):
        seen = view > -np.inf
        allowed = known[:, None] - columns.reach - view[seen]
        least[:, seen] = np.minimum(least[:, seen], allowed)
    return np.maximum(log_x, least)


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
        sizes, most = _sizes(self.division), int(self.numbers.max())
        width = self.columns.n_columns
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

    def _blocks(self) -> list[slice]:
        """Return slots that are solved at once: in few parts there are many, and others wait."""
        sizes = _sizes(self.division)
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
