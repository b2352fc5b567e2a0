"""Spanning trees that keep the pruned graph connected.

Two steps. The minimum spanning tree of the candidate graph keeps every part of
that graph in one piece when hub edges are pruned; parts that the candidate
graph never joined are then linked by their shortest edges. Edges are ordered
by (length, lower index, higher index), so equal lengths never leave a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base.distances import EUCLIDEAN, distance_blocks, euclidean_pairs

_FILTERED_EDGES = 10_000

Edges = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


def connected_parts(
    one: NDArray[np.intp], other: NDArray[np.intp], n_nodes: int
) -> NDArray[np.intp]:
    """Return for every node the number of its part of the graph with these edges."""
    links = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(n_nodes, n_nodes))
    parts: NDArray[np.int32] = csgraph.connected_components(links, directed=False)[1]
    return parts.astype(np.intp)


def in_spanning_forest(
    low: NDArray[np.intp], high: NDArray[np.intp], length: NDArray[np.float64], n_samples: int
) -> NDArray[np.bool_]:
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


def _forest(
    low: NDArray[np.intp], high: NDArray[np.intp], length: NDArray[np.float64], n_samples: int
) -> NDArray[np.bool_]:
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
    answer: NDArray[np.bool_] = kept[rank.astype(np.intp)]
    return answer


def _stable_order(length: NDArray[np.float64]) -> NDArray[np.intp]:
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


def joining_edges(
    X: Any, parts: NDArray[np.intp], *, metric: Any, search: Callable[..., None] | None = None
) -> Edges:
    """Return the shortest edges that join the `parts` of X into one: ``low < high``, and lengths.

    The answer is the minimum spanning tree of the graph whose nodes are the parts and whose edge
    between two parts is their closest pair of samples (Borůvka's rounds: every part but the largest
    takes its shortest way out). `search` finds strangers for some rows, with the positional
    arguments of `nearest_strangers`, which it is by default.

    Cost O(s·n·d) for the s samples outside the largest part, in blocks of bounded memory; later
    rounds only look again from samples whose nearest stranger has become a relative.
    """
    refresh = partial(nearest_strangers, metric=metric) if search is None else search
    parts = parts.copy()
    n = len(parts)
    stranger = np.full(n, -1, dtype=np.intp)  # nearest sample of another part
    distance = np.full(n, np.inf)
    found: list[tuple[int, int, float]] = []
    while True:
        sizes = np.bincount(parts)
        if len(sizes) == 1:
            break
        outside = parts != np.argmax(sizes)
        stale = outside & ((stranger < 0) | (parts[stranger] == parts))
        refresh(X, np.flatnonzero(stale), parts, stranger, distance)
        rows = np.flatnonzero(outside)
        low, high = np.minimum(rows, stranger[rows]), np.maximum(rows, stranger[rows])
        order = np.lexsort((high, low, distance[rows], parts[rows]))
        first = order[np.unique(parts[rows][order], return_index=True)[1]]
        new = {(int(low[e]), int(high[e]), float(distance[rows[e]])) for e in first}
        found.extend(new)
        links = np.array([(parts[i], parts[j]) for i, j, _ in new])
        parts = connected_parts(links[:, 0], links[:, 1], len(sizes))[parts]
    edges = sorted(found)
    low = np.array([e[0] for e in edges], dtype=np.intp)
    high = np.array([e[1] for e in edges], dtype=np.intp)
    return low, high, np.array([e[2] for e in edges])


def nearest_strangers(
    X: Any,
    rows: NDArray[np.intp],
    parts: NDArray[np.intp],
    stranger: NDArray[np.intp],
    distance: NDArray[np.float64],
    *,
    metric: Any,
) -> None:
    """Find the nearest sample of another part for some rows.

    `stranger` and `distance` are written in place at `rows`: the sample found and its distance; of
    equally near ones, that of the smallest ``(low, high)``.
    """
    euclidean = isinstance(metric, str) and metric in EUCLIDEAN
    for part, block in distance_blocks(X, rows, metric=metric):
        # Euclidean block distances carry rounding; what lies within it is measured again.
        slack = 1e-7 * block.max() if euclidean else 0.0
        block[parts[part][:, None] == parts[None, :]] = np.inf
        nearest = block.min(axis=1)
        r, c = np.nonzero(block <= (nearest + slack)[:, None])
        d = euclidean_pairs(X, X, part[r], c) if euclidean else block[r, c]
        order = np.lexsort((np.maximum(part[r], c), np.minimum(part[r], c), d, r))
        first = order[np.unique(r[order], return_index=True)[1]]
        stranger[part] = c[first]
        distance[part] = d[first]
