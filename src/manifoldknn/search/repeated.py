"""Many equal rows: each that differs is searched once, and its copies share what is found.

Copies have distance 0 to each other and the same distances to everybody else. So the nearest of a
row among all samples follow from its nearest among distinct ones. Let kinds of rows be numbered as
they first occur. The c nearest samples by (distance, index) are copies of the c nearest kinds by
(distance, number): a sample that counts comes after the first of each kind before its own.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.distances import row_blocks
from manifoldknn.search.neighbors import NeighborIndex, Neighbors

_TRIED_ROWS = 4096  # if none of them repeats another, few of all rows do
_COPIES = 2  # of a row, on average, from which on distinct rows are searched
_BLOCK_VALUES = 1 << 21
_CACHED_VALUES = 1 << 14


def equal_rows(X: Any) -> tuple[Ints, Ints]:
    """Return the first row of each kind, ascending, and for every row the number of its kind.

    Sums of scrambled values tell rows apart; rows of one sum are compared. O(n·d + n·log n).

    >>> equal_rows(np.array([[0.0, 1.0], [2.0, 1.0], [-0.0, 1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    for seed in count():  # once, unless rows that differ have one sum
        _, first, found = np.unique(_sums(X, seed), return_index=True, return_inverse=True)
        number = np.empty(len(first), dtype=np.intp)
        number[np.argsort(first)] = np.arange(len(first))
        first, kinds = np.sort(first), number[found]
        if _are_equal(X, first[kinds]):
            break
    return first, kinds


def _sums(X: Any, seed: int) -> Array:
    """Return Σ_j h_j(x_ij) for every row, h_j a hash of its own for each column with h_j(0) = 0."""
    factors = np.random.default_rng(seed).integers(2**64, size=X.shape[1], dtype=np.uint64) | 1
    if sparse.issparse(X):
        rows = sparse.csr_array(X, copy=True)
        rows.sum_duplicates()
        sums = np.append(np.uint64(0), np.cumsum(_scrambled(rows.data, factors[rows.indices])))
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    out = np.empty(len(X), dtype=np.uint64)
    step = max(1, _CACHED_VALUES // X.shape[1])
    for at in range(0, len(X), step):
        out[at : at + step] = _scrambled(X[at : at + step], factors).sum(axis=1)
    return out


def _scrambled(values: Array, factors: Array) -> Array:
    bits = (values + np.float64(0)).view(np.uint64)  # adding 0 turns -0 into 0
    bits ^= bits >> np.uint64(32)  # short numbers have only high bits
    bits *= factors
    bits ^= bits >> np.uint64(29)
    return bits


def _are_equal(X: Any, others: Ints) -> bool:
    """Tell whether every row equals the one named for it."""
    if sparse.issparse(X):
        return not (X[others] != X).nnz
    return all(np.array_equal(X[part], X[others[part]]) for part in row_blocks(X))


def many_equal(X: Any) -> tuple[Ints, Ints] | None:
    """Return what `equal_rows` does where rows have a copy on average, else None."""
    n = X.shape[0]
    if n > _TRIED_ROWS:
        some = np.random.default_rng(0).choice(n, _TRIED_ROWS, replace=False)
        if len(equal_rows(X[np.sort(some)])[0]) == _TRIED_ROWS:
            return None
    first, kinds = equal_rows(X)
    return (first, kinds) if len(kinds) >= _COPIES * len(first) else None


class RepeatedIndex(NeighborIndex):
    """Search over samples of which many are equal, by a search over the distinct ones.

    Exact where that is, and to the last bit what an exact search over all samples finds. Cost: that
    of the `distinct` search, O(k²) for each distinct row and O(k) for each sample.

    >>> from manifoldknn.search.neighbors import ExactIndex
    >>> X = np.array([[0.0], [1.0], [0.0], [0.0]])
    >>> first, kinds = equal_rows(X)
    >>> RepeatedIndex(X, kinds, ExactIndex(X[first])).among_samples(2).indices.tolist()
    [[2, 3], [0, 2], [0, 3], [0, 2]]
    """

    def __init__(self, X: Any, kinds: Ints, distinct: NeighborIndex) -> None:
        self.X, self.metric, self.is_exact = X, distinct.metric, distinct.is_exact
        self._distinct, self._kinds = distinct, kinds
        self._members = np.argsort(kinds, kind="stable")  # ascending within a kind
        self._counts = np.bincount(kinds)
        self._starts = np.cumsum(self._counts) - self._counts

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the nearest *other* samples of every sample; copies come first."""
        n_kinds = len(self._counts)
        found = self._distinct.among_samples(min(n_neighbors, n_kinds - 1))
        itself = np.arange(n_kinds)[:, None]
        near = np.concatenate([itself, found.indices], axis=1)
        away = np.concatenate([np.zeros((n_kinds, 1)), found.distances], axis=1)
        lists = self._copies(near, away, n_neighbors + 1)
        indices, distances = lists.indices[self._kinds], lists.distances[self._kinds]
        # A sample that is not in the list of its kind leaves the last one out.
        kept = indices != np.arange(self.n_samples)[:, None]
        kept[kept.all(axis=1), -1] = False
        shape = (self.n_samples, n_neighbors)
        return Neighbors(indices[kept].reshape(shape), distances[kept].reshape(shape))

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows."""
        found = self._distinct.query(Q, min(n_neighbors, len(self._counts)))
        return self._copies(found.indices, found.distances, n_neighbors)

    def _copies(self, kinds: Array, away: Floats, wanted: int) -> Neighbors:
        """Return the nearest samples from the nearest kinds, which have at least so many copies."""
        shape = (len(kinds), wanted)
        indices, distances = np.empty(shape, dtype=np.intp), np.empty(shape)
        step = max(1, _BLOCK_VALUES // (wanted * kinds.shape[1]))
        for at in range(0, len(kinds), step):
            part = slice(at, at + step)
            indices[part], distances[part] = self._nearest_copies(kinds[part], away[part], wanted)
        return Neighbors(indices, distances)

    def _nearest_copies(self, kinds: Array, away: Floats, wanted: int) -> tuple[Ints, Floats]:
        sizes = np.minimum(self._counts[kinds], wanted)
        enough = np.argmax(np.cumsum(sizes, axis=1) >= wanted, axis=1)
        row, place = np.nonzero(away <= np.take_along_axis(away, enough[:, None], axis=1))
        size = sizes[row, place]
        end = np.cumsum(size)
        within = np.arange(end[-1]) - np.repeat(end - size, size)
        samples = self._members[np.repeat(self._starts[kinds[row, place]], size) + within]
        lengths, rows = np.repeat(away[row, place], size), np.repeat(row, size)
        order = np.lexsort((samples, lengths, rows))
        begins = np.searchsorted(rows, np.arange(len(kinds)))
        chosen = order[begins[:, None] + np.arange(wanted)]
        return samples[chosen], lengths[chosen]
