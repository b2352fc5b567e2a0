"""Edges between parts of the candidate graph that nothing joins.

Exactly the shortest ones (`spanning`) where that takes some ten seconds at most;
short ones (`bridges`) where it would take longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.distances import EUCLIDEAN, values_per_row
from manifoldknn.graph.bridges import short_joining_edges
from manifoldknn.graph.spanning import Edges, joining_edges

EXACT_WORK = 5e10  # products; some ten seconds
_LEAST_WORK_PER_PAIR = 50  # a pair costs as much as this many products, however few its columns
_PRODUCTS = EUCLIDEAN | {"cosine"}
_WITHOUT_PRODUCTS = 8  # as long as matrix products do other metrics take for a pair


def joined_parts(
    X: Any, parts: NDArray[np.intp], *, metric: Any, n_jobs: int | None = None
) -> Edges:
    """Return edges that join the `parts` of X into one: ``low < high``, sorted, and lengths.

    The shortest edges, O(s·n·d) for the s samples outside the largest of p parts, up to some 1e9
    pairs, or 1e8 in metrics other than Euclidean and cosine; beyond, short ones, O(p·n·d).
    """
    outside = len(parts) - int(np.bincount(parts).max())
    if is_affordable(outside, X.shape[0], values_per_row(X), metric):
        return joining_edges(X, parts, metric=metric)
    return short_joining_edges(X, parts, metric=metric, n_jobs=n_jobs)


def is_affordable(n_outside: int, n_samples: int, n_values: float, metric: Any) -> bool:
    """Tell whether exactly the shortest edges take some ten seconds at most.

    Of `n_samples`, `n_outside` are outside the largest part; a row has `n_values` that are not
    known to be 0.
    """
    work = float(n_outside) * n_samples * max(n_values, _LEAST_WORK_PER_PAIR)
    products = isinstance(metric, str) and metric in _PRODUCTS
    return work * (1 if products else _WITHOUT_PRODUCTS) <= EXACT_WORK
