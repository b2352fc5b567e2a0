"""Label columns of the walk from one factorisation of the whole graph, as weights of equation 4."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.factor import FactorizedInverse
from manifoldknn.normalized import NormalizedGraph


class FactorizedWalk:
    """Label columns of the walk from one factorisation.

    Parameters
    ----------
    graph : NormalizedGraph
        A sparse graph.
    alpha : float
        Share of strength kept per step.
    dtype : dtype, default=float64
        Precision of the columns. As nothing cancels, single precision keeps six digits
        of every entry, for half the time and memory.
    """

    def __init__(self, graph: NormalizedGraph, alpha: float, dtype: Any = np.float64) -> None:
        half = 0.5 * graph.log_degrees
        # √(d_i/d_j) and its inverse, as products of a row's and a column's factor.
        self._root = np.exp(half - 0.5 * (half.max() + half.min())).astype(dtype)
        S = graph.log_s.copy()
        S.data = np.exp(S.data)
        linked = np.flatnonzero(graph.group >= 0)
        group = np.unique(graph.group[linked], return_inverse=True)[1].astype(np.intp)
        inverse = FactorizedInverse(S, linked, group, np.exp(-half[linked]), alpha)
        self._inverse = inverse.in_precision(dtype)

    def weights(self, labeled: NDArray[np.intp]) -> NDArray[Any]:
        """Return w̄_ij between every sample and some labelled ones.

        Parameters
        ----------
        labeled : ndarray of int
            Labelled samples.

        Returns
        -------
        ndarray of shape (n_samples, len(labeled))
            Weights of equation 4.
        """
        x = self._inverse.columns(labeled)
        row, column = self._root[:, None], self._root[labeled]
        x *= (0.5 * row) * (1 / column) + (0.5 / row) * column
        return x
