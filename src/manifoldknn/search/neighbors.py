"""Who is near whom: what every neighbour search offers, and the exact one.

Everything the method knows about geometry comes from here: the neighbours of
every sample (graph, strengthened tree, sigma) and the neighbours of a new
sample (reconstruction). The exact search takes candidates from scikit-learn, from a
kd-tree where that is quicker, and from faiss where rows are wide; Euclidean
distances are then measured again from differences.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.distances import (
    EUCLIDEAN,
    all_pairs,
    euclidean_lists,
    is_angular,
    squared_norms,
    squares_fit,
    unit_rows,
)
from manifoldknn.base.progress import countdown
from manifoldknn.base.threads import in_threads, thread_count
from manifoldknn.search.flat import FlatSearch
from manifoldknn.search.products import SPARE, candidates_by_products, least_distance
from manifoldknn.search.treesearch import TreeSearch

_MANHATTAN = frozenset({"manhattan", "l1", "cityblock"})
_TREE_METRICS = EUCLIDEAN | _MANHATTAN | {"chebyshev"}  # of kd-trees
_SPARSE_METRICS = EUCLIDEAN | _MANHATTAN | {"cosine"}
METRICS = _TREE_METRICS | {"cosine", "correlation", "canberra", "braycurtis", "hamming"}
_MOST_TREE_DIMENSIONS = 8  # above this, kd-trees visit nearly every leaf and brute force wins
TREE_TRIED_DIMENSIONS = 64  # up to here they may win, if rows lie near a surface of few
_FLAT_DIMENSIONS = 400  # from here on, products in single precision save more than they cost
_MIDDLE_ROWS = 1000
_TREE_ROWS = 512  # searched, measured and sorted in one thread
_LIBRARY_TREE_ROWS = 1 << 14  # searched together otherwise: by the trees of scikit-learn,
_BRUTE_ROWS = 1 << 13  # by comparing all pairs,
_CALLED_ROWS = 1 << 6  # and by a function of the user
_PARALLEL_ROWS = 5000  # below this, starting threads costs more than it saves
_WORKING_MB = 32  # for blocks of distances in scikit-learn
_BLOCK_VALUES = 1 << 22
_SMALL_VALUES = 100_000  # samples among which products find few rows' neighbours before trees do
_FEW_ROWS = 32  # up to here, the library's preparations cost more than the search itself


@dataclass(frozen=True)
class Neighbors:
    """Neighbours of some rows, nearest first, equal distances by index."""

    indices: Ints  # row numbers of the fitted samples, (n_rows, n_neighbors)
    distances: Floats  # ascending in each row


def check_metric(metric: Any, *, is_sparse: bool) -> None:
    """Raise ValueError unless `metric` can be searched exactly on such data."""
    if callable(metric):
        if is_sparse:
            raise ValueError(
                "metric: a callable cannot be used with sparse X; name a metric such as "
                "'euclidean' or 'cosine', or pass a dense X."
            )
        return
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(
            f"metric={metric!r} is not one of the metrics offered: {', '.join(sorted(METRICS))}, "
            "or a callable of two rows."
        )
    if is_sparse and metric not in _SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} is not available for sparse X; use 'euclidean', 'cosine' or "
            "'manhattan', or pass a dense X."
        )


class CheckedMetric:
    """A metric that the user wrote, which may not return everything."""

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    def __call__(self, one: Array, other: Array) -> float:
        """Return the distance of two rows, or raise ValueError."""
        distance = float(self._metric(one, other))
        if not 0 <= distance < np.inf:
            raise ValueError(
                f"metric={self._metric!r} returned {distance}: a distance must be finite and not "
                "negative. Check the function, or rescale X."
            )
        return distance


class NeighborIndex(ABC):
    """Neighbour search over a fixed set of samples."""

    X: Any  # the samples, ndarray or CSR matrix
    metric: Any  # distance between two rows
    is_exact: bool = False  # whether every sample counts

    @property
    def n_samples(self) -> int:
        """Number of samples searched."""
        return int(self.X.shape[0])

    @property
    def template(self) -> Any:
        """Samples of the dtype and form that new rows must have, in no particular number."""
        return self.X

    def rows(self, chosen: Ints) -> Any:
        """Return some of the samples."""
        return self.X[chosen]

    @abstractmethod
    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the nearest *other* samples of every sample."""

    @abstractmethod
    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows."""


def sorted_neighbors(indices: Array, distances: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return the nearest of each row's candidates, by distance and then index; inf comes last."""
    order = np.argsort(distances, axis=1)
    nearest = np.take_along_axis(distances, order, axis=1)
    tied = np.flatnonzero((nearest[:, 1:] == nearest[:, :-1]).any(axis=1))
    order[tied] = np.lexsort((indices[tied], distances[tied]), axis=1)
    order = order[:, :n_neighbors]
    return np.take_along_axis(indices, order, axis=1), nearest[:, :n_neighbors]


