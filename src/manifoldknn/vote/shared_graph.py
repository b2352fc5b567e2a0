"""What labels change of a graph, and what they leave: reduced once for a fit and all its folds.

Labels, links by hand and strengthened trees change the weights of pairs *among* the rows T that
they touch, and of no other pair. So rows outside of T are eliminated once, from the graph without
pairs among T, which is *open*. Given the pairs for some labels, whichever are visible, it is
closed,

    (D - αW) on what is left = open part + pairs among T,   added in T×T and on its diagonal,

and terms have one sign: nothing is lost to rounding, however weak the other edges of a label.

Any diagonal may scale a system, K = D₀^-½ (D₀^-½ (D - αW) D₀^-½)⁻¹ D₀^-½. D₀ here are the
degrees of the open graph, which no label changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.csr import assembled, kept_entries
from manifoldknn.base.kernels import NUMPY
from manifoldknn.graph.weights import ConstrainedGraph, dense_row_logsumexp, row_logsumexp
from manifoldknn.walk.choose import Way, prepared_graph
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph, log_sum, reduced_graph

if TYPE_CHECKING:
    from manifoldknn.graph.constrained import GraphRecipe

_FEW = 0.25  # of all rows


@dataclass(frozen=True)
class ReadyGraph:
    """A graph that columns of K can be computed with."""

    ready: NormalizedGraph | ReducedGraph  # for a way; its `log_degrees` are log D₀, its scale
    log_degrees: Floats  # log D
    log_inflow: Floats  # log (Pᵀ·1): how many walkers a row gets if one leaves every row


def ready_graph(
    graph: ConstrainedGraph, stay: Ints, alpha: float, way: Way, *, n_jobs: int | None = 1
) -> ReadyGraph:
    """Return a graph ready for a way, for one set of labels; parameters as in `prepared_graph`."""
    normalized = NormalizedGraph(graph)
    inflow = log_inflow(graph, normalized.log_degrees)
    inflow[graph.together.own(len(inflow)) :] = -np.inf
    ready = prepared_graph(normalized, stay, alpha, way, n_jobs=n_jobs)
    return ReadyGraph(ready, normalized.log_degrees, inflow)


class SharedGraph:
    """What is known of a graph whichever labels are visible: which way to go, and what is reduced.

    If rows that labels touch are few, the graph is reduced once for all: they stay, and every row
    that stays makes each iteration longer. `codes` are class numbers of all labels, -1 where there
    is none. `recipe` then is that of the pairs that `ready` has to be told: those among touched
    rows, or all.
    """

    def __init__(
        self, recipe: GraphRecipe, graph: ConstrainedGraph, codes: Ints, alpha: float, way: Way
    ) -> None:
        self.alpha, self.way, self.recipe = alpha, way, recipe
        self._labeled, most = np.flatnonzero(codes >= 0), _FEW * graph.n_samples
        self._open: OpenGraph | None = None
        together = graph.together
        if way.name == "iterate" and together.all(len(self._labeled) <= most):
            touched = recipe.touched(codes)
            if together.all(len(touched) <= most):
                self._open = OpenGraph(graph, touched, alpha, way)
                self.recipe = recipe.among(touched)

    def ready(self, graph: ConstrainedGraph, *, n_jobs: int | None = 1) -> ReadyGraph:
        """Return the graph of some labels, ready for the way; all labelled rows are in it."""
        if self._open is None:
            return ready_graph(graph, self._labeled, self.alpha, self.way, n_jobs=n_jobs)
        return self._open.closed(pairs_among(graph, self._open.touched), n_jobs=n_jobs)


class OpenGraph:
    """A sparse graph, of any labels, without pairs among some `touched` rows, reduced.

    Rows are ascending, the way is to iterate. It costs what `reduced_graph` does; to close it, a
    pass over the edges that are left.
    """

    def __init__(self, graph: ConstrainedGraph, touched: Ints, alpha: float, way: Way) -> None:
        self.touched = touched
        weights = kept_entries(graph.log_weights, ~_among(graph.log_weights, touched))
        nobody = np.full(graph.n_samples, -1, dtype=np.intp)
        self.together = graph.together
        normalized = NormalizedGraph(ConstrainedGraph(weights, nobody, graph.together))
        self.reduced = reduced_graph(normalized.going(levels=way.levels), touched, alpha)
        self._log_degrees = graph.together.halo(row_logsumexp(weights))
        others = ~NUMPY.mask(touched, graph.n_samples)
        shares = kept_entries(weights, others[weights.indices])
        shares.data = shares.data - normalized.log_degrees[shares.indices]
        self._inflow = row_logsumexp(shares)  # from rows that no label touches
        self._from_touched = sparse.csr_array(weights[touched].T)

    def closed(self, pairs: ConstrainedGraph, *, n_jobs: int | None = 1) -> ReadyGraph:
        """Return the whole graph, reduced to touched rows and what was not eliminated.

        `pairs` are those among touched rows, and must-links. Products take `n_jobs` threads, all
        cores if None.
        """
        touched, core = self.touched, self.reduced.core
        with np.errstate(divide="ignore"):
            links = np.log(pairs.must_links_per_row()[touched])
        more = np.logaddexp(row_logsumexp(pairs.log_weights)[touched], links)
        alone = np.isneginf(self._log_degrees[touched])  # but for these pairs
        log_degrees = np.where(np.isneginf(self._log_degrees), 0.0, self._log_degrees)
        log_degrees[touched] = _sum_or_one(self._log_degrees[touched], more)
        log_degrees = self.together.halo(log_degrees)
        at = self.reduced.places[touched]
        diagonal = core.log_degrees.copy()
        diagonal[at] = _sum_or_one(np.where(alone, -np.inf, diagonal[at]), more)
        diagonal = core.together.halo(diagonal)
        shift = 0.5 * (core.log_degrees - diagonal)
        log_s = core.log_s
        data = shift[log_s.indices]  # in place from here on: entries may be very many
        data += np.repeat(shift, np.diff(log_s.indptr))
        data += log_s.data
        log_s = assembled(data, log_s.indices, log_s.indptr, log_s.shape)
        new = sparse.coo_array(pairs.log_weights)
        if new.nnz:
            row, col = (self.reduced.places[place] for place in (new.row, new.col))
            here = row < core.together.own(core.n_samples)
            row, col, logs = row[here], col[here], new.data[here]
            log_s = log_sum(log_s, row, col, logs - 0.5 * (diagonal[row] + diagonal[col]))
        group = np.full(core.n_samples, -1, dtype=np.intp)
        group[at] = np.where(np.isfinite(links), pairs.must_link[touched], -1)
        closed = NormalizedGraph.of_parts(log_s, diagonal, group, core.together)
        closed = closed.going(levels=core.levels, n_jobs=n_jobs)
        ready = replace(self.reduced, core=closed, log_scale=self.reduced.log_scale + shift)
        return ReadyGraph(ready, log_degrees, self._whole_inflow(pairs, log_degrees))

    def _whole_inflow(self, pairs: ConstrainedGraph, log_degrees: Floats) -> Floats:
        """Return log (Pᵀ·1), which touched rows have a part in by their degrees alone."""
        shares = self._from_touched.copy()
        shares.data = shares.data - log_degrees[self.touched][shares.indices]
        inflow = np.logaddexp(self._inflow, row_logsumexp(shares))
        inflow = np.logaddexp(inflow, log_inflow(pairs, log_degrees))
        inflow[self.together.own(len(inflow)) :] = -np.inf
        return inflow


def pairs_among(graph: ConstrainedGraph, rows: Ints) -> ConstrainedGraph:
    """Return the pairs of a sparse graph that have both ends among some rows, and must-links."""
    inside = _among(graph.log_weights, rows)
    weights = kept_entries(graph.log_weights, inside)
    return ConstrainedGraph(weights, graph.must_link, graph.together)


def _among(matrix: Any, rows: Ints) -> Bools:
    """Tell which entries of a CSR matrix have row and column among some."""
    chosen = NUMPY.mask(rows, matrix.shape[0])
    return np.repeat(chosen, np.diff(matrix.indptr)) & chosen[matrix.indices]


def log_inflow(graph: ConstrainedGraph, log_degrees: Floats) -> Floats:
    """Return log (Pᵀ·1): how many walkers a row gets if one leaves every row; -inf without edges.

    `log_degrees` are log D.
    """
    if not graph.is_sparse:
        return dense_row_logsumexp(graph.log_weights, -log_degrees)
    shares = graph.log_weights.copy()
    shares.data = shares.data - log_degrees[shares.indices]
    inflow = row_logsumexp(shares)
    linked = np.flatnonzero(graph.must_links_per_row())
    group, own = graph.must_link[linked], np.exp(-log_degrees[linked])
    most = int(graph.together.max(graph.must_link.max(initial=-1)))
    if most >= 0:  # degrees of linked rows are 1 and more
        others = graph.together.sum(np.bincount(group, own, most + 1))[group] - own
        inflow[linked] = np.logaddexp(inflow[linked], np.log(others))
    return inflow


def _sum_or_one(a: Floats, b: Floats) -> Array:
    """Return log(exp(a) + exp(b)), and 0 where that is nothing: nobody then divides by it."""
    total = np.logaddexp(a, b)
    return np.where(np.isneginf(total), 0.0, total)
