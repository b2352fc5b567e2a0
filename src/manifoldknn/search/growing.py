"""Arrays and neighbour searches to which rows are added one by one.

Nothing that somebody holds is ever changed. An array that grows shares its
buffer with the array it grew from and writes only behind the rows that any
holder can see; a search that grows keeps the search it grew from, and looks
through the rows added since beside it.
"""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Ints
from manifoldknn.base.distances import EUCLIDEAN, all_pairs, is_angular, squared_norms
from manifoldknn.search.neighbors import (
    CheckedMetric,
    ExactIndex,
    NeighborIndex,
    Neighbors,
    nearest_euclidean,
    sorted_neighbors,
)
from manifoldknn.search.products import SPARE, candidates_by_products

_SPARE_SHARE = 4  # a new buffer has room for a quarter more rows
_CHUNK_VALUES = 1 << 22
_FEW_LATE_ROWS = 1000  # that a search may always have beside its first ones
_LATE_SHARE = 4  # beyond, a quarter of those


class GrowingArray:
    """An array whose rows are added at a cost that does not depend on how many there are.

    m rows cost O(m), and now and then a copy of everything: O(1) per row in the long run. Up to a
    quarter of the memory is spare. The first `values` are kept by reference.

    >>> first = GrowingArray(np.array([1, 2]))
    >>> second, other = first.appended(np.array([3])), first.appended(np.array([4]))
    >>> first.values, second.values, other.values
    (array([1, 2]), array([1, 2, 3]), array([1, 2, 4]))
    """

    def __init__(
        self, values: Array, buffer: Array | None = None, used: list[int] | None = None
    ) -> None:
        self.values = values
        self._buffer = values if buffer is None else buffer
        self._used = used or [len(values)]  # rows of the buffer that some holder can see

    def appended(self, rows: Array) -> "GrowingArray":
        """Return the array with more rows; this one stays as it is."""
        n, total = len(self.values), len(self.values) + len(rows)
        buffer, used, dtype = self._buffer, self._used, np.result_type(self.values, rows)
        if used[0] != n or total > len(buffer) or dtype != buffer.dtype:
            room = total + total // _SPARE_SHARE
            buffer, used = np.empty((room, *self.values.shape[1:]), dtype=dtype), [n]
            buffer[:n] = self.values
        buffer[n:total] = rows
        used[0] = total
        return GrowingArray(buffer[:total], buffer, used)

    def __reduce__(self) -> tuple[Any, ...]:
        return GrowingArray, (self.values,)  # without what is spare


