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
from scipy.sparse import csgraph

from manifoldknn.bridges import short_joining_edges
from manifoldknn.distances import EUCLIDEAN
from manifoldknn.neighbors import Neighbors
from manifoldknn.spanning import Edges, in_spanning_forest, joining_edges

CANDIDATES = 30  # neighbours whose graph the spanning tree of "pruned" is taken from
EXACT_WORK = 5e10  # products; about a second
_ABSENT = np.iinfo(np.int32).max
ALWAYS_KEPT = 3  # nearest neighbours whose edges "pruned" keeps even if one-sided


def union_edges(neighbors: Neighbors) -> Edges:
    """Return the pairs of which one is among the other's neighbours.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbours of every sample.

    Returns
    -------
    low, high : ndarray of int
        Edges, ``low < high``, sorted.
    length : ndarray of float
        Their lengths.
    """
    low, high, length, _, _ = _ranked_edges(neighbors)
    return low, high, length


def pruned_edges(X: Any, neighbors: Neighbors, n_neighbors: int, *, metric: Any) -> Edges:
    """Return the pairs of the pruned graph: mutual neighbours plus a spanning tree.

    A pair is kept if each is among the other's `n_neighbors` nearest, or one is
    among the other's 3 nearest, or it lies in the minimum spanning tree of the
    candidate graph; parts still separate are joined by their shortest edges (by
    nearly the shortest if that means measuring more than some 1e9 distances).

    Parameters
    ----------
    X : ndarray or CSR matrix
        The samples, for joining separate parts.
    neighbors : Neighbors
        Candidate neighbours (30, or `n_neighbors` if that is more).
    n_neighbors : int
        Neighbours that count as mutual.
    metric : str or callable
        Distance between two rows.

    Returns
    -------
    low, high : ndarray of int
        Edges, ``low < high``, sorted.
    length : ndarray of float
        Their lengths.
    """
    n = len(neighbors.indices)
    low, high, length, rank_low, rank_high = _ranked_edges(neighbors)
    keep = np.maximum(rank_low, rank_high) < n_neighbors
    keep |= np.minimum(rank_low, rank_high) < ALWAYS_KEPT
    del rank_low, rank_high
    keep |= in_spanning_forest(low, high, length, n)
    low, high, length = low[keep], high[keep], length[keep]
    # What is kept spans the candidates' graph, so it has the same parts and is much smaller.
    graph = sparse.coo_array((np.ones(len(low)), (low, high)), shape=(n, n))
    n_parts, parts = csgraph.connected_components(graph, directed=False)
    if n_parts > 1:
        more = _joined(X, parts.astype(np.intp), metric)
        low, high = np.concatenate([low, more[0]]), np.concatenate([high, more[1]])
        length = np.concatenate([length, more[2]])
        order = np.lexsort((high, low))
        low, high, length = low[order], high[order], length[order]
    return low, high, length


def _joined(X: Any, parts: NDArray[np.intp], metric: Any) -> Edges:
    """Join parts by their shortest edges, or by short ones where those would take too long."""
    outside = len(parts) - np.bincount(parts).max()
    work = float(outside) * X.shape[0] * X.shape[1]
    plain = isinstance(metric, str) and metric in EUCLIDEAN and not sparse.issparse(X)
    if work > EXACT_WORK and plain:
        return short_joining_edges(X, parts)
    return joining_edges(X, parts, metric=metric)


def _ranked_edges(neighbors: Neighbors) -> tuple[NDArray[Any], ...]:
    """Undirected edges with the rank of each end in the other's list (large if absent)."""
    indices, distances = neighbors.indices, neighbors.distances
    n, k = indices.shape
    source, target = np.arange(n, dtype=np.int64)[:, None], indices.astype(np.int64)
    # Pair, side and rank in one integer: sorting integers is far quicker than sorting rows,
    # and shifting them is far quicker than dividing. In place, as there are millions.
    for_node, for_rank = n.bit_length(), k.bit_length()
    pairs = np.minimum(source, target)
    pairs <<= for_node
    pairs |= np.maximum(source, target)
    pairs <<= 1
    pairs |= source > target
    del target
    pairs <<= for_rank
    pairs |= np.arange(k)
    packed = pairs.reshape(-1)
    packed.sort()
    rank = (packed & ((1 << for_rank) - 1)).astype(np.int32)
    packed >>= for_rank
    side = (packed & 1).astype(bool)
    packed >>= 1
    first = np.ones(len(packed), dtype=bool)
    first[1:] = packed[1:] != packed[:-1]
    edge: NDArray[Any] = np.cumsum(first, dtype=np.int32 if len(packed) < 2**31 else np.int64)
    edge -= 1
    high = packed[first]
    del pairs, packed, first
    low = high >> for_node
    high &= (1 << for_node) - 1
    rank_low = np.full(len(low), _ABSENT, dtype=np.int32)
    rank_high = rank_low.copy()
    rank_high[edge[side]] = rank[side]
    np.logical_not(side, out=side)
    rank_low[edge[side]] = rank[side]
    del edge, side
    length = np.empty(len(low))
    from_low = rank_low < _ABSENT
    for chosen, row, rank in ((from_low, low, rank_low), (~from_low, high, rank_high)):
        length[chosen] = distances[row[chosen], rank[chosen]]
    return low, high, length, rank_low, rank_high
