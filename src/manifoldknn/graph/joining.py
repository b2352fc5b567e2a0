"""Edges between parts of the candidate graph that nothing joins.

Exactly the shortest ones where that takes some ten seconds at most; short ones
(`bridges`) where it would take longer. Edges are ordered by (length, lower index,
higher index), so equal lengths never leave a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.distances import EUCLIDEAN, values_per_row
from manifoldknn.graph.bridges import short_joining_edges
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.graph.spanning import Edges, connected_parts

EXACT_WORK = 5e10  # products; some ten seconds
_LEAST_WORK_PER_PAIR = 50  # a pair costs as much as this many products, however few its columns
_PRODUCTS = EUCLIDEAN | {"cosine"}
_WITHOUT_PRODUCTS = 8  # as long as matrix products do other metrics take for a pair


def joined_parts(
    X: Any,
    parts: NDArray[np.intp],
    *,
    metric: Any,
    n_jobs: int | None = None,
    kernels: GraphKernels = GRAPH,
) -> Edges:
    """Return edges that join the `parts` of X into one: ``low < high``, sorted, and lengths.

    The shortest edges, O(s·n·d) for the s samples outside the largest of p parts, up to some 1e9
    pairs, or 1e8 in metrics other than Euclidean and cosine; beyond, short ones, O(p·n·d).
    """
    X, kernels = kernels.measuring(X, metric)
    outside = len(parts) - int(np.bincount(parts).max())
    if is_affordable(outside, X.shape[0], values_per_row(X), metric):
        return joining_edges(X, parts, metric=metric, kernels=kernels)
    return short_joining_edges(X, parts, metric=metric, n_jobs=n_jobs, kernels=kernels)


def is_affordable(n_outside: int, n_samples: int, n_values: float, metric: Any) -> bool:
    """Tell whether exactly the shortest edges take some ten seconds at most.

    Of `n_samples`, `n_outside` are outside the largest part; a row has `n_values` that are not
    known to be 0.
    """
    work = float(n_outside) * n_samples * max(n_values, _LEAST_WORK_PER_PAIR)
    products = isinstance(metric, str) and metric in _PRODUCTS
    return work * (1 if products else _WITHOUT_PRODUCTS) <= EXACT_WORK


def joining_edges(
    X: Any, parts: NDArray[np.intp], *, metric: Any, kernels: GraphKernels = GRAPH
) -> Edges:
    """Return the shortest edges that join the `parts` of X into one: ``low < high``, and lengths.

    The answer is the minimum spanning tree of the graph whose nodes are the parts and whose edge
    between two parts is their closest pair of samples (Borůvka's rounds: every part but the largest
    takes its shortest way out).

    Cost O(s·n·d) for the s samples outside the largest part, in blocks of bounded memory; later
    rounds only look again from samples whose nearest stranger has become a relative.
    """
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
        rows = np.flatnonzero(stale)
        for some, found_at, away in _nearest_strangers(X, rows, parts, metric, kernels):
            stranger[some], distance[some] = found_at, away
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


def _nearest_strangers(
    X: Any, rows: NDArray[np.intp], parts: NDArray[np.intp], metric: Any, kernels: GraphKernels
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
    """Yield some rows, the nearest sample of another part for each, and how far that is.

    Of equally near ones, that of the smallest ``(low, high)``.
    """
    euclidean = isinstance(metric, str) and metric in EUCLIDEAN
    part = kernels.array(parts)
    for some, block in kernels.distance_blocks(X, rows, metric):
        # Euclidean block distances carry rounding; what lies within it is measured again.
        slack = 1e-7 * block.max() if euclidean else 0.0
        block[part[kernels.array(some)][:, None] == part[None, :]] = np.inf
        limit = kernels.xp.amin(block, 1) + slack
        r, c = (kernels.host(at) for at in kernels.xp.where(block <= limit[:, None]))
        d = kernels.pair_distances(X, some[r], c, metric) if euclidean else block[r, c]
        order = np.lexsort((np.maximum(some[r], c), np.minimum(some[r], c), d, r))
        first = order[np.unique(r[order], return_index=True)[1]]
        yield some, c[first], d[first]