class GrowingIndex(NeighborIndex):
    """A neighbour search, `first`, to which samples can be added.

    Samples added later are compared with a query one by one: O(m·d) for m of them, so a new search
    over all is due once it `is_crowded`.

    >>> from manifoldknn.search.neighbors import ExactIndex
    >>> index = GrowingIndex(ExactIndex(np.array([[0.0], [1.0], [3.0]])))
    >>> index.appended(np.array([[2.5]])).query(np.array([[2.4]]), 2).indices
    array([[3, 2]])
    """

    def __init__(
        self,
        first: NeighborIndex,
        late: Any = None,
        moved: tuple[Array, GrowingArray, GrowingArray] | None = None,
    ) -> None:
        self.first, self.metric = first, first.metric
        self._late = late  # a sparse matrix or a `GrowingArray`
        self._moved = moved  # a centre, the late samples less it, and their squared norms
        self._euclidean = isinstance(self.metric, str) and self.metric in EUCLIDEAN

    @property
    def template(self) -> Any:
        return self.first.X

    @property
    def late(self) -> Any:
        """The samples added later; None if there are none."""
        return self._late.values if isinstance(self._late, GrowingArray) else self._late

    @property
    def n_late(self) -> int:
        """How many samples were added."""
        return 0 if self.late is None else int(self.late.shape[0])

    @property
    def n_samples(self) -> int:
        return self.first.n_samples + self.n_late

    @property
    def X(self) -> Any:
        """All samples; a copy once samples were added."""
        if self.late is None:
            return self.first.X
        both = [self.first.X, self.late]
        if sparse.issparse(self.late):
            return sparse.vstack(both).tocsr()
        return np.concatenate(both)

    def rows(self, chosen: Ints) -> Any:
        n = self.first.n_samples
        if self.late is None or (chosen.size and chosen.max() < n):
            return self.first.X[chosen]
        added = chosen >= n
        if sparse.issparse(self.late):
            order = np.argsort(np.argsort(added, kind="stable"))
            both = [self.first.X[chosen[~added]], self.late[chosen[added] - n]]
            return sparse.vstack(both).tocsr()[order]
        out = np.empty((len(chosen), self.late.shape[1]), dtype=self.late.dtype)
        out[~added], out[added] = self.first.X[chosen[~added]], self.late[chosen[added] - n]
        return out

    def appended(self, rows: Any) -> "GrowingIndex":
        """Return the search with more samples; this one stays as it is."""
        if sparse.issparse(rows):
            stacked = rows if self.late is None else sparse.vstack([self.late, rows])
            return GrowingIndex(self.first, sparse.csr_array(stacked, copy=self.late is None))
        late = (self._late or GrowingArray(rows[:0])).appended(rows)
        if not self._euclidean:
            return GrowingIndex(self.first, late)
        if self._moved is None:
            center = self.first.X[:_FEW_LATE_ROWS].mean(axis=0, dtype=np.float64)
            away, norms = GrowingArray((rows - center)[:0]), GrowingArray(np.empty(0))
        else:
            center, away, norms = self._moved
        new = rows - center
        moved = center, away.appended(new), norms.appended(squared_norms(new))
        return GrowingIndex(self.first, late, moved)

    @property
    def is_crowded(self) -> bool:
        """Whether so many samples were added that one search over all is called for.

        True from 1000 samples, and a quarter of the first ones, on.
        """
        return self.n_late > max(_FEW_LATE_ROWS, self.first.n_samples // _LATE_SHARE)

    def among_samples(self, n_neighbors: int) -> Neighbors:
        if self.late is None:
            return self.first.among_samples(n_neighbors)
        n = self.first.n_samples
        before = self.first.among_samples(min(n_neighbors, n - 1))
        return self.grown_lists(before, n_neighbors)

    def grown_lists(self, before: Neighbors, n_neighbors: int) -> Neighbors:
        """Return the nearest other samples of every sample from those known of some.

        `before` holds for each of the first samples, as many as there are lists, its nearest among
        them: at least `n_neighbors` or all of them. Exact if it and the search over the first
        samples are. Cost O(n·m·d) for m samples added to n, instead of O((n+m)²·d).
        """
        n, known = self.n_samples, len(before.indices)
        start = known - self.first.n_samples  # among the samples added
        listed = self.first.X if not start else self.rows(np.arange(known))
        extra = self._among_late(listed, min(n_neighbors, n - known), start)
        indices = np.concatenate([before.indices, extra.indices + known], axis=1)
        distances = np.concatenate([before.distances, extra.distances], axis=1)
        old = sorted_neighbors(indices, distances, n_neighbors)
        found = self.query(self.late[start:], min(n_neighbors + 1, n))
        itself = found.indices == np.arange(known, n)[:, None]
        # With many duplicates a row may miss itself; then its last candidate goes instead.
        away = np.where(itself, np.inf, found.distances)
        new = sorted_neighbors(found.indices, away, n_neighbors)
        kept = min(old[0].shape[1], new[0].shape[1])  # lists brought along may be short
        both = [np.concatenate([a[:, :kept], b[:, :kept]]) for a, b in zip(old, new)]
        return Neighbors(both[0].astype(np.intp, copy=False), both[1])

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        n = self.first.n_samples
        found = self.first.query(Q, min(n_neighbors, n))
        if self.late is None:
            return found
        extra = self._among_late(Q, min(n_neighbors, self.n_late))
        indices = np.concatenate([found.indices, extra.indices + n], axis=1)
        distances = np.concatenate([found.distances, extra.distances], axis=1)
        return Neighbors(*sorted_neighbors(indices, distances, n_neighbors))

    def _among_late(self, Q: Any, count: int, start: int = 0) -> Neighbors:
        """Return the nearest of the samples added from `start` on, by comparing with each."""
        indices = np.empty((Q.shape[0], count), dtype=np.intp)
        distances = np.empty((Q.shape[0], count))
        step = max(1, _CHUNK_VALUES // max(self.n_late, Q.shape[1]))
        for first in range(0, Q.shape[0], step):
            part = slice(first, first + step)
            found = self._nearest_late(Q[part], count, start)
            indices[part], distances[part] = found.indices, found.distances
        return Neighbors(indices, distances)

    def _nearest_late(self, Q: Any, count: int, start: int) -> Neighbors:
        late = self.late[start:]
        if self._moved is not None:
            center, away, norms = self._moved
            late_moved, squares = away.values[start:], norms.values[start:]
            found = candidates_by_products(Q - center, late_moved, squares, count)
            return nearest_euclidean(Q, late, found, count)
        if is_angular(late, self.metric):
            return ExactIndex(late, metric=self.metric, n_jobs=1).query(Q, count)
        name = "euclidean" if self._euclidean else self.metric
        name = CheckedMetric(name) if callable(name) else name
        block = all_pairs(Q, late, name)
        everyone = np.broadcast_to(np.arange(late.shape[0]), block.shape)
        if self._euclidean:  # sparse: products blur what is near
            near = sorted_neighbors(everyone, block, count + SPARE)[0]
            return nearest_euclidean(Q, late, near, count)
        return Neighbors(*sorted_neighbors(everyone, block, count))
