"""S = D^-½ W D^-½ with entries as logarithms, its connected parts and restrictions.

Written once for the processor and for a graphics card. What each does with a sparse matrix in its
own way are kernels: `WalkKernels` here, `manifoldknn.device.walk.kernels` there.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base.csr import kept_entries
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.aggregates import GroupKernels, Levels, restricted
from manifoldknn.walk.factor import DenseInverse, FactorizedInverse
from manifoldknn.walk.restriction import LOG_CUT, Parts, SparseRestriction


class WalkKernels(GroupKernels):
    """What the walk asks of sparse matrices, by SciPy: of `indptr`, `indices` and `data`."""

    def sub(self, matrix: Any, rows: Any) -> Any:
        """Return some rows and the same columns, in their order."""
        if len(rows) == matrix.shape[0] and (np.diff(rows) == 1).all():
            return matrix.copy()
        return matrix[rows][:, rows]

    def some_rows(self, matrix: Any, rows: Any) -> Any:
        """Return some rows."""
        return matrix[rows]

    def kept(self, matrix: Any, chosen: Any) -> Any:
        """Return the entries of a mask."""
        return kept_entries(matrix, chosen)

    def connected(self, matrix: Any, group: Any) -> Any:
        """Return the connected part of every row, numbered in the order of their first rows.

        Entries of the symmetric matrix are edges, whatever their values; must-links, by `group`,
        connect as edges do.
        """
        # Of a symmetric matrix; others ("weak") would be transposed first.
        n_found, part = csgraph.connected_components(matrix, directed=True, connection="strong")
        linked = np.flatnonzero(group >= 0)
        linked = linked[np.argsort(group[linked], kind="stable")]
        same = group[linked[1:]] == group[linked[:-1]]
        ends = part[linked[:-1][same]], part[linked[1:][same]]
        chain = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n_found, n_found))
        part = csgraph.connected_components(chain.tocsr(), directed=False)[1][part]
        first = np.unique(part, return_index=True)[1]
        number = np.empty(len(first), dtype=np.intp)
        number[np.argsort(first)] = np.arange(len(first))
        return np.asarray(number[part])

    def restriction(self, graph: NormalizedGraph, rows: Any, alpha: float) -> Any:
        """Return what solves with A_UU for U = rows: see `manifoldknn.walk.levels`."""
        if not graph.is_sparse:
            s = graph.log_s[np.ix_(rows, rows)]
            return DenseInverse(np.exp(s, out=s), alpha)
        s = self.sub(graph.log_s, rows)
        s.data = np.exp(s.data)
        half = 0.5 * graph.log_degrees[rows]
        linked = np.flatnonzero(graph.group[rows] >= 0)
        group = np.unique(graph.group[rows[linked]], return_inverse=True)[1].astype(np.intp)
        if graph.factorize:
            return FactorizedInverse(s, linked, group, np.exp(-half[linked]), alpha)
        levels = restricted(graph.levels, rows)
        return SparseRestriction(s, linked, group, half, alpha, levels, graph.n_jobs)


WALK = WalkKernels()


@dataclass(frozen=True)
class Division:
    """A graph in parts, and the edges between them.

    Attributes
    ----------
    inside : NormalizedGraph
        Without those edges.
    part : array of shape (n_samples,)
        The part of every row.
    n_parts : int
        How many there are.
    rows : array of int
        Rows with an edge to another part, ascending.
    place, other, log_values : array
        Edges between parts, in both directions: position in `rows`, ascending, the row at the
        other end, and log S.
    """

    inside: NormalizedGraph
    part: Any
    n_parts: int
    rows: Any
    place: Any
    other: Any
    log_values: Any


@dataclass
class _Known:
    """What a graph remembers: its parts, A of all rows for an α, and its division at a limit."""

    parts: Parts | None = None
    whole: tuple[float, Any] | None = None
    division: tuple[float, Division | None] | None = None


class NormalizedGraph:
    """S = D^-½ W D^-½ with entries as logarithms, and its restrictions.

    `factorize` says whether restrictions of a sparse graph are solved by factorisation; `levels`,
    which may be empty, hold rows that belong together, for long walks; `n_jobs` threads share
    products with all rows.
    """

    def __init__(self, graph: ConstrainedGraph) -> None:
        log_degrees = graph.log_degrees()
        half = 0.5 * log_degrees
        log_s: Any
        if graph.is_sparse:
            log_s = graph.log_weights.copy()
            log_s.data = log_s.data - half[log_s.indices] - np.repeat(half, np.diff(log_s.indptr))
        else:
            log_s = graph.log_weights - half[:, None]
            log_s -= half
        group = np.where(graph.must_links_per_row() > 0, graph.must_link, -1)
        self._set(log_s, log_degrees, group, WALK, graph.is_sparse)

    def _set(
        self, log_s: Any, log_degrees: Any, group: Any, kernels: WalkKernels, is_sparse: bool
    ) -> None:
        self.log_s, self.log_degrees, self.group, self.kernels = log_s, log_degrees, group, kernels
        self.n_samples, self.is_sparse, self.known = len(log_degrees), is_sparse, _Known()
        self.factorize = False
        self.levels: Levels = ()
        self.n_jobs: int | None = 1

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
        cls, log_s: Any, log_degrees: Any, group: Any, kernels: WalkKernels = WALK
    ) -> NormalizedGraph:
        """Return the graph with a given sparse log S, log D and must-link classes."""
        graph = cls.__new__(cls)
        cls._set(graph, log_s, log_degrees, group, kernels, is_sparse=True)
        return graph

    def parts(self, rows: Any) -> Parts:
        """Return connected parts of some ascending rows; those of all rows are kept.

        Edges are passed over, and counted, if their entry in S is below ``exp(LOG_CUT)``.
        """
        everything, kernels = len(rows) == self.n_samples, self.kernels
        if everything and self.known.parts is not None:
            return self.known.parts
        if self.is_sparse:
            s = self.log_s if everything else kernels.sub(self.log_s, rows)
            seen = s.data > LOG_CUT
            n_cut = len(seen) - int(seen.sum())
            part = kernels.connected(kernels.kept(s, seen) if n_cut else s, self.group[rows])
            order = kernels.order(part)
            found = Parts(rows[order], part[order], n_cut, kernels)
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
        strong, kernels = self.log_s.data > log_least, self.kernels
        if strong.all():
            return None
        part = kernels.connected(kernels.kept(self.log_s, strong), self.group)
        row = kernels.owners(self.log_s)
        within = part[row] == part[self.log_s.indices]
        if within.all():
            return None
        inside = self.of_parts(
            kernels.kept(self.log_s, within), self.log_degrees, self.group, kernels
        )
        rows, place = kernels.xp.unique(row[~within], return_inverse=True)
        return Division(
            inside.going(levels=self.levels, n_jobs=self.n_jobs), part, int(part.max()) + 1, rows,
            place, self.log_s.indices[~within], self.log_s.data[~within],
        )  # fmt: skip

    def restrict(self, rows: Any, alpha: float) -> Any:
        """Return A_UU for U = rows; the one for all rows, in the order of `parts`, is kept."""
        parts, whole = self.known.parts, self.known.whole
        everything = parts is not None and rows is parts.rows
        if everything and whole is not None and whole[0] == alpha:
            return whole[1]
        found = self.kernels.restriction(self, rows, alpha)
        if everything:
            self.known.whole = alpha, found
        return found

    def boundary(self, rows: Any, final: Any, log_x: Any) -> Any:
        """Return log (S_UR x_R) for U = rows and R the final rows."""
        out = self.kernels.full((len(rows), log_x.shape[1]), -np.inf)
        if self.is_sparse:
            inside = self.kernels.some_rows(self.log_s, rows)
            crossing = final[inside.indices]
            add_log_products(
                self.kernels.owners(inside)[crossing], inside.indices[crossing],
                inside.data[crossing], log_x, out, self.kernels,
            )  # fmt: skip
            self._clique_boundary(rows, final, log_x, out)
            return out
        known = np.flatnonzero(final)
        block = self.log_s[np.ix_(rows, known)]
        for column in range(log_x.shape[1]):
            out[:, column] = np.logaddexp.reduce(block + log_x[known, column], axis=1)
        return out

    def _clique_boundary(self, rows: Any, final: Any, log_x: Any, out: Any) -> None:
        kernels, half = self.kernels, 0.5 * self.log_degrees
        inside = kernels.places(self.group[rows] >= 0)
        known = kernels.places(final & (self.group >= 0))
        if not len(inside) or not len(known):
            return
        known = known[kernels.order(self.group[known])]
        groups = self.group[known]
        runs = kernels.runs_of(groups)
        total = runs.log_sum(log_x[known] - half[known, None])
        met, at = kernels.contains(groups[runs.offsets[:-1]], self.group[rows[inside]])
        members = inside[met]
        terms = total[at[met]] - half[rows[members], None]
        out[members] = kernels.xp.logaddexp(out[members], terms)


def add_log_products(
    rows: Any, cols: Any, log_values: Any, log_x: Any, out: Any, kernels: Kernels = NUMPY
) -> None:
    """Write log (M x) for a sparse M into the rows of `out` in which M has entries.

    `rows`, ascending, and `cols` are the places of the entries of M; other rows are left as they
    are.
    """
    step, start = max(1, kernels.terms_at_once // max(1, log_x.shape[1])), 0
    while start < len(rows):
        last = min(start + step, len(rows)) - 1
        # A row is not cut in two.
        end = int(kernels.xp.searchsorted(rows, rows[last : last + 1], side="right")[0])
        terms = log_values[start:end, None] + log_x[cols[start:end]]
        runs = kernels.runs_of(rows[start:end])
        out[rows[start:end][runs.offsets[:-1]]] = runs.log_sum(terms)
        start = end