class ExactIndex(NeighborIndex):
    """Exact neighbour search over a fixed set of samples, which are kept by reference.

    Cost of all neighbours: O(n log n) in few dimensions (kd-tree), O(n² d) otherwise, in chunks of
    bounded memory.

    >>> index = ExactIndex(np.array([[0.0], [1.0], [3.0]]))
    >>> index.among_samples(1).indices.ravel()
    array([1, 0, 1])
    """

    is_exact = True

    def __init__(self, X: Any, *, metric: Any = "euclidean", n_jobs: int | None = None) -> None:
        self.X = X
        self.metric = metric
        self.n_jobs = n_jobs
        self._euclidean = metric in EUCLIDEAN if isinstance(metric, str) else False
        self._center: Array | None = None
        self._centered: tuple[Array, Floats] | None = None
        self._directions: ExactIndex | None = None
        if is_angular(X, metric):
            self._directions = ExactIndex(unit_rows(X, metric), n_jobs=n_jobs)
            return
        searched = X
        tree = isinstance(metric, str) and metric in _TREE_METRICS and not sparse.issparse(X)
        algorithm = "kd_tree" if tree and X.shape[1] <= _MOST_TREE_DIMENSIONS else "brute"
        small = X.shape[0] * X.shape[1] <= _SMALL_VALUES
        # In single precision the library would measure in it: other rooms do not, and squares of
        # large or small numbers do not fit.
        self._doubled = algorithm == "brute" and isinstance(metric, str)
        if self._euclidean and (X.dtype != np.float32 or squares_fit(X)):
            self._doubled = False
        if self._doubled:
            searched = X.astype(np.float64, copy=False)
        if self._euclidean and (algorithm == "brute" or small) and not sparse.issparse(X):
            # Far from the origin the expanded square cancels; near it, it does not. The middle of
            # some rows: a single wild value does not move it, as it does the mean.
            some = X[:: max(1, X.shape[0] // _MIDDLE_ROWS)]
            self._center = np.median(some, axis=0).astype(X.dtype)
            searched = searched - self._center
        # Trees run in one thread unless told otherwise; brute force takes all cores by itself.
        jobs = -1 if n_jobs is None and X.shape[0] > _PARALLEL_ROWS else n_jobs
        named = CheckedMetric(metric) if callable(metric) else metric
        self._search: Any = NearestNeighbors(algorithm=algorithm, metric=named, n_jobs=jobs)
        self._search.fit(searched)
        self._by_products = algorithm == "brute" and self._center is not None
        if self._center is not None:
            self._centered = searched, squared_norms(searched)
        many = self._by_products and X.shape[0] > _PARALLEL_ROWS
        wide = X.shape[1] >= _FLAT_DIMENSIONS
        self._flat = FlatSearch(searched, n_jobs=n_jobs) if many and wide else None
        self._tree: TreeSearch | None = None
        if many and X.shape[1] <= TREE_TRIED_DIMENSIONS:
            self._tree = self._quicker_tree()

    def _moved(self, Q: Any) -> Any:
        """Return rows as they are searched for: around the centre, in the precision of a search."""
        Q = Q.astype(np.float64, copy=False) if self._doubled else Q
        return Q if self._center is None else Q - self._center

    def _quicker_tree(self) -> TreeSearch | None:
        """Return a kd-tree if it is quicker than comparing all pairs."""

        def brute(rows: Array, count: int) -> Any:
            return self._search.kneighbors(self._moved(rows), n_neighbors=count)

        tree = TreeSearch(self.X)
        return tree if tree.is_quicker(self.X, brute, thread_count(self.n_jobs)) else None

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the nearest *other* samples of every sample; its duplicates may be among them."""
        return self._nearest(self.X, n_neighbors, np.arange(self.n_samples))

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows."""
        if self._centered is not None and Q.shape[0] <= _FEW_ROWS:
            found = candidates_by_products(self._moved(Q), *self._centered, n_neighbors)
            return nearest_euclidean(Q, self.X, found, n_neighbors)
        return self._nearest(Q, n_neighbors, None)

    def _nearest(self, Q: Any, n_neighbors: int, itself: Ints | None) -> Neighbors:
        """Return the nearest samples of rows, other than the row itself if that is a sample."""
        if self._directions is not None:
            return self._directions.by_direction(unit_rows(Q, self.metric), n_neighbors, itself)

        def nearest(part: slice) -> tuple[slice, Neighbors]:
            own = None if itself is None else itself[part]
            return part, self._nearest_of(Q[part], n_neighbors, own)

        height = self._rows_at_once()
        parts = [slice(start, start + height) for start in range(0, Q.shape[0], height)]
        indices = np.empty((Q.shape[0], n_neighbors), dtype=np.intp)
        distances = np.empty((Q.shape[0], n_neighbors))
        # Our tree is asked by our threads; the other searches have threads of their own.
        blocks = in_threads(nearest, parts, 1 if self._tree is None else self.n_jobs)
        for part, found in countdown(blocks, len(parts), "blocks of rows"):
            indices[part], distances[part] = found.indices, found.distances
        return Neighbors(indices, distances)

    def by_direction(self, Q: Floats, n_neighbors: int, itself: Ints | None) -> Neighbors:
        """Return the nearest of `unit_rows` by the angle between them."""
        found = self._nearest(Q, n_neighbors, itself)
        found.distances[:] = 0.5 * np.square(found.distances)
        # Rows without a direction are 1 away from all: exactly, whichever of two is asked. So they
        # may be nearer by a rounding than rows at a right angle that were found.
        undirected = np.flatnonzero(self.X[:, -1])[: n_neighbors + 1]
        # Those that were found are taken out, and come again among all of them.
        found.distances[self.X[found.indices, -1] > 0] = np.inf
        some = np.flatnonzero(found.distances.max(axis=1) >= 1.0)
        if len(some) and len(undirected):
            more = np.tile(undirected, (len(some), 1))
            away = np.ones(more.shape)
            if itself is not None:
                away[more == itself[some, None]] = np.inf
            near = np.hstack([found.indices[some], more])
            away = np.hstack([found.distances[some], away])
            again = sorted_neighbors(near, away, n_neighbors)
            found.indices[some], found.distances[some] = again
        none = np.flatnonzero(Q[:, -1])
        first = np.tile(np.arange(min(n_neighbors + 1, self.n_samples)), (len(none), 1))
        away = np.ones(first.shape)
        if itself is not None:
            away[first == itself[none, None]] = np.inf
        found.indices[none], found.distances[none] = sorted_neighbors(first, away, n_neighbors)
        return found

    def _rows_at_once(self) -> int:
        """Return how many rows are searched between two looks at the clock."""
        if self._tree is not None:
            return _TREE_ROWS
        if self._search.algorithm == "kd_tree":
            return _LIBRARY_TREE_ROWS
        return _CALLED_ROWS if callable(self.metric) else _BRUTE_ROWS

    def _nearest_of(self, Q: Any, n_neighbors: int, itself: Ints | None) -> Neighbors:
        needed = n_neighbors + (itself is not None)
        count = min(needed + SPARE, self.n_samples)
        indices, distances, beyond = self._measured(Q, count, needed)
        if itself is not None:
            distances[indices == itself[:, None]] = np.inf
        found = Neighbors(*sorted_neighbors(indices, distances, n_neighbors))
        if indices.shape[1] == self.n_samples:
            return found
        # Where the last that counts is as far as those may be that are no candidates, one of them
        # may be as far and have a smaller number: for those rows, all samples are looked at.
        tied = np.flatnonzero(found.distances[:, -1] >= beyond)
        step = max(1, _BLOCK_VALUES // self.n_samples)
        for start in range(0, len(tied), step):
            rows = tied[start : start + step]
            near, away = self._everyone(Q[rows], needed)
            if itself is not None:
                away[near == itself[rows, None]] = np.inf
            found.indices[rows], found.distances[rows] = sorted_neighbors(near, away, n_neighbors)
        return found

    def _everyone(self, Q: Any, count: int) -> tuple[Ints, Floats]:
        """Return all samples that may be among the nearest, and their distances."""
        if self._centered is not None:
            near = candidates_by_products(self._moved(Q), *self._centered, count)
            away = euclidean_lists(Q, self.X, near)
            away[:, 1:][near[:, 1:] == near[:, :-1]] = np.inf  # the last is repeated
            return near, away
        near = np.tile(np.arange(self.n_samples), (Q.shape[0], 1))
        if self._euclidean:
            return near, euclidean_lists(Q, self.X, near)
        return near, all_pairs(Q, self.X, self.metric)

    def _measured(self, Q: Any, count: int, needed: int) -> tuple[Ints, Floats, Floats]:
        """Candidates, their distances (measured pair by pair if Euclidean), and a bound.

        Others that are no nearer than the bound cannot be among the `needed` nearest, unless the
        last of these is as far as the bound.
        """
        if self._tree is not None:
            indices, beyond = self._tree.candidates(Q, count)
            return indices, euclidean_lists(Q, self.X, indices), beyond
        moved = self._moved(Q)
        if self._flat is None or Q.shape[0] <= _FEW_ROWS:
            return self._searched(Q, moved, count)
        indices, squares = self._flat.candidates(moved, count)
        distances = euclidean_lists(Q, self.X, indices, n_jobs=self.n_jobs)
        beyond = distances.max(axis=1)
        farthest = np.partition(distances, needed - 1, axis=1)[:, needed - 1]
        doubtful = np.flatnonzero(~self._flat.certain(moved, farthest, squares))
        if doubtful.size:
            again = self._searched(Q[doubtful], moved[doubtful], count)
            indices[doubtful], distances[doubtful], beyond[doubtful] = again
        return indices, distances, beyond

    def _searched(self, Q: Any, moved: Any, count: int) -> tuple[Ints, Floats, Floats]:
        with config_context(working_memory=_WORKING_MB):
            distances, indices = self._search.kneighbors(moved, n_neighbors=count)
        distances = np.asarray(distances, dtype=np.float64)
        indices = np.asarray(indices, dtype=np.intp)
        if not self._euclidean:
            return indices, distances, distances.max(axis=1)
        measured = euclidean_lists(Q, self.X, indices, n_jobs=self.n_jobs)
        beyond = measured.max(axis=1)
        if self._by_products:
            norms, rounding = np.sqrt(squared_norms(moved)), float(np.finfo(self.X.dtype).eps)
            known = least_distance(distances.max(axis=1), norms, Q.shape[1], rounding)
            beyond = np.minimum(beyond, known)
        return indices, measured, beyond


def nearest_euclidean(Q: Array, X: Array, candidates: Ints, n_neighbors: int) -> Neighbors:
    """Return the nearest of each row's candidates by distances measured pair by pair.

    Of the candidates of a row, the last may be repeated.
    """
    distances = euclidean_lists(Q, X, candidates)
    repeated = candidates[:, 1:] == candidates[:, :-1]
    if repeated.any():
        distances[:, 1:][repeated] = np.inf
    return Neighbors(*sorted_neighbors(candidates, distances, n_neighbors))
