"""Which pairs of samples carry an edge: the union and the pruned graph.

One-sided edges come from hubs, samples that are near to many without being
their close kin. The pruned graph drops them and keeps itself connected with a
spanning tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.base.csr import kept_entries, narrowest
from manifoldknn.graph.joining import joined_parts
from manifoldknn.graph.spanning import Edges, connected_parts, in_spanning_forest
from manifoldknn.search.neighbors import Neighbors

CANDIDATES = 30  # neighbours whose graph the spanning tree of "pruned" is taken from
ALWAYS_KEPT = 3  # nearest neighbours whose edges "pruned" keeps even if one-sided


def union_edges(neighbors: Neighbors) -> Edges:
    """Return the pairs of which one is among the other's neighbours: ``low < high``, sorted."""
    low, high, length, _, _ = _ranked_edges(neighbors)
    return low, high, length


def pruned_edges(
    X: Any, neighbors: Neighbors, n_neighbors: int, *, metric: Any, n_jobs: int | None = None
) -> Edges:
    """Return the pairs of the pruned graph, ``low < high``, sorted, and their lengths.

    A pair is kept if each is among the other's `n_neighbors` nearest, or one is among the other's 3
    nearest, or it lies in the minimum spanning tree of the candidate graph (`neighbors`: 30 for
    every sample, or `n_neighbors` if that is more); parts still separate are joined by their
    shortest edges (by nearly the shortest if that means measuring more than some 1e9 distances; see
    `joining.joined_parts`).
    """
    n = len(neighbors.indices)
    low, high, length, rank_low, rank_high = _ranked_edges(neighbors)
    keep = np.maximum(rank_low, rank_high) < n_neighbors
    keep |= np.minimum(rank_low, rank_high) < ALWAYS_KEPT
    del rank_low, rank_high
    keep |= in_spanning_forest(low, high, length, n)
    low, high, length = low[keep], high[keep], length[keep]
    # What is kept spans the candidates' graph, so it has the same parts and is much smaller.
    parts = connected_parts(low, high, n)
    if parts.max(initial=0) > 0:
        more = joined_parts(X, parts, metric=metric, n_jobs=n_jobs)
        low, high = np.concatenate([low, more[0]]), np.concatenate([high, more[1]])
        length = np.concatenate([length, more[2]])
        order = np.lexsort((high, low))
        low, high, length = low[order], high[order], length[order]
    return low, high, length


def _ranked_edges(neighbors: Neighbors) -> tuple[NDArray[Any], ...]:
    """Undirected edges with the rank of each end in the other's list (large if absent).

    Cost O(n·k): lists are sorted by transposing them as sparse matrices, which only counts.
    """
    indices, distances = neighbors.indices, neighbors.distances
    n, k = indices.shape
    # Both ranks of an edge in one integer, as short as can be: there are millions.
    for_rank = k.bit_length()
    ranks = np.arange(1, k + 1, dtype=np.min_scalar_type(-(1 << 2 * for_rank)))
    later = indices > np.arange(n)[:, None]
    from_low = _first_of_each(_entries(indices, later, ranks).tocsc().tocsr())
    np.logical_not(later, out=later)
    from_high = _first_of_each(_entries(indices, later, ranks << for_rank).tocsc().T)
    del later
    both = from_low + from_high
    del from_low, from_high
    low = np.repeat(np.arange(n, dtype=np.int64), np.diff(both.indptr))
    high = both.indices.astype(np.int64)
    rank_low, rank_high = both.data & ((1 << for_rank) - 1), both.data >> for_rank
    del both
    at = low * k
    at += rank_low
    one_sided = np.flatnonzero(rank_low == 0)
    at[one_sided] = high[one_sided] * k + rank_high[one_sided]
    at -= 1
    length = distances.ravel()[at]
    for rank in (rank_low, rank_high):
        rank -= 1
        rank[rank < 0] = np.iinfo(rank.dtype).max
    return low, high, length, rank_low, rank_high


def _entries(indices: NDArray[np.intp], chosen: NDArray[np.bool_], data: NDArray[Any]) -> Any:
    """Return the chosen members of the lists as a CSR matrix with `data` by their places."""
    n, k = indices.shape
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(chosen, axis=1))])
    narrow = narrowest(n * k)
    values = np.broadcast_to(data, chosen.shape)[chosen]
    columns = indices[chosen].astype(narrow)
    return sparse.csr_array((values, columns, starts.astype(narrow)), shape=(n, n))


def _first_of_each(matrix: Any) -> Any:
    """Return a CSR matrix with sorted columns without the second of equal ones.

    Lists that a user brought may name somebody twice; the nearer place counts.
    """
    again = matrix.indices[1:] == matrix.indices[:-1]
    starts = matrix.indptr[1:-1]
    again[starts[(starts > 0) & (starts < len(matrix.indices))] - 1] = False
    if again.any():
        matrix = kept_entries(matrix, np.append(True, ~again))
    matrix.has_canonical_format = True
    return matrix
