"""Neighbours by a kd-tree, and whether that is quicker than comparing all pairs.

A kd-tree looks into few leaves where rows lie near a surface of few dimensions, and into nearly all
of them otherwise; the number of columns does not tell. So both searches are tried on some rows.
Their answers are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.spatial import cKDTree

_LEAF = 32
_TRIED_ROWS = 128
_TRIED_NEIGHBORS = 32


class TreeSearch:
    """Euclidean neighbours by a kd-tree, with the method of scikit-learn's searches.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    n_jobs : int, optional
        Threads; all cores by default.
    """

    def __init__(self, X: NDArray[Any], *, n_jobs: int | None = None) -> None:
        self._tree = cKDTree(X, leafsize=_LEAF)
        self._n_jobs = n_jobs

    @property
    def n_threads(self) -> int:
        """Threads of a search."""
        return int(effective_n_jobs(-1 if self._n_jobs is None else self._n_jobs))

    def kneighbors(
        self, Q: NDArray[Any], n_neighbors: int
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return distances and numbers of the nearest samples.

        Parameters
        ----------
        Q : ndarray of shape (n_queries, n_features)
            Rows.
        n_neighbors : int
            How many, at least 2.

        Returns
        -------
        distances, indices : ndarray of shape (n_queries, n_neighbors)
            Nearest first.
        """
        distances, indices = self._tree.query(Q, n_neighbors, workers=self.n_threads)
        return distances, indices.astype(np.intp)

    def is_quicker(self, X: NDArray[Any], other: Callable[[NDArray[Any], int], Any]) -> bool:
        """Tell whether this search is quicker than another, by trying both on some rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The samples.
        other : callable
            ``other(rows, n_neighbors)`` searches otherwise, with as many threads.

        Returns
        -------
        bool
            Costs some milliseconds; the first call of `other` is not counted.
        """
        count = min(_TRIED_NEIGHBORS, len(X))
        rows = X[:: max(1, len(X) // _TRIED_ROWS)][:_TRIED_ROWS]
        other(rows, count)
        begin = time.perf_counter()
        other(rows, count)
        middle = time.perf_counter()
        self._tree.query(rows, count)
        return time.perf_counter() - middle < self.n_threads * (middle - begin)
