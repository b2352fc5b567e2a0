"""Short edges between separate parts of very many rows.

The exactly shortest edges take as many distances as there are pairs of rows. Here
every part looks at the few parts with the nearest centres only, and finds a
short edge to each by going back and forth: the row of one part nearest to a row
of the other, the row of the other nearest to that, until neither moves. A
spanning tree of the edges found joins the parts; whatever is then still separate
is joined the same way.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.distances import euclidean_pairs
from manifoldknn.neighbors import ExactIndex
from manifoldknn.spanning import Edges, in_spanning_forest

NEAREST_PARTS = 8
STEPS = 6
MOST_PARTS = 3000  # beyond, parts are so small that one row stands for all of them


def short_joining_edges(X: Any, parts: NDArray[np.intp]) -> Edges:
    """Return short edges that join separate parts into one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    parts : ndarray of shape (n_samples,)
        Number of the part each sample belongs to, 0 … n_parts - 1.

    Returns
    -------
    low, high : ndarray of int
        Joining edges, ``low < high``; one less than there are parts.
    length : ndarray of float
        Their Euclidean lengths.

    Notes
    -----
    Cost O(n·d) per part that a part looks at. Between well separated parts edges are
    within some per cent of the shortest; among overlapping ones up to half as long
    again.
    """
    found: list[NDArray[np.intp]] = []
    while parts.max() > 0:
        pairs = _pairs_of_rows(X, parts)
        low, high = pairs.min(axis=1), pairs.max(axis=1)
        length = euclidean_pairs(X, X, low, high)
        kept = tree_of_parts(parts[low], parts[high], length, int(parts.max()) + 1)
        found.append(np.column_stack([low[kept], high[kept]]))
        links = sparse.coo_array(
            (np.ones(len(kept)), (parts[low[kept]], parts[high[kept]])),
            shape=(parts.max() + 1, parts.max() + 1),
        )
        parts = csgraph.connected_components(links, directed=False)[1][parts].astype(np.intp)
    low, high = np.unique(np.concatenate(found), axis=0).T
    return low, high, euclidean_pairs(X, X, low, high)


def _pairs_of_rows(X: Any, parts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a short edge from every part to each of its nearest parts."""
    order = np.argsort(parts, kind="stable")
    starts = np.searchsorted(parts[order], np.arange(parts.max() + 2))
    members = [order[a:b] for a, b in pairwise(starts)]
    centres = np.stack([X[rows].mean(axis=0, dtype=np.float64) for rows in members])
    if len(members) > MOST_PARTS:
        stand_ins = np.array([rows[_nearest(X, rows, c)] for rows, c in zip(members, centres)])
        near = ExactIndex(centres).among_samples(NEAREST_PARTS).indices
        ends = stand_ins[near]
        return np.column_stack([np.repeat(stand_ins, ends.shape[1]), ends.ravel()])
    near = ExactIndex(centres).among_samples(min(NEAREST_PARTS, len(members) - 1)).indices
    return np.array(
        [
            _back_and_forth(X, members[part], members[other], centres[other])
            for part, row in enumerate(near.tolist())
            for other in row
        ]
    )


def _back_and_forth(
    X: Any, one: NDArray[np.intp], other: NDArray[np.intp], start: NDArray[np.float64]
) -> tuple[int, int]:
    """Return a pair of rows, one of each part, each the nearest to the other of its part."""
    a = one[_nearest(X, one, start)]
    b = -1
    for _ in range(STEPS):
        before = (a, b)
        b = other[_nearest(X, other, X[a])]
        a = one[_nearest(X, one, X[b])]
        if (a, b) == before:
            break
    return int(a), int(b)


def _nearest(X: Any, rows: NDArray[np.intp], point: NDArray[Any]) -> int:
    difference = X[rows] - point.astype(X.dtype)
    return int(np.argmin(np.einsum("ij,ij->i", difference, difference)))


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
