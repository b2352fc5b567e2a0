"""Short edges between separate parts of very many rows.

The exactly shortest edges take as many distances as there are pairs of rows. Here
every part looks at a few others only: those with the nearest centres, and that of
the row nearest to its own centre. It finds a short edge to each by going back and
forth: the row of one part nearest to a row of the other, the row of the other
nearest to that, until neither moves. All parts do so together, a step at a time. A
spanning tree of the edges found joins the parts; whatever is then still separate is
joined the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.threads import single_threaded_products
from manifoldknn.graph.spanning import Edges, connected_parts, in_spanning_forest

if TYPE_CHECKING:
    from manifoldknn.graph.kernels import GraphKernels
    from manifoldknn.graph.partsearch import PartSearch

NEAREST_PARTS = 8
STEPS = 6
MOST_PARTS = 3000  # beyond, parts are so small that one row stands for all of them


def short_joining_edges(
    X: Any,
    parts: NDArray[np.intp],
    *,
    kernels: GraphKernels,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
) -> Edges:
    """Return short edges that join the `parts` of X into one: ``low < high``, sorted, and lengths.

    There is one less than there are parts; they do not depend on `n_jobs`. For p parts it takes
    O(p·n) distances, three or four times over, instead of the O(s·n) of `spanning.joining_edges`
    for the s samples outside the largest part; memory O(p·d + block). A million rows of 64 columns
    with 3000 outlying parts take seconds by matrix products (dense rows, Euclidean or cosine
    distances); other metrics and sparse rows take what scikit-learn's ``pairwise_distances`` does
    for so many pairs. Between well separated parts edges are within some per cent of the shortest;
    among overlapping ones up to half as long again.
    """
    found: list[NDArray[np.intp]] = []
    lengths: list[NDArray[np.float64]] = []
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


def tree_of_parts(
    one: NDArray[np.intp], other: NDArray[np.intp], length: NDArray[np.float64], n_parts: int
) -> NDArray[np.intp]:
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
