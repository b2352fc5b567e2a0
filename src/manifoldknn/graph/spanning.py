"""Spanning trees that keep the pruned graph connected.

The minimum spanning tree of the candidate graph keeps every part of that graph in
one piece when hub edges are pruned. Edges are ordered by (length, lower index,
higher index), so equal lengths never leave a choice.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base import Array, Bools, Floats, Ints

_FILTERED_EDGES = 10_000

Edges = tuple[Any, Any, Any]  # both ends and lengths: arrays, or tensors on a device


def connected_parts(one: Ints, other: Ints, n_nodes: int) -> Ints:
    """Return for every node the number of its part of the graph with these edges."""
    links = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(n_nodes, n_nodes))
    parts: Array = csgraph.connected_components(links, directed=False)[1]
    return parts.astype(np.intp)


def in_spanning_forest(low: Ints, high: Ints, length: Floats, n_samples: int) -> Bools:
    """Tell which edges belong to the minimum spanning forest.

    Edges are distinct, with ``low < high``, and sorted; 0 is a length like any other. Cost O(m log
    m) for m edges. The shortest quarter is looked at first; most of the others then lie inside one
    part and need not be sorted at all.
    """
    if len(low) < _FILTERED_EDGES:
        return _forest(low, high, length, n_samples)
    limit = np.partition(length, len(length) // 4)[len(length) // 4]
    short = np.flatnonzero(length <= limit)
    short = short[_forest(low[short], high[short], length[short], n_samples)]
    part = connected_parts(low[short], high[short], n_samples)
    left = (length > limit) & (part[low] != part[high])
    left[short] = True
    answer = np.zeros(len(low), dtype=bool)
    candidates = np.flatnonzero(left)
    kept = _forest(low[candidates], high[candidates], length[candidates], n_samples)
    answer[candidates[kept]] = True
    return answer


def _forest(low: Ints, high: Ints, length: Floats, n_samples: int) -> Bools:
    """Tell which edges belong to the forest, by scipy.

    Lengths are replaced by their ranks: scipy reads a length of 0 as "no edge", and
    ranks leave no ties.
    """
    order = _stable_order(length)
    rank = np.empty(len(low))
    rank[order] = np.arange(1, len(low) + 1)
    del order
    # The spanning tree of older versions of scipy reads 32-bit indices only.
    index = np.int32 if n_samples < 2**31 else np.int64
    graph = sparse.csr_array(
        (rank, (low.astype(index), high.astype(index))), shape=(n_samples, n_samples)
    )
    chosen = csgraph.minimum_spanning_tree(graph)
    kept = np.zeros(len(low) + 1, dtype=bool)
    kept[chosen.data.astype(np.intp)] = True
    return kept[rank.astype(np.intp)]


def _stable_order(length: Floats) -> Ints:
    """Return what ``np.argsort(length, kind="stable")`` does, several times sooner."""
    order = np.argsort(length)
    first = np.ones(len(order), dtype=np.intp)
    first[1:] = np.diff(length[order]) != 0
    if first.all():
        return order
    # Number equal lengths alike, and sort by that number and the position.
    for_position = len(order).bit_length()
    key = (np.cumsum(first) << for_position) | order
    key.sort()
    return np.asarray(key & ((1 << for_position) - 1))
