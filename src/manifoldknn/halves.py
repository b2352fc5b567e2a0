"""A₀, the walk's matrix without must-links, in two halves: rows with must-links and the others.

A row with many must-links is heavy: its degree is at least their number, and a walker hardly ever
leaves it by an edge. With L these rows, U the others, Δ = I + αD_L⁻¹ and

    H = A_UU⁻¹ αS_UL,   N = αS_LL + αS_LU H

the inverse of A₀ is

    (A₀⁻¹)_LL = (Δ - N)⁻¹ = (I + Δ⁻¹N + (Δ⁻¹N)² + ...) Δ⁻¹,   (A₀⁻¹)_UL = H (A₀⁻¹)_LL,

a series that gains two digits with every term where a class has some hundred labels. All terms
are positive: nothing cancels, and every entry keeps its relative accuracy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.fill import affordable_fill, predicted_fill
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.sorted_factor import SortedFactor

_MOST_LEAVING = 0.25  # share of a row's strength that is not in must-links, so that N is small
_ACCURACY = 1e-13  # of a solution, relative in every entry
_MOST_TERMS = 60
_ENOUGH = 0.01  # accuracy of a bound
_FILL = 1.5  # the factor serves all labels at once: it may be larger than others


class Halves:
    """A₀ with the rows that have no must-links factorised.

    Parameters
    ----------
    graph : NormalizedGraph
        A sparse graph for which `can_be_halved` holds.
    alpha : float
        Share of strength kept per step.

    Attributes
    ----------
    rows, linked : ndarray of int
        U in the order of the factor, and L.
    factor : SortedFactor
        Of A_UU.
    down, across : csr_array
        αS_UL and αS_LL.
    delta : ndarray of shape (n_linked,)
        The diagonal of Δ.
    log_linked_degrees : ndarray of shape (n_linked,)
        log d of L.
    """

    def __init__(self, graph: NormalizedGraph, alpha: float) -> None:
        is_linked = graph.group >= 0
        self.linked = np.flatnonzero(is_linked)
        rows = np.flatnonzero(~is_linked)
        s = graph.log_s.copy()
        s.data = alpha * np.exp(s.data)
        inner = sparse.eye_array(len(rows)) - s[rows][:, rows]
        self.factor = SortedFactor(sparse.csc_array(inner))
        self.rows = np.empty_like(rows)
        self.rows[self.factor.position] = rows
        self.down = s[self.rows][:, self.linked]
        self.across = s[self.linked][:, self.linked]
        self.log_linked_degrees = graph.log_degrees[self.linked]
        self.delta = 1.0 + alpha * np.exp(-self.log_linked_degrees)

    def n_times(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return N x."""
        return self.across @ x + self.down.T @ self.hits_times(x)

    def hits_times(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return H x."""
        return self.factor.solve_sorted(self.down @ x)

    def largest_column_sum(self) -> float:
        """Return the largest column sum of I + Δ⁻¹N + (Δ⁻¹N)² + ... as shares of walkers.

        In the scale of walkers, N is D_L^-½ N D_L^½; its rows sum to less than 1, its columns do
        so only where degrees are alike.
        """
        root = np.exp(0.5 * (self.log_linked_degrees - self.log_linked_degrees.mean()))
        total = sums = np.ones(len(root))
        for _ in range(_MOST_TERMS):
            sums = root * self.n_times((sums / (self.delta * root))[:, None])[:, 0]
            total = total + sums
            if sums.max() <= _ENOUGH * total.max():
                break
        return float(total.max()) * (1 + _ENOUGH)

    def solve(
        self, rhs: NDArray[np.float64], *, accuracy: float = _ACCURACY
    ) -> NDArray[np.float64]:
        """Return A₀⁻¹ rhs for a few columns that are nowhere negative.

        Parameters
        ----------
        rhs : ndarray of shape (n_samples, n_columns)
            Right-hand sides.
        accuracy : float, default=1e-13
            Relative change of an entry at which the series ends.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Solutions, every entry with its own relative accuracy.
        """
        inside = self.factor.solve_sorted(rhs[self.rows])
        constant = (rhs[self.linked] + self.down.T @ inside) / self.delta[:, None]
        x = constant
        for _ in range(_MOST_TERMS):
            before, x = x, constant + self.n_times(x) / self.delta[:, None]
            if (x - before <= accuracy * x).all():
                break
        out = np.empty_like(rhs)
        out[self.linked] = x
        out[self.rows] = inside + self.hits_times(x)
        return out


def can_be_halved(graph: NormalizedGraph, alpha: float) -> bool:
    """Tell whether the series converges quickly and the factor is small.

    Parameters
    ----------
    graph : NormalizedGraph
        The graph.
    alpha : float
        Share of strength kept per step.

    Returns
    -------
    bool
        True for sparse graphs with rows of both kinds, must-links at least three quarters of the
        degree of any row that has some, and a factor that is no larger than `most_fill`.

    Notes
    -----
    Costs at most four sparse products, O(edges · neighbours).
    """
    is_linked = graph.group >= 0
    if not graph.is_sparse or is_linked.all() or not is_linked.any():
        return False
    group = graph.group[is_linked]
    log_links = np.log(np.bincount(group)[group] - 1.0)
    if (log_links - graph.log_degrees[is_linked]).min() < np.log1p(-_MOST_LEAVING):
        return False
    rows = np.flatnonzero(~is_linked)
    inner = NormalizedGraph.of_parts(
        graph.log_s[rows][:, rows], graph.log_degrees[rows], graph.group[rows]
    )
    most = most_fill(graph.n_samples)
    return len(rows) ** 2 / 2 <= most or predicted_fill(inner, alpha, enough=most) <= most


def most_fill(n_samples: int) -> float:
    """Return how many entries the factor may have, 96 per row or 12 million."""
    return _FILL * affordable_fill(n_samples)
