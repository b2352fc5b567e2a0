"""Rows with few neighbours are eliminated before the walk is iterated.

A graph of samples has many rows with three to six neighbours. Two rounds of
elimination halve the number of rows for half as many entries more, and the smaller
system, scaled to a diagonal of ones again, is better conditioned as well.

The bounds of `iteration` hold for the smaller system. Eliminating rows leaves the
smallest eigenvalue at 1 - α or above, and A√d ≥ (1 - α)√d for the rows that stay;
scaling up by s ≥ 1 turns √d into √d / s and keeps both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base import Floats, Ints
from manifoldknn.base.csr import kept_entries, row_maxima
from manifoldknn.graph.together import Alone
from manifoldknn.graph.weights import row_logsumexp
from manifoldknn.walk.aggregates import restricted
from manifoldknn.walk.elimination import Elimination, Round
from manifoldknn.walk.levels import Columns, Solution
from manifoldknn.walk.normalized import NormalizedGraph, add_log_products
from manifoldknn.walk.parts import solve_by_parts

_NARROW = 300.0  # range of logarithms in a row that floats hold easily, neighbours included
_LEAST_SHARE = 0.05  # of rows that a round must take out to be worth another
_DENSEST = 2.0  # growth of entries per row up to which rows are eliminated


@dataclass(frozen=True)
class ReducedGraph:
    """What is left of a graph after rounds of elimination, and the way back."""

    core: NormalizedGraph  # the smaller system
    rows: Ints  # of the whole graph that it holds, in its order: neighbours near each other
    log_scale: Floats  # log s for each of them: their unknowns were divided by s
    rounds: tuple[Round, ...]  # what was taken out, in order
    log_degrees: Floats  # logarithms of D, of all rows

    @property
    def n_samples(self) -> int:
        """Number of rows of the whole graph."""
        return len(self.log_degrees)

    @property
    def together(self) -> Alone:
        """Who shares the rows of the core."""
        return self.core.together

    def to_core(self, columns: Columns) -> Columns:
        """Return right-hand sides as the core sees them: eliminated rows hand theirs on."""
        at = self.places[columns.rows]
        if (at >= 0).all():
            return replace(columns, rows=at, log_values=columns.log_values + self.log_scale[at])
        everyone, n_columns = np.arange(self.n_samples), columns.n_columns
        log_b = columns.log_sources(everyone, np.arange(n_columns), self.n_samples)
        for step in self.rounds:
            handed = sparse.csr_array(step.log_terms.T)
            logs, place = handed.data.copy(), step.rows[handed.indices]
            for column in range(n_columns):
                handed.data = logs + log_b[place, column]
                log_b[:, column] = np.logaddexp(log_b[:, column], row_logsumexp(handed))
        rows, cols = np.nonzero(np.isfinite(log_b[self.rows]))
        values = log_b[self.rows[rows], cols] + self.log_scale[rows]
        return replace(columns, rows=rows, cols=cols, log_values=values)

    @cached_property
    def places(self) -> Ints:
        """Where each row of the whole graph stands in the core; -1 if it was eliminated."""
        place = np.full(self.n_samples, -1, dtype=np.intp)
        place[self.rows] = np.arange(len(self.rows))
        return place

    def from_core(self, log_core: Floats, rows: Ints | None = None) -> Floats:
        """Return logarithms of all rows, or of those wanted, given those of the core's solution.

        Rows of the core alone cost nothing.
        """
        if rows is not None:
            at = self.places[rows]
            if (at >= 0).all():
                return np.asarray(log_core[at] + self.log_scale[at, None])
            return self.from_core(log_core)[rows]
        out = np.full((self.n_samples, log_core.shape[1]), -np.inf)
        out[self.rows] = log_core + self.log_scale[:, None]
        finite = np.isfinite(log_core)
        smallest = np.where(finite, log_core, np.inf).min(axis=1, initial=np.inf)
        largest = np.where(finite, log_core, -np.inf).max(axis=1, initial=-np.inf)
        if (largest - smallest).max(initial=0.0) < _NARROW:
            self._substitute_relative(out)
        else:
            self._substitute_logarithms(out)
        return out

    def _substitute_relative(self, log_x: Floats) -> None:
        """Fill in eliminated rows, each row of numbers on a scale of its own."""
        shift = log_x.max(axis=1)
        values = log_x - np.where(np.isneginf(shift), 0.0, shift)[:, None]
        np.exp(values, out=values)
        for step in reversed(self.rounds):
            terms = step.log_terms.copy()
            counts = np.diff(terms.indptr)
            terms.data = terms.data + shift[terms.indices]
            largest = row_maxima(terms, -np.inf)
            finite = np.where(np.isneginf(largest), 0.0, largest)
            terms.data = np.exp(terms.data - np.repeat(finite, counts))
            sums = terms @ values
            top = sums.max(axis=1)
            values[step.rows] = sums / np.where(top > 0, top, 1.0)[:, None]
            with np.errstate(divide="ignore"):
                shift[step.rows] = largest + np.log(top)
                np.log(sums, out=sums)
            sums += finite[:, None]
            log_x[step.rows] = sums

    def _substitute_logarithms(self, log_x: Floats) -> None:
        """Fill in eliminated rows where the numbers of a row fit no common scale."""
        for step in reversed(self.rounds):
            terms = step.log_terms
            place = np.repeat(np.arange(len(step.rows)), np.diff(terms.indptr))
            found = np.full((len(step.rows), log_x.shape[1]), -np.inf)
            add_log_products(place, terms.indices, terms.data, log_x, found)
            log_x[step.rows] = found


def reduced_graph(graph: NormalizedGraph, sources: Ints, alpha: float) -> ReducedGraph:
    """Eliminate rows as long as the smaller system is cheaper to iterate: two rounds, usually.

    Right-hand sides are 0 in all rows but `sources`, which stay. A round costs a sparse product,
    O(rows · neighbours²).
    """
    stays = graph.group >= 0
    stays[sources] = True
    stays[graph.together.shared_rows()] = True
    elimination = Elimination(graph.log_s, stays, alpha)
    most = _DENSEST * elimination.density
    while elimination.density < most and elimination.eliminate() > _LEAST_SHARE:
        pass
    log_scale = -0.5 * np.log(elimination.diagonal)
    rows, log_s = elimination.rows, elimination.weights  # taken over, nobody else needs them
    log_s.data = np.log(log_s.data)
    weak = sparse.coo_array(elimination.weak[rows][:, rows])
    if weak.nnz:
        log_s.sort_indices()
        log_s = log_sum(log_s, weak.row, weak.col, weak.data)
    # Neighbours that stand near each other are found in the cache; the halo stays behind.
    order = csgraph.reverse_cuthill_mckee(log_s, symmetric_mode=True)
    is_own = rows[order] < graph.together.own(graph.n_samples)
    own = rows[order[is_own]]
    order = np.concatenate([order[is_own], np.sort(order[~is_own])])
    _, together = graph.together.restricted(own)
    log_s, rows, log_scale = log_s[order][:, order], rows[order], log_scale[order]
    log_s.sort_indices()
    if len(own) < len(rows):
        log_s = kept_entries(log_s, np.arange(log_s.nnz) < log_s.indptr[len(own)])
    log_scale = together.halo(log_scale)
    counts = np.diff(log_s.indptr)
    log_s.data = log_s.data + log_scale[log_s.indices] + np.repeat(log_scale, counts)
    log_s.data -= np.log(alpha)
    core = NormalizedGraph.of_parts(
        log_s, graph.log_degrees[rows] - 2.0 * log_scale, graph.group[rows], together
    )
    core.levels, core.n_jobs = restricted(graph.levels, own), graph.n_jobs
    return ReducedGraph(core, rows, log_scale, tuple(elimination.rounds), graph.log_degrees)


def solve_columns(
    graph: NormalizedGraph | ReducedGraph, columns: Columns, *, alpha: float, tol: float,
    max_iter: int, reference: Floats | None = None, rows: Ints | None = None,
    start: Floats | None = None,
) -> Solution:  # fmt: skip
    """Solve (I - αS) x = b so that every row is accurate, and return log x; see `solve_by_levels`.

    A reduced graph must have been made for this `alpha`, and have kept the `rows` that are wanted,
    or, if that is all, those where b is not 0. An eliminated row is a nonnegative combination of
    others, and so are its errors.
    """
    accuracy: dict[str, Any] = {"alpha": alpha, "tol": tol, "max_iter": max_iter}
    core = graph if isinstance(graph, NormalizedGraph) else graph.core
    wanted = None
    if rows is not None:
        at = rows if isinstance(graph, NormalizedGraph) else graph.places[rows]
        if core.together.all((at >= 0).all()):
            wanted = np.zeros(core.n_samples, dtype=bool)
            wanted[at] = True
    if isinstance(graph, NormalizedGraph):
        found = solve_by_parts(
            graph, columns, reference=reference, wanted=wanted, start=start, **accuracy
        )
        return found if rows is None else replace(found, log_values=found.log_values[rows])
    if reference is not None:
        reference = reference[:, graph.rows] - graph.log_scale
    if start is not None:
        start = start[graph.rows] - graph.log_scale[:, None]
    found = solve_by_parts(
        core, graph.to_core(columns), reference=reference, wanted=wanted, start=start, **accuracy
    )
    return replace(found, log_values=graph.from_core(found.log_values, rows))


def log_sum(a: Any, row: Ints, col: Ints, log_values: Floats) -> Any:
    """Return log(exp(a) + exp(b)) for a CSR matrix and some entries b, each place named once.

    Costs a copy of `a`, whose indices must be sorted, and O(b log a).
    """
    n = a.shape[1]
    order = np.lexsort((col, row))
    row, col, log_values = row[order], col[order], log_values[order]
    rows = np.unique(row)
    starts, counts = a.indptr[rows].astype(np.intp), np.diff(a.indptr)[rows]
    before = np.cumsum(counts) - counts
    there = np.arange(counts.sum()) + np.repeat(starts - before, counts)  # entries of these rows
    keys = np.repeat(rows.astype(np.int64), counts) * n + a.indices[there]
    key = row.astype(np.int64) * n + col
    at = np.searchsorted(keys, key)
    known = np.zeros(len(key), dtype=bool)
    inside = at < len(keys)
    known[inside] = keys[at[inside]] == key[inside]
    place = np.searchsorted(rows, row)
    place = starts[place] + at - before[place]
    new = place[~known]
    data = np.insert(a.data, new, log_values[~known])
    old = place[known]
    moved = old + np.searchsorted(new, old, side="right")
    data[moved] = np.logaddexp(data[moved], log_values[known])
    indptr = a.indptr + np.searchsorted(row[~known], np.arange(n + 1)).astype(a.indptr.dtype)
    return sparse.csr_array(
        (data, np.insert(a.indices, new, col[~known].astype(a.indices.dtype)), indptr),
        shape=a.shape,
    )
