"""Edges between parts of the candidate graph that nothing joins.

Exactly the shortest ones where that takes some ten seconds at most; short ones where it would take
longer. Edges are ordered by (length, lower index,
higher index), so equal lengths never leave a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.base.distances import EUCLIDEAN, values_per_row
from manifoldknn.base.threads import single_threaded_products
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.graph.spanning import Edges, connected_parts, in_spanning_forest

if TYPE_CHECKING:
    from manifoldknn.graph.partsearch import PartSearch

NEAREST_PARTS = 8
STEPS = 6
MOST_PARTS = 3000  # beyond, parts are so small that one row stands for all of them
EXACT_WORK = 5e10  # products; some ten seconds
_LEAST_WORK_PER_PAIR = 50  # a pair costs as much as this many products, however few its columns
_PRODUCTS = EUCLIDEAN | {"cosine"}
_WITHOUT_PRODUCTS = 8  # as long as matrix products do other metrics take for a pair


def short_joining_edges(
    X: Any,
    parts: Ints,
    *,
    kernels: GraphKernels,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
) -> Edges:
    """Return short edges that join the `parts` of X into one: ``low < high``, sorted, and lengths.

    Every part looks at a few others only: those with the nearest centres, and that of the row
    nearest to its own centre. It finds a short edge to each by going back and forth: the row of one
    part nearest to a row of the other, the row of the other nearest to that, until neither moves. A
    spanning tree of the edges found joins the parts; what is then still separate is joined the same
    way.

    There is one less than there are parts; they do not depend on `n_jobs`. For p parts it takes
    O(p·n) distances, three or four times over, instead of the O(s·n) of `spanning.joining_edges`
    for the s samples outside the largest part; memory O(p·d + block). A million rows of 64 columns
    with 3000 outlying parts take seconds by matrix products (dense rows, Euclidean or cosine
    distances); other metrics and sparse rows take what scikit-learn's ``pairwise_distances`` does
    for so many pairs. Between well separated parts edges are within some per cent of the shortest;
    among overlapping ones up to half as long again.
    """
    found: list[Ints] = []
    lengths: list[Floats] = []
    # Products of one thread each are the same for any number of threads.
    with single_threaded_products():
        while parts.max() > 0:
            search = kernels.part_search(X, parts, metric, n_jobs)
            pairs = kernels.host(_pairs_of_rows(search))
            low, high = pairs.min(axis=1), pairs.max(axis=1)
            length = kernels.pair_distances(X, low, high, metric)
            n_parts = len(search.sizes)
            kept = tree_of_parts(parts[low], parts[high], length, n_parts)
            found.append(np.column_stack([low[kept], high[kept]]))
            lengths.append(length[kept])
            parts = connected_parts(parts[low[kept]], parts[high[kept]], n_parts)[parts]
    low, high = np.concatenate(found).T
    order = np.lexsort((high, low))
    return low[order], high[order], np.concatenate(lengths)[order]


def _pairs_of_rows(search: PartSearch) -> Any:
    """Return a short edge from every part to each of its nearest parts."""
    kernels, n_parts = search.kernels, len(search.sizes)
    near = search.nearest_parts(min(NEAREST_PARTS, n_parts - 1))
    if n_parts > MOST_PARTS:
        stand_ins, strangers = search.stand_ins(), search.nearest_strangers()
        ends = kernels.xp.concatenate([stand_ins[near], strangers[:, None]], 1)
        one = kernels.repeat(stand_ins, ends.shape[1])
        return kernels.xp.stack([one, ends.reshape(-1)], 1)
    if near.shape[1] < n_parts - 1:
        # The middle of a long or hollow part says little about who is near it.
        theirs = search.parts[search.nearest_strangers()]
        missing = ~(near == theirs[:, None]).any(1)
        near[missing, -1] = theirs[missing]
    one = kernels.repeat(kernels.arange(n_parts), near.shape[1])
    return _back_and_forth(search, one, near.reshape(-1))


def _back_and_forth(search: PartSearch, one: Any, other: Any) -> Any:
    """Return pairs of rows of two parts each, each row the nearest to the other of its part."""
    a = search.nearest_members(one, lambda q: search.centres(other[q]))
    b = search.kernels.xp.empty_like(a)
    moving = search.kernels.arange(len(one))
    for _ in range(STEPS):
        before = a[moving]
        b[moving] = search.nearest_to_rows(other[moving], before)
        a[moving] = search.nearest_to_rows(one[moving], b[moving])
        # Who looks from the same row will be answered as before.
        moving = moving[a[moving] != before]
    return search.kernels.xp.stack([a, b], 1)


def tree_of_parts(one: Ints, other: Ints, length: Floats, n_parts: int) -> Ints:
    """Return the edges of a minimum spanning forest of the parts."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    # Of several edges between two parts the shortest counts.
    order = np.lexsort((length, high, low))
    first = np.ones(len(order), dtype=bool)
    key = low[order] * n_parts + high[order]
    first[1:] = key[1:] != key[:-1]
    shortest = order[first]
    kept = in_spanning_forest(low[shortest], high[shortest], length[shortest], n_parts)
    return shortest[kept]


def joined_parts(
    X: Any, parts: Ints, *, metric: Any, n_jobs: int | None = None, kernels: GraphKernels = GRAPH
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


def joining_edges(X: Any, parts: Ints, *, metric: Any, kernels: GraphKernels = GRAPH) -> Edges:
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
    X: Any, rows: Ints, parts: Ints, metric: Any, kernels: GraphKernels
) -> Iterator[tuple[Ints, Ints, Floats]]:
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
