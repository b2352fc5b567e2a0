"""Candidates for the nearest samples of a few rows, from one matrix product."""

import numpy as np

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.distances import squared_norms

_LEAST_SQUARE, _MOST_SQUARE = 1e-24, 1e30  # of products in single precision
_TINY = float(np.finfo(np.float32).tiny)
SPARE = 4  # extra candidates, so that rounding in the search cannot lose a true neighbour


def least_distance(distances: Floats, norms: Floats, n_columns: int, rounding: float) -> Floats:
    """Return how far samples are at least that a product says are no nearer than `distances`.

    The square ‖x‖² - 2xy + ‖y‖² is wrong by no more than (d + 8) u (2‖x‖ + r)² for samples within r
    of x, whose norms are at most ‖x‖ + r; u = 2⁻⁵³ in double precision. `norms` are ‖x‖ for each
    distance, `rounding` is the relative error of the coordinates themselves. Negative where nothing
    is known.
    """
    reach = 2.0 * norms + distances
    wrong = (n_columns + 8) * 2.0**-53 * np.square(reach)
    known: Floats = np.sqrt(np.maximum(np.square(distances) - wrong, 0.0))
    return known - rounding * reach


def candidates_by_products(Q: Array, X: Array, norms: Floats, n_neighbors: int) -> Ints:
    """Return samples among which the nearest of every row certainly are.

    One matrix product gives ‖x‖² - 2xq, which orders the samples as their distances do, up to
    rounding. What lies within rounding of the last place stays a candidate. Samples are best near
    the origin; `norms` are their `squared_norms`, and a distance from every row to every sample
    must fit into memory. Where a row has fewer candidates than others, its last is repeated.
    """
    n, d = X.shape
    if X.dtype == np.float32 and not _LEAST_SQUARE < norms.max() < _MOST_SQUARE:
        Q, X = Q.astype(np.float64), X.astype(np.float64)  # products would over- or underflow
    scores = norms - 2.0 * (Q @ X.T)
    count = min(n_neighbors + SPARE, n)
    if count == n:
        return np.broadcast_to(np.arange(n), scores.shape)
    found = np.argpartition(scores, count - 1, axis=1)[:, :count]
    # Sums of d products are wrong by less than d roundings of the product of the norms, and who
    # is near a row has about its norm. The last place is the better known the nearer it is.
    own = squared_norms(Q)
    kept = np.take_along_axis(scores, found, axis=1)
    last = np.partition(kept, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    reach = np.sqrt(own) + np.sqrt(np.maximum(last + own, 0.0))
    limit = last + 16.0 * (d + 2) * (np.finfo(X.dtype).eps * np.square(reach) + _TINY)
    doubtful = np.flatnonzero(kept.max(axis=1) <= limit)
    if not doubtful.size:
        return found
    lists = [np.flatnonzero(scores[row] <= limit[row]) for row in doubtful]
    wide = np.empty((len(found), max(map(len, lists))), dtype=np.intp)
    wide[:, :count], wide[:, count:] = found, found[:, -1:]
    for row, candidates in zip(doubtful, lists):
        wide[row, : len(candidates)], wide[row, len(candidates) :] = candidates, candidates[-1]
    return wide
