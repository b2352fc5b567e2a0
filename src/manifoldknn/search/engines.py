"""Which search finds the neighbours: chosen by size, named by the user, or brought along."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Floats
from manifoldknn.base.distances import ANGULAR, EUCLIDEAN
from manifoldknn.search.inverted import InvertedIndex
from manifoldknn.search.neighbors import ExactIndex, NeighborIndex, Neighbors
from manifoldknn.search.repeated import RepeatedIndex, many_equal
from manifoldknn.search.user_searches import SearcherIndex, check_searcher, is_searcher, others

logger = logging.getLogger(__name__)

NAMES = ("auto", "exact", "inverted")
# Up to this many products exact search takes about a second (benchmarks/results/engines.md); below
# five dimensions trees do.
_EXACT_WORK = 3e10
_LEAST_WORK_PER_PAIR = 50  # a pair costs as much as this many products, however few its columns
_ALWAYS_TREE_DIMENSIONS = 4


def open_index(
    X: Any, neighbors: Any = "auto", *, metric: Any, n_jobs: int | None, seed: int
) -> NeighborIndex:
    """Return a neighbour search over X; where many rows are equal, over those that differ.

    `neighbors` is that of `ManifoldKNNClassifier`, checked by `check_neighbors`; `n_jobs` None
    means all cores, and the seed is for approximate searches.
    """
    if is_searcher(neighbors):
        return SearcherIndex(X, neighbors, metric=metric)
    if not isinstance(neighbors, str):
        later = partial(open_index, X, "auto", metric=metric, n_jobs=n_jobs, seed=seed)
        return GivenIndex(X, *lists_brought(neighbors), metric=metric, otherwise=later)
    # Of a function, d(x, x) may be anything.
    everyone, repeated = X, None if callable(metric) else many_equal(X)
    if repeated is not None:
        X = X[repeated[0]]
        # Rows of zeros have no direction, so that not even their copies are near.
        if metric in ANGULAR and np.min(abs(X).sum(axis=1)) == 0:
            X, repeated = everyone, None
        else:
            logger.info("%d of %d rows are distinct", X.shape[0], everyone.shape[0])
    name = automatic_engine(X, metric) if neighbors == "auto" else neighbors
    logger.info("neighbour search: %s", name)
    index: NeighborIndex
    if name == "inverted":
        index = InvertedIndex(X, metric=metric, n_jobs=n_jobs, seed=seed)
    else:
        index = ExactIndex(X, metric=metric, n_jobs=n_jobs)
    return index if repeated is None else RepeatedIndex(everyone, repeated[1], index)


def is_quick(n: int, d: int) -> bool:
    """Tell whether all pairs of so many rows and columns are compared in about a second.

    >>> is_quick(10_000, 30), is_quick(1_000_000, 30)
    (True, False)
    """
    return float(n) ** 2 * max(d, _LEAST_WORK_PER_PAIR) <= _EXACT_WORK


def automatic_engine(X: Any, metric: Any, shape: tuple[int, int] | None = None) -> str:
    """Return "exact" where that is quick or the only way, else "inverted".

    `shape` is what X is going to grow to.
    """
    if not _can_invert(X, metric):
        return "exact"
    n, d = shape or X.shape
    quick = is_quick(n, d) or (d <= _ALWAYS_TREE_DIMENSIONS and metric in EUCLIDEAN)
    return "exact" if quick else "inverted"


def _can_invert(X: Any, metric: Any) -> bool:
    return not sparse.issparse(X) and isinstance(metric, str) and metric in EUCLIDEAN | {"cosine"}


def check_neighbors(neighbors: Any, X: Any, *, metric: Any, graph_neighbors: int) -> None:
    """Raise ValueError unless `neighbors`, the user's choice, can serve for X."""
    if isinstance(neighbors, str):
        if neighbors not in NAMES:
            raise ValueError(
                f"neighbors={neighbors!r} must be one of {', '.join(map(repr, NAMES))}, an "
                "unfitted or fitted searcher with kneighbors or transform, a pair (indices, "
                "distances) or a sparse matrix of distances."
            )
        if neighbors == "inverted" and not _can_invert(X, metric):
            raise ValueError(
                "neighbors='inverted' needs dense X and metric 'euclidean' or 'cosine': use "
                "neighbors='exact'."
            )
        return
    if is_searcher(neighbors):
        check_searcher(neighbors, X, metric=metric)
        return
    indices, distances = lists_brought(neighbors)
    n = X.shape[0]
    if indices.shape != distances.shape or len(indices) != n:
        raise ValueError(
            f"neighbors must hold one row of indices and of distances for each of the {n} rows of "
            f"X, not arrays of shapes {indices.shape} and {distances.shape}."
        )
    if ((indices < 0) | (indices >= n)).any():
        raise ValueError(f"neighbors must name rows from 0 to {n - 1}.")
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise ValueError("neighbors must hold finite distances that are not negative.")
    others = (indices != np.arange(n)[:, None]).sum(axis=1).min()
    if others < min(graph_neighbors, n - 1):
        raise ValueError(
            f"neighbors has only {others} other rows for some row, but "
            f"graph_neighbors={graph_neighbors}: bring more neighbours or lower graph_neighbors."
        )


def lists_brought(neighbors: Any) -> tuple[Array, Floats]:
    """Neighbours as (indices, distances), from a pair or from sparse distances."""
    if sparse.issparse(neighbors):
        matrix = sparse.csr_array(neighbors)
        counts = np.diff(matrix.indptr)
        if len(counts) == 0 or counts.min() != counts.max():
            raise ValueError(
                "neighbors as a sparse matrix must have equally many distances in every row, as "
                "kneighbors_graph(mode='distance') makes it."
            )
        shape = (matrix.shape[0], int(counts[0]))
        return matrix.indices.reshape(shape), matrix.data.reshape(shape).astype(np.float64)
    try:
        indices, distances = neighbors
        indices, distances = np.asarray(indices), np.asarray(distances, dtype=np.float64)
        ok = indices.ndim == distances.ndim == 2 and indices.dtype.kind in "iu"
    except (TypeError, ValueError):
        ok = False
    if not ok:
        raise ValueError(
            f"neighbors of type {type(neighbors).__name__} is not understood: pass 'auto', a pair "
            "of arrays (indices, distances) with a row per sample, a sparse matrix of distances, "
            "or a searcher with fit and kneighbors or transform."
        )
    return indices, distances


class GivenIndex(NeighborIndex):
    """Neighbours that the user found before, in any order; new rows are searched otherwise.

    `otherwise` opens the search for new rows, when the first of them comes.
    """

    def __init__(
        self, X: Any, indices: Array, distances: Floats, *, metric: Any,
        otherwise: Callable[[], NeighborIndex],
    ) -> None:  # fmt: skip
        self.X, self.metric = X, metric
        self.lists = indices, distances
        self._otherwise = otherwise
        self._opened: NeighborIndex | None = None

    def among_samples(self, n_neighbors: int) -> Neighbors:
        """Return the given neighbours, at most `n_neighbors` per row."""
        return others(*self.lists, n_neighbors)

    @property
    def opened(self) -> NeighborIndex:
        """The search for new rows."""
        if self._opened is None:
            self._opened = self._otherwise()
        return self._opened

    def query(self, Q: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest samples of new rows."""
        return self.opened.query(Q, n_neighbors)
