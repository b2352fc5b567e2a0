"""How large a sparse factorisation would be, without making one.

A factorisation of A = I - αS takes rows out one after the other, and the rows that
are left become neighbours of each other. Four rounds of elimination show how
quickly: if the entries per row grow as (rows left)^-p, the rest is dense when
rows and entries per row meet, at N rows, and the whole factor has about 2.5 N²
entries. On graphs of 5,000 to 580,000 samples in 2 to 784 dimensions this was right within a
factor of 2, and up to 4 too large for factors so small that it does not matter.
"""

from __future__ import annotations

import numpy as np

from manifoldknn.elimination import MOST_NEIGHBORS, Elimination
from manifoldknn.normalized import NormalizedGraph

_ROUNDS = 4
_ENTRIES_PER_DENSE_SQUARE = 2.5
_MOST_PER_ROW = 64  # entries of the factor: memory stays O(n),
_ALWAYS_ALLOWED = 8_000_000  # and is no concern below this
# Iterating costs about as much per column as passing over a factor 4/√(1-α) times as large as the
# graph, at most 80 with a preconditioner; making a factor costs as much as 20 passes over it.
_WORTH, _MOST_WORTH = 4.0, 80.0
_SETUP = 20.0


def factorization_pays(graph: NormalizedGraph, n_columns: int, alpha: float) -> bool:
    """Tell whether factorising is the better way to walk from so many labels.

    Parameters
    ----------
    graph : NormalizedGraph
        The graph.
    n_columns : int
        Number of columns wanted.
    alpha : float
        Share of strength kept per step.

    Returns
    -------
    bool
        True for sparse graphs whose factor is expected to have at most
        w·m / (m + 20) times as many entries as the graph for m columns, w = 4/√(1-α) up to 80,
        and at most 64 per row or 8 million.
    """
    if not graph.is_sparse:
        return False
    n_entries = max(1, graph.log_s.nnz)
    per_column = min(_WORTH / np.sqrt(1.0 - alpha), _MOST_WORTH)
    worth = per_column * n_columns / (n_columns + _SETUP) * n_entries
    most = min(worth, affordable_fill(graph.n_samples))
    return predicted_fill(graph, alpha, enough=most) <= most


def affordable_fill(n_samples: int) -> float:
    """Return how many entries of a factor memory should be given to."""
    return max(_MOST_PER_ROW * n_samples, _ALWAYS_ALLOWED)


def predicted_fill(graph: NormalizedGraph, alpha: float, *, enough: float = np.inf) -> float:
    """Return about how many entries the factor of A will have.

    Parameters
    ----------
    graph : NormalizedGraph
        A sparse graph.
    alpha : float
        Share of strength kept per step.
    enough : float, optional
        Stop when it is more than this.

    Returns
    -------
    float
        Number of entries below the diagonal; infinity for graphs with more than 32
        neighbours per row, which nobody should factorise.

    Notes
    -----
    Costs four sparse products, O(edges · neighbours).
    """
    elimination = Elimination(graph.log_s, np.zeros(graph.n_samples, dtype=bool), alpha)
    rows, density = graph.n_samples, elimination.density
    if density > MOST_NEIGHBORS:
        return np.inf
    fill = float(graph.log_s.nnz) / 2
    if not density:  # every weight is too small for a float
        return fill
    for _ in range(_ROUNDS):
        if fill > enough or not elimination.eliminate() or not elimination.rows.size:
            break
        left = len(elimination.rows)
        # Growth only shows itself later: the first estimates are too small, never too large.
        power = np.log(max(1.0, elimination.density / density)) / np.log(rows / left)
        dense = np.exp(
            (np.log(max(1.0, elimination.density)) + power * np.log(left)) / (power + 1.0)
        )
        fill = max(fill, _ENTRIES_PER_DENSE_SQUARE * dense**2)
    return fill
