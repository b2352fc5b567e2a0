"""The walk from all labels, and what a vote needs of it (equations 1, 4 and 5).

By class, C + 1 columns (see `densities`); by label, a column each, in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.base.progress import countdown
from manifoldknn.base.threads import in_threads
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.vote.densities import FIRST_REACH, class_densities
from manifoldknn.vote.shared_graph import ReadyGraph
from manifoldknn.vote.similarities import Similarities
from manifoldknn.walk.choose import chosen_way, prepared_graph
from manifoldknn.walk.label_columns import block_width, log_label_weights
from manifoldknn.walk.levels import Columns
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph, solve_columns

_ROUGH = 0.1  # accuracy of what only tells the scale of a row


@dataclass(frozen=True)
class Walked:
    """What the walk says of every row, ready for the vote."""

    similarities: Similarities  # to every class, or to every labelled sample
    log_sums: Floats | None  # log s of every label where classes vote
    n_iter: int  # products with the graph that were needed
    converged: bool  # whether every row reached the accuracy asked for
    reach: float = np.inf  # how far below the largest of a row class densities are accurate


def walk_by_class(
    graph: ReadyGraph, labeled: Ints, codes: Ints, n_classes: int, alpha: float, *, tol: float,
    max_iter: int, reach: float = FIRST_REACH, start: Floats | None = None,
) -> Walked:  # fmt: skip
    """Return the density of every class at every row, as `class_densities`, in single precision."""
    found = class_densities(
        graph, labeled, codes, n_classes, alpha, tol=tol, max_iter=max_iter, reach=reach,
        start=start,
    )  # fmt: skip
    similarities = Similarities.from_logarithms(found.log_values, np.float32)
    return Walked(similarities, found.log_sums, found.n_iter, found.converged, found.reach)


def walk_by_label(
    graph: ConstrainedGraph, labeled: Ints, alpha: float, *, tol: float, max_iter: int,
    n_jobs: int | None = None,
) -> Walked:  # fmt: skip
    """Return w̄ between every row and every labelled sample, as `walk_weights`: O(n·l) memory.

    Blocks of columns are the same for any number of threads, and so are the weights.
    """
    normalized = NormalizedGraph(graph)
    way = chosen_way(normalized, alpha, n_columns=len(labeled))
    ready = prepared_graph(normalized, labeled, alpha, way)
    blocks = [np.arange(len(labeled))]  # one factorisation serves all columns of a dense graph
    width = block_width(graph.n_samples)
    if way.name != "dense" and len(labeled) > width:
        # An even number of blocks, so that two threads end together.
        blocks = np.array_split(np.arange(len(labeled)), 2 * -(-len(labeled) // (2 * width)))
    reference, n_iter, converged = None, 0, True
    if len(blocks) > 1:
        reference, n_iter, converged = _scales(ready, labeled, alpha, max_iter)
    logs = np.empty((graph.n_samples, len(labeled)))

    def solve(block: Ints) -> tuple[int, bool]:
        found = log_label_weights(
            ready, labeled[block], alpha, tol=tol, max_iter=max_iter, reference=reference
        )
        logs[:, block] = found.log_values
        return found.n_iter, found.converged

    results = in_threads(solve, blocks, n_jobs if way.name == "iterate" else 1)
    for iterations, success in countdown(results, len(blocks), "blocks of labels"):
        n_iter, converged = n_iter + iterations, converged and success
    return Walked(Similarities.from_logarithms(logs), None, n_iter, converged)


def _scales(
    graph: NormalizedGraph | ReducedGraph, labeled: Ints, alpha: float, max_iter: int
) -> tuple[Floats, int, bool]:
    """Return how large the largest entry of every row is at least, as each view sees it."""
    half = 0.5 * graph.log_degrees[labeled]
    columns = Columns(
        rows=np.concatenate([labeled, labeled]),
        cols=np.repeat([0, 1], len(labeled)),
        log_values=np.concatenate([half, -half]),
        views=np.where(np.eye(2, dtype=bool), 0.0, -np.inf),
    )
    total = solve_columns(graph, columns, alpha=alpha, tol=_ROUGH, max_iter=max_iter)
    # The largest entry of a row is no less than the mean.
    least = total.log_values.T - np.log(len(labeled)) + np.log1p(-_ROUGH)
    return least, total.n_iter, total.converged
