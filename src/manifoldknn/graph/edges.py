"""Which pairs of samples carry an edge: the union and the pruned graph.

One-sided edges come from hubs, samples that are near to many without being
their close kin. The pruned graph drops them and keeps itself connected with a
spanning tree.
"""

from __future__ import annotations

from typing import Any

from manifoldknn.graph.joining import joined_parts
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.graph.spanning import Edges
from manifoldknn.search.neighbors import Neighbors

CANDIDATES = 30  # neighbours whose graph the spanning tree of "pruned" is taken from
ALWAYS_KEPT = 3  # nearest neighbours whose edges "pruned" keeps even if one-sided


def union_edges(neighbors: Neighbors, kernels: GraphKernels = GRAPH) -> Edges:
    """Return the pairs of which one is among the other's neighbours: ``low < high``, sorted."""
    low, high, length, _, _ = kernels.ranked_pairs(neighbors)
    return low, high, length


def near_edges(neighbors: Neighbors, n_neighbors: int) -> Edges:
    """Return the pairs of the pruned graph that follow from the nearest of every sample alone.

    The spanning tree and what joins parts are missing.
    """
    low, high, length, rank_low, rank_high = GRAPH.ranked_pairs(neighbors)
    kept = GRAPH.places(are_near(rank_low, rank_high, n_neighbors, GRAPH))
    return low[kept], high[kept], length[kept]


def are_near(rank_low: Any, rank_high: Any, n_neighbors: int, kernels: GraphKernels) -> Any:
    """Tell which pairs are among each other's nearest, or one among the other's 3 nearest."""
    near = kernels.xp.maximum(rank_low, rank_high) < n_neighbors
    near |= kernels.xp.minimum(rank_low, rank_high) < ALWAYS_KEPT
    return near


def pruned_edges(
    X: Any, neighbors: Neighbors, n_neighbors: int, *, metric: Any, n_jobs: int | None = None,
    kernels: GraphKernels = GRAPH,
) -> Edges:  # fmt: skip
    """Return the pairs of the pruned graph, ``low < high``, sorted, and their lengths.

    A pair is kept if each is among the other's `n_neighbors` nearest, or one is among the other's 3
    nearest, or it lies in the minimum spanning tree of the candidate graph (`neighbors`: 30 for
    every sample, or `n_neighbors` if that is more); parts still separate are joined by their
    shortest edges (by nearly the shortest if that means measuring more than some 1e9 distances; see
    `joining.joined_parts`).
    """
    xp = kernels.xp
    low, high, length, rank_low, rank_high = kernels.ranked_pairs(neighbors)
    keep = are_near(rank_low, rank_high, n_neighbors, kernels)
    del rank_low, rank_high
    in_forest, parts = kernels.spanning_forest(low, high, length, len(neighbors.indices))
    keep |= in_forest
    del in_forest
    kept = kernels.places(keep)
    low, high, length = low[kept], high[kept], length[kept]
    if int(parts.max()) > 0:
        first = kernels.places(~_repeats_another(neighbors, kernels))
        rows = kernels.host(first)
        one, other, away = joined_parts(
            X if len(rows) == len(parts) else X[first], kernels.host(parts)[rows],
            metric=metric, n_jobs=n_jobs, kernels=kernels,
        )  # fmt: skip
        low, high, length = (
            xp.concatenate([ours, kernels.array(new, ours.dtype)])
            for ours, new in zip((low, high, length), (rows[one], rows[other], away))
        )
        order = kernels.order(high, low)
        low, high, length = low[order], high[order], length[order]
    return low, high, length


def _repeats_another(neighbors: Neighbors, kernels: GraphKernels) -> Any:
    """Tell which samples have one before them at distance 0: a way out of a part is as long there.

    Of equally long ones, edges between lower numbers come first, so these samples join no parts.
    """
    before = neighbors.indices < kernels.arange(len(neighbors.indices))[:, None]
    return (before & (neighbors.distances == 0)).any(1)
