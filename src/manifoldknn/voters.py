"""Which labelled samples are nearest to every row by the walk (equation 5).

Label columns of the walk are computed in blocks of a few, several blocks at a
time, and of each row only the heaviest weights so far are kept: memory does not
grow with the number of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.factorized_walk import FactorizedWalk
from manifoldknn.graph import ConstrainedGraph
from manifoldknn.heaviest import Heaviest, Selection
from manifoldknn.nearest import NearestLabeled, heaviest_first
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.precision import single_precision_serves, too_small
from manifoldknn.progress import countdown
from manifoldknn.reduction import ReducedGraph
from manifoldknn.split_walk import split_walk
from manifoldknn.threads import in_threads
from manifoldknn.walk import (
    class_columns,
    log_class_weights,
    log_label_weights,
    prepared_graph,
)

_BLOCK = 32  # label columns at a time: two cache lines of single-precision numbers per row
_MANY_ROWS = 1 << 16  # beyond, fewer, so that blocks do not outgrow what else is in memory
_NARROWEST = 8
_FACTOR_BLOCK = 512  # with a factorisation on one scale, where columns are cheap
_FACTOR_ENTRIES = 1 << 23  # but not more than this in a block
_ROUGH = 0.1  # accuracy of what only tells the scale of a row
# A new row combines the weights of its neighbours. All weights are kept where memory allows;
# where it does not, many more than vote.
_ENTRIES_KEPT = 1 << 23
_LEAST_KEPT = 64
_KEPT_PER_VOTER = 4


@dataclass(frozen=True)
class LabelWalk:
    """What the walk says of every row, ready for the vote.

    Attributes
    ----------
    nearest : NearestLabeled
        Voters of every row: labelled samples, or whole classes if `by_class`.
    voter_classes : ndarray of int
        Class number of each voter.
    n_voting : int
        How many of the heaviest voters vote.
    by_class : bool
        Whether all labelled samples vote, so that only class sums were computed.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.
    """

    nearest: NearestLabeled
    voter_classes: NDArray[np.intp]
    n_voting: int
    by_class: bool
    n_iter: int
    converged: bool


def label_walk(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    *,
    n_neighbors: int,
    alpha: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    by_class: bool | None = None,
) -> LabelWalk:
    """Walk from all labelled samples and keep what the vote needs.

    If all labelled samples vote (``n_neighbors >= len(labeled)``) their sums per
    class suffice: 2C columns instead of l.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled, codes : ndarray of int
        Labelled samples and their class numbers.
    n_neighbors : int
        k of the vote.
    alpha, tol, max_iter
        As in `walk_weights`.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    by_class : bool, optional
        Force class sums or single samples; by default, what is cheaper.

    Returns
    -------
    LabelWalk
        Voters and their weights for every row.
    """
    n_labeled, n_classes = len(labeled), int(codes.max()) + 1
    if by_class is None:
        by_class = n_neighbors >= n_labeled > 2 * n_classes
    accuracy: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    if by_class:
        ready = prepared_graph(NormalizedGraph(graph), labeled, alpha, n_columns=2 * n_classes)
        sums = log_class_weights(ready, labeled, codes, n_classes, alpha, **accuracy)
        everyone = np.broadcast_to(np.arange(n_classes), sums.log_values.shape)
        nearest = heaviest_first(sums.log_values, everyone)
        classes = np.arange(n_classes)
        return LabelWalk(nearest, classes, n_classes, True, sums.n_iter, sums.converged)
    n_kept = kept_per_row(graph.n_samples, n_labeled, n_neighbors)
    nearest, n_iter, converged = nearest_labeled(
        graph, labeled, alpha, n_kept, n_jobs=n_jobs, **accuracy
    )
    return LabelWalk(nearest, codes, min(n_neighbors, n_labeled), False, n_iter, converged)


def kept_per_row(n_samples: int, n_labeled: int, n_neighbors: int) -> int:
    """Return how many labelled samples' weights are kept for every row.

    Parameters
    ----------
    n_samples, n_labeled, n_neighbors : int
        Rows, labels and voters.

    Returns
    -------
    int
        All of them up to 8 million weights in total; beyond, the 64 heaviest, or four
        times as many as vote.
    """
    if n_samples * n_labeled <= _ENTRIES_KEPT:
        return n_labeled
    return min(n_labeled, max(_LEAST_KEPT, _KEPT_PER_VOTER * n_neighbors))


def block_width(n_samples: int) -> int:
    """Return how many label columns are walked at a time, by each thread.

    Parameters
    ----------
    n_samples : int
        Number of rows.

    Returns
    -------
    int
        32; beyond 65,000 rows fewer, down to 8 from 104,000 rows on. Between these, time
        grows by a tenth, and memory falls to a half.
    """
    return int(np.clip(_BLOCK * (_MANY_ROWS / n_samples) ** 3, _NARROWEST, _BLOCK))


def nearest_labeled(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    rows: NDArray[np.intp] | None = None,
) -> tuple[NearestLabeled, int, bool]:
    """Return the `n_kept` labelled samples with the largest w̄ for every row.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled : ndarray of int
        Labelled samples.
    alpha, tol, max_iter
        As in `walk_weights`.
    n_kept : int
        How many to keep per row, at most ``len(labeled)``.
    n_jobs : int, optional
        Threads; all cores by default.
    rows : ndarray of int, optional
        The rows wanted, if not all: of others nothing is kept.

    Returns
    -------
    nearest : NearestLabeled
        Weights and voters, heaviest first, equal weights by position.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.

    Notes
    -----
    Memory is O(n·(n_kept + block·threads)) for any number of labels, and where they are many what
    `split_walk` holds. Blocks are the
    same for any number of threads, and so are the weights.
    """
    normalized = NormalizedGraph(graph)
    if n_kept < len(labeled):
        split = split_walk(normalized, labeled, alpha, n_kept, tol=tol, n_jobs=n_jobs)
        if split is not None:
            return split if rows is None else split.rows(rows), 1, True
    ready = prepared_graph(normalized, labeled, alpha, n_columns=len(labeled))
    del normalized
    if isinstance(ready, NormalizedGraph) and ready.factorize:
        found = _at_once(graph, ready, labeled, alpha, n_kept, tol, n_jobs, rows)
        if found is not None:
            return found, 1, True
    del graph  # all that counts is in what is ready
    chosen, n_iter, converged = _by_levels(
        ready, labeled, alpha, n_kept, tol, max_iter, n_jobs, rows
    )
    del ready  # sorting takes memory too
    return heaviest_first(chosen.values, chosen.voters), n_iter, converged


def _by_levels(
    graph: NormalizedGraph | ReducedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
    rows: NDArray[np.intp] | None,
) -> tuple[Selection, int, bool]:
    """Walk with the accuracy of every row assured, a few columns at a time."""
    n_labeled = len(labeled)
    blocks = [np.arange(n_labeled)]  # one factorisation serves all columns of a dense graph
    dense = isinstance(graph, NormalizedGraph) and not graph.is_sparse
    # Where few rows are kept, narrow blocks spare more memory than they cost time.
    width = block_width(graph.n_samples * (1 if rows is None else 2))
    if not dense and n_labeled > width:
        # An even number of blocks, so that two threads end together.
        blocks = np.array_split(np.arange(n_labeled), 2 * -(-n_labeled // (2 * width)))
    reference, n_iter, converged = None, 0, True
    if len(blocks) > 1:
        one_class = np.zeros(n_labeled, dtype=np.intp)
        total = class_columns(graph, labeled, one_class, 1, alpha, _ROUGH, max_iter)
        # The largest entry of a row is no less than the mean; views in their order.
        reference = total.log_values.T[::-1] - np.log(n_labeled) + np.log1p(-_ROUGH)
        n_iter, converged = total.n_iter, total.converged

    def solve(block: NDArray[np.intp]) -> tuple[Selection, int, bool]:
        found = log_label_weights(
            graph, labeled[block], alpha, tol=tol, max_iter=max_iter, reference=reference, rows=rows
        )
        return Selection.of(found.log_values, block, n_kept), found.n_iter, found.converged

    heaviest = Heaviest(n_kept, len(labeled))
    results = in_threads(solve, blocks, n_jobs)
    for selection, iterations, success in countdown(results, len(blocks), "blocks of labels"):
        n_iter, converged = n_iter + iterations, converged and success
        heaviest.add(selection)
    return heaviest.chosen(), n_iter, converged


def _at_once(
    graph: ConstrainedGraph,
    normalized: NormalizedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    tol: float,
    n_jobs: int | None,
    rows: NDArray[np.intp] | None,
) -> NearestLabeled | None:
    """Walk in single precision on one scale; None if some weights do not fit it."""
    if not single_precision_serves(normalized.log_degrees, tol):
        return None
    dtype = np.float32
    walk = FactorizedWalk(normalized, alpha, dtype)
    width = int(np.clip(_FACTOR_ENTRIES // graph.n_samples, _BLOCK, _FACTOR_BLOCK))
    blocks = np.array_split(np.arange(len(labeled)), -(-len(labeled) // width))

    n_rows = graph.n_samples if rows is None else len(rows)
    least = np.zeros((n_rows, 1), dtype=dtype)  # weights below it are out of the race

    def solve(block: NDArray[np.intp]) -> Selection:
        weights = walk.weights(labeled[block])
        if rows is not None:
            weights = weights[rows]
        return Selection.of(weights, block, n_kept, least)

    heaviest = Heaviest(n_kept, len(labeled))
    results = in_threads(solve, blocks, n_jobs)
    for selection in countdown(results, len(blocks), "blocks of labels"):
        heaviest.add(selection)
        bar = heaviest.least()
        if bar is not None:
            least[:, 0] = np.maximum(bar, 0.0)
    chosen = heaviest.chosen()
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(chosen.values, 0.0), dtype=np.float64)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        return None
    if _any_lost(too_small(logs.max(axis=1)), graph, labeled, rows):
        return None
    return heaviest_first(logs, chosen.voters)


def _any_lost(
    lost: NDArray[np.bool_],
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    rows: NDArray[Any] | None = None,
) -> bool:
    """Tell whether the weights of a row are lost, though labels reach it."""
    if not lost.any():
        return False
    reached = graph.reached(labeled)
    return bool((lost & (reached if rows is None else reached[rows])).any())
