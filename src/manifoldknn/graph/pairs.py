"""Pairs of samples of which one lists the other, and what place each has in the other's list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.base.csr import kept_entries, narrowest
from manifoldknn.search.neighbors import Neighbors


def ranked_pairs(neighbors: Neighbors) -> tuple[NDArray[Any], ...]:
    """Return undirected edges with the rank of each end in the other's list (large if absent).

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
