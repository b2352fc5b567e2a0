"""Neighbours by a kd-tree, and whether that is quicker than comparing all pairs.

A kd-tree looks into few leaves where rows lie near a surface of few dimensions, and into nearly all
of them otherwise; the number of columns does not tell. So both searches are tried on some rows.

Distances do not change if the axes are turned, and along the principal axes of the samples the tree
finds its cuts: it looks into a third fewer leaves. Turning moves a sample by no more than

    e = 8 (d + 8) √d u ‖x‖,   u = 2⁻⁵³,

so with s the distance of the last candidate, whoever is missing is at least s - 2e away (for the
longest ‖x‖ that may matter, which is ‖x‖ + s).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.distances import largest_value
from manifoldknn.base.threads import single_threaded_products

_LEAF = 32
_TRIED_ROWS = 128
_DEARER = 1.4  # so much more does comparing all pairs cost per row if rows are few
_TRIED_NEIGHBORS = 32
_UNIT = 2.0**-53
_TINY = 1e-150  # distances below it are lost, on the scale of the largest value


class TreeSearch:
    """Euclidean neighbours by a kd-tree along the principal axes.

    Makes two copies of the samples in double precision and keeps one.
    """

    def __init__(self, X: Array) -> None:
        # On a scale where squares neither over- nor underflow.
        self._scale = largest_value(X) or 1.0
        scaled = X / np.float64(self._scale)
        self._center = scaled.mean(axis=0)
        scaled -= self._center
        # Threads of the matrix library stay awake for a while, and the search needs their cores.
        with single_threaded_products():
            self._axes = np.linalg.eigh(scaled.T @ scaled)[1]
            turned = scaled @ self._axes
        # Cuts in the middle, not at the median: boxes stay closer to cubes.
        self._tree = cKDTree(turned, leafsize=_LEAF, balanced_tree=False)

    def candidates(self, Q: Array, count: int) -> tuple[Ints, Floats]:
        """Return the `count` nearest samples of rows, and how far all others are at least.

        At least 2 candidates are asked for.
        """
        turned = self._turned(Q)
        with np.errstate(over="ignore"):
            distances, indices = self._tree.query(turned, count)
            norms = np.sqrt(np.einsum("ij,ij->i", turned, turned))
        # Rows so far away that their squares overflow have found nobody.
        lost = ~np.isfinite(distances[:, -1])
        indices[lost] = 0
        last = np.where(lost, 0.0, distances[:, -1])
        d = Q.shape[1]
        # The centre may lie far from the rows: what was subtracted counts as well.
        reach = 2 * norms + last + 2 * float(np.linalg.norm(self._center))
        wrong = 8 * (d + 8) * np.sqrt(d) * _UNIT * reach + _TINY
        return indices.astype(np.intp), np.where(lost, -np.inf, (last - wrong) * self._scale)

    def is_quicker(self, X: Array, other: Callable[[Array, int], Any], n_threads: int) -> bool:
        """Tell whether this search is quicker than another, by trying both on some rows.

        ``other(rows, n_neighbors)`` searches in all threads, while rows will be shared out among
        `n_threads` here. Costs some milliseconds; the first call of `other` is not counted.
        """
        count = min(_TRIED_NEIGHBORS, len(X))
        rows = X[:: max(1, len(X) // _TRIED_ROWS)][:_TRIED_ROWS]
        turned = self._turned(rows)
        other(rows, count)
        begin = time.perf_counter()
        other(rows, count)
        middle = time.perf_counter()
        self._tree.query(turned, count)
        return time.perf_counter() - middle < n_threads * (middle - begin) / _DEARER

    def _turned(self, Q: Array) -> Floats:
        with single_threaded_products():
            turned: Floats = (Q / np.float64(self._scale) - self._center) @ self._axes
        return turned
