"""S = D^-½ W D^-½ with entries as logarithms, its connected parts, and A of some rows to solve."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.csr import assembled, kept_entries, narrowest
from manifoldknn.base.kernels import NUMPY
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.aggregates import Levels, restricted
from manifoldknn.walk.factor import DenseInverse, FactorizedInverse
from manifoldknn.walk.iteration import LOG_CUT, Parts, SparseRestriction

Restriction = SparseRestriction | FactorizedInverse | DenseInverse

_CHUNK = 1 << 21


@dataclass(frozen=True)
class Division:
    """A graph in parts, and the edges between them, in both directions."""

    inside: NormalizedGraph  # without those edges
    part: Ints  # of every row
    n_parts: int
    rows: Ints  # with an edge to another part, ascending
    place: Ints  # of an edge's row among these, ascending
    other: Ints  # the row at its other end
    log_values: Floats  # log S of it


@dataclass
class _Known:
    """What a graph remembers: its parts, A of all rows for an α, and its division at a limit."""

    parts: Parts | None = None
    whole: tuple[float, Restriction] | None = None
    division: tuple[float, Division | None] | None = None


class NormalizedGraph:
    """S = D^-½ W D^-½ with entries as logarithms, and its restrictions.

    `factorize` says whether restrictions of a sparse graph are solved by factorisation; `levels`,
    which may be empty, hold rows that belong together, for long walks; `n_jobs` threads share
    products with all rows. Machines that are `together` share the rows; those of the halo come
    last, and a restriction has no entries of theirs.
    """

    kernels = NUMPY
    together: Alone = ALONE

    def __init__(self, graph: ConstrainedGraph) -> None:
        self.factorize = False
        self.levels: Levels = ()
        self.n_jobs: int | None = 1
        self.together = graph.together
        self.log_degrees = graph.log_degrees()
        self.n_samples = graph.n_samples
        self.is_sparse = graph.is_sparse
        half = 0.5 * self.log_degrees
        self.log_s: Any
        if graph.is_sparse:
            log_s = graph.log_weights.copy()
            log_s.data = log_s.data - half[log_s.indices] - np.repeat(half, np.diff(log_s.indptr))
            self.log_s = log_s
        else:
            self.log_s = graph.log_weights - half[:, None]
            self.log_s -= half
        linked = graph.must_links_per_row() > 0
        self.group = np.where(linked, graph.must_link, -1)
        self.known = _Known()

    def going(
        self, *, factorize: bool = False, levels: Levels = (), n_jobs: int | None = 1
    ) -> NormalizedGraph:
        """Return the same graph, prepared for a way of solving with it."""
        graph = copy(self)
        graph.factorize, graph.levels, graph.n_jobs = factorize, levels, n_jobs
        graph.known = _Known(self.known.parts)
        return graph

    @classmethod
    def of_parts(
        cls, log_s: Any, log_degrees: Floats, group: Ints, together: Alone = ALONE
    ) -> NormalizedGraph:
        """Return the graph with a given sparse log S, log D and must-link classes."""
        graph = object.__new__(cls)
        graph.log_s, graph.log_degrees, graph.group = log_s, log_degrees, group
        graph.n_samples, graph.is_sparse, graph.factorize = len(log_degrees), True, False
        graph.levels, graph.n_jobs, graph.together = (), 1, together
        graph.known = _Known()
        return graph

    def parts(self, rows: Ints) -> Parts:
        """Return connected parts of some ascending rows; those of all rows are kept.

        Edges are passed over, and counted, if their entry in S is below ``exp(LOG_CUT)``.
        """
        together = self.together
        everything = together.all(len(rows) == together.own(self.n_samples))
        if everything and self.known.parts is not None:
            return self.known.parts
        if self.is_sparse:
            ghosts, left = together.restricted(rows)
            s = self._sub(rows, ghosts)
            seen = s.data > LOG_CUT
            n_cut = int(together.sum(np.sum(~seen)))
            s = s if seen.all() else kept_entries(s, seen)
            part = _connected(s, self.group[rows], left)
            order = np.argsort(part, kind="stable")
            found = Parts(rows[order], part[order], n_cut, together=together)
        else:
            found = Parts(rows, np.zeros(len(rows), dtype=np.intp), 0)
        if everything:
            self.known.parts = found
        return found

    def divided(self, log_least: float) -> Division | None:
        """Return a sparse graph in the parts that entries of S above a limit hold together.

        Edges within a part stay, however weak. None if there is one part, or none is joined to
        another. What was found last is kept.
        """
        known = self.known.division
        if known is None or known[0] != log_least:
            known = self.known.division = log_least, self._divided(log_least)
        return known[1]

    def _divided(self, log_least: float) -> Division | None:
        strong, together = self.log_s.data > log_least, self.together
        if together.all(strong.all()):
            return None
        own = np.arange(together.own(self.n_samples))
        log_s = kept_entries(self.log_s, strong)
        log_s = log_s if len(own) == self.n_samples else log_s[own]
        part = together.halo(_connected(log_s, self.group[own], together))
        short = part.astype(narrowest(len(part)))  # entries may be very many
        within = np.repeat(short, np.diff(self.log_s.indptr)) == short[self.log_s.indices]
        if together.all(within.all()):
            return None
        inside = NormalizedGraph.of_parts(
            kept_entries(self.log_s, within), self.log_degrees, self.group, together
        )
        inside.levels, inside.n_jobs = self.levels, self.n_jobs
        weak = np.flatnonzero(~within)
        row = np.searchsorted(self.log_s.indptr, weak, side="right") - 1
        here = row < len(own)  # those of the halo are told elsewhere
        weak, row = weak[here], row[here]
        rows, place = np.unique(row, return_inverse=True)
        return Division(
            inside, part, int(together.max(part.max(initial=-1))) + 1, rows,
            place.astype(np.intp), self.log_s.indices[weak], self.log_s.data[weak],
        )  # fmt: skip

    def restrict(self, rows: Ints, alpha: float) -> Restriction:
        """Return A_UU for U = rows; the one for all rows, in the order of `parts`, is kept."""
        parts, whole = self.known.parts, self.known.whole
        everything = parts is not None and rows is parts.rows
        if everything and whole is not None and whole[0] == alpha:
            return whole[1]
        half = 0.5 * self.log_degrees[rows]
        restriction: Restriction
        if self.is_sparse:
            ghosts, left = self.together.restricted(rows)
            s = self._sub(rows, ghosts)
            s.data = np.exp(s.data)
            linked = np.flatnonzero(self.group[rows] >= 0)
            group = self.group[rows[linked]]
            if self.factorize:
                scale, group = np.exp(-half[linked]), np.unique(group, return_inverse=True)[1]
                restriction = FactorizedInverse(s, linked, group, scale, alpha)
            else:
                levels = restricted(self.levels, rows)
                restriction = SparseRestriction(
                    s, linked, group, half, alpha, levels, self.n_jobs, left
                )
        else:
            s = self.log_s[np.ix_(rows, rows)]
            restriction = DenseInverse(np.exp(s, out=s), alpha)
        if everything:
            self.known.whole = alpha, restriction
        return restriction

    def boundary(self, rows: Ints, final: Bools, log_x: Floats) -> Floats:
        """Return log (S_UR x_R) for U = rows and R the final rows."""
        out = np.full((len(rows), log_x.shape[1]), -np.inf)
        if self.is_sparse:
            inside = self.log_s[rows]
            crossing = final[inside.indices]
            place = np.repeat(np.arange(len(rows)), np.diff(inside.indptr))[crossing]
            add_log_products(place, inside.indices[crossing], inside.data[crossing], log_x, out)
            self._clique_boundary(rows, final, log_x, out)
            return out
        known = np.flatnonzero(final)
        block = self.log_s[np.ix_(rows, known)]
        for column in range(log_x.shape[1]):
            out[:, column] = np.logaddexp.reduce(block + log_x[known, column], axis=1)
        return out

    def _clique_boundary(self, rows: Ints, final: Bools, log_x: Floats, out: Floats) -> None:
        half = 0.5 * self.log_degrees
        inside = np.flatnonzero(self.group[rows] >= 0)
        n_groups = int(self.together.max(self.group.max(initial=-1))) + 1
        totals = np.full((n_groups, log_x.shape[1]), -np.inf)
        for group in np.unique(self.group[final & (self.group >= 0)]):
            known = np.flatnonzero(final & (self.group == group))
            totals[group] = np.logaddexp.reduce(log_x[known] - half[known, None], axis=0)
        totals = self.together.log_sum(totals)
        terms = totals[self.group[rows[inside]]] - half[rows[inside], None]
        out[inside] = np.logaddexp(out[inside], terms)

    def _sub(self, rows: Ints, ghosts: Ints) -> Any:
        """Return log S of some rows, and of what is left of the halo in further columns."""
        if len(rows) == self.log_s.shape[0] and (np.diff(rows) == 1).all():
            whole = self.log_s
            return assembled(whole.data.copy(), whole.indices, whole.indptr, whole.shape)
        return self.log_s[rows][:, np.concatenate([rows, ghosts])]


def _connected(s: Any, group: Ints, together: Alone) -> Ints:
    """Return the connected part of every row; must-links, by group, connect as edges do.

    The stored entries of the symmetric `s` are edges, whatever their values.
    """
    # Of a symmetric matrix; others ("weak") would be transposed first.
    here = s if s.shape[0] == s.shape[1] else s[:, : s.shape[0]]
    n_found, part = csgraph.connected_components(here, directed=True, connection="strong")
    linked = np.flatnonzero(group >= 0)
    linked = linked[np.argsort(group[linked], kind="stable")]
    same = group[linked[1:]] == group[linked[:-1]]
    ends = part[linked[:-1][same]], part[linked[1:][same]]
    chain = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n_found, n_found))
    part = csgraph.connected_components(chain.tocsr(), directed=False)[1][part]
    first = np.unique(part, return_index=True)[1]
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))  # in the order of their first rows
    return together.joined(number[part], s, group)


def add_log_products(
    rows: Ints, cols: Ints, log_values: Floats, log_x: Floats, out: Floats
) -> None:
    """Write log (M x) for a sparse M into the rows of `out` in which M has entries.

    `rows`, ascending, and `cols` are the places of the entries of M; other rows are left as they
    are.
    """
    for part in _row_chunks(rows, log_x.shape[1]):
        terms = log_values[part, None] + log_x[cols[part]]
        runs = NUMPY.runs_of(rows[part])
        out[rows[part][runs.offsets[:-1]]] = runs.log_sum(terms)


def _row_chunks(place: Ints, n_columns: int) -> list[slice]:
    """Slices of a sorted array, each a bounded number of whole runs."""
    step = max(1, _CHUNK // max(1, n_columns))
    bounds = [0]
    while bounds[-1] < len(place):
        last = min(bounds[-1] + step, len(place)) - 1
        bounds.append(int(np.searchsorted(place, place[last], side="right")))
    return [slice(a, b) for a, b in pairwise(bounds)]
