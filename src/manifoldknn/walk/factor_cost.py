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

from manifoldknn.walk.elimination import MOST_NEIGHBORS, Elimination
from manifoldknn.walk.iteration import LONG_WALK
from manifoldknn.walk.normalized import NormalizedGraph

_ROUNDS = 4
_ENTRIES_PER_DENSE_SQUARE = 2.5
_MOST_PER_ROW = 64  # entries of the factor: memory stays O(n),
_ALWAYS_ALLOWED = 8_000_000  # and is no concern below this
# Seconds, by benchmarks/ways.py: the dense end of a factor is nearly all of making it.
_PER_CUBE = 2.5e-10  # of the rows of that end,
_PER_HUB_SQUARE = 1.6e-9  # of neighbours of a hub, which are counted again whenever one goes,
_HUB = 1000  # neighbours, as the first of many equal rows has
_PER_ENTRY = 4e-9  # of the factor, and per column,
_PER_PRODUCT = 1.8e-9  # of an entry of the graph with a column
_ITERATIONS = 40.0  # times 1/√(1-α), with all levels,
_MOST_ITERATIONS = 250.0  # and for long walks, which are preconditioned


def factorization_pays(graph: NormalizedGraph, n_columns: int, alpha: float) -> bool:
    """Tell whether factorising a sparse graph takes less time than iterating.

    It never does where the factor is expected to have over 64 entries per row and 8 million.
    """
    if not graph.is_sparse:
        return False
    iterations = _ITERATIONS / np.sqrt(1.0 - alpha) if alpha < LONG_WALK else _MOST_ITERATIONS
    seconds = _PER_PRODUCT * max(1, graph.log_s.nnz) * n_columns * iterations
    most = min(
        _ENTRIES_PER_DENSE_SQUARE * (seconds / _PER_CUBE) ** (2 / 3),
        affordable_fill(graph.n_samples),
    )
    fill = predicted_fill(graph, alpha, enough=most)
    making = _PER_CUBE * (fill / _ENTRIES_PER_DENSE_SQUARE) ** 1.5
    degrees = np.diff(graph.log_s.indptr).astype(float)
    making += _PER_HUB_SQUARE * np.square(degrees[degrees > _HUB]).sum()
    return bool(fill <= most and making + _PER_ENTRY * fill * n_columns <= seconds)


def affordable_fill(n_samples: int) -> float:
    """Return how many entries of a factor memory should be given to."""
    return float(max(_MOST_PER_ROW * n_samples, _ALWAYS_ALLOWED))


def predicted_fill(graph: NormalizedGraph, alpha: float, *, enough: float = np.inf) -> float:
    """Return about how many entries the factor of A will have below its diagonal.

    Infinity for graphs with more than 32 neighbours per row, which nobody should factorise. Stops
    counting when it is more than `enough`. Costs four sparse products, O(edges · neighbours).
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
