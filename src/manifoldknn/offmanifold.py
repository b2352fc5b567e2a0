"""How far a row lies off the surface that its neighbours lie on.

A row is written as the convex combination of its nearest samples that comes
closest to it (equation 7); the length of what is left over is its residual. Where
data are sparse or noisy every residual is large, so a row's is compared with
those of its own neighbours:

    score(x) = r(x) / median of r over the neighbours of x.

About 1 is ordinary; 3 means three times as far off as its neighbours are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.neighbors import NeighborIndex, Neighbors
from manifoldknn.reconstruct import _coordinates
from manifoldknn.simplex import simplex_weights

__all__ = ["new_row_scores", "residuals", "sample_scores"]

_CHUNK_BYTES = 1 << 24
_SMALLEST_SHARE = 0.1  # of the typical residual: where rows repeat each other, that counts as usual


def residuals(rows: Any, index: NeighborIndex, neighbors: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return ‖x - Σ z_i x_i‖ for rows and their neighbours among the samples.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows.
    index : NeighborIndex
        Search over the samples.
    neighbors : ndarray of shape (n_rows, k)
        Samples that each row is reconstructed from.

    Returns
    -------
    ndarray of shape (n_rows,)
        The residuals. O(k²d) time per row.
    """
    out = np.empty(len(neighbors))
    step = max(1, _CHUNK_BYTES // (8 * neighbors.shape[1] * rows.shape[1]))
    for start in range(0, len(neighbors), step):
        part = slice(start, start + step)
        indices = neighbors[part]
        points = _coordinates(rows[part], index.metric)
        around = _coordinates(index.X[indices.ravel()], index.metric)
        around = around.reshape(*indices.shape, -1)
        z = simplex_weights(points, around)
        difference = points - np.einsum("ik,ikd->id", z, around)
        out[part] = np.sqrt(np.einsum("id,id->i", difference, difference))
    return out


def sample_scores(
    index: NeighborIndex, neighbors: Neighbors
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores and residuals of the samples themselves.

    Parameters
    ----------
    index : NeighborIndex
        Search over the samples.
    neighbors : Neighbors
        Nearest *other* samples of each.

    Returns
    -------
    scores, residuals : ndarray of shape (n_samples,)
        A sample that repeats another has residual and score 0.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.neighbors import ExactIndex
    >>> from manifoldknn.offmanifold import sample_scores
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> index = ExactIndex(np.vstack([circle, [[1.2, 0.0]]]))
    >>> scores, _ = sample_scores(index, index.among_samples(4))
    >>> int(scores.argmax()), bool(scores.max() > 10)
    (60, True)
    """
    own = residuals(index.X, index, neighbors.indices)
    return _relative(own, own, neighbors.indices), own


def new_row_scores(rows: Any, index: NeighborIndex, n_neighbors: int) -> NDArray[np.float64]:
    """Return the scores of new rows.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        New rows, as the samples are.
    index : NeighborIndex
        Search over the samples.
    n_neighbors : int
        Samples that a row is reconstructed from.

    Returns
    -------
    ndarray of shape (n_rows,)
        Scores; 0 for a row that equals a sample.
    """
    k = min(n_neighbors, index.n_samples - 1)
    found = index.query(rows, k).indices
    needed, place = np.unique(found, return_inverse=True)
    samples = index.X[needed]
    around = index.query(samples, k + 1)
    # A sample finds itself at distance 0, if not a copy of itself.
    itself = around.indices == needed[:, None]
    itself[~itself.any(axis=1), -1] = True
    others = around.indices[~itself].reshape(len(needed), k)
    own = residuals(samples, index, others)
    return _relative(residuals(rows, index, found), own, place.reshape(found.shape))


def _relative(
    residual: NDArray[np.float64], own: NDArray[np.float64], neighbors: NDArray[np.intp]
) -> NDArray[np.float64]:
    usual = np.median(own[neighbors], axis=1)
    positive = own[own > 0]
    floor = _SMALLEST_SHARE * float(np.median(positive)) if positive.size else 1.0
    return residual / np.maximum(usual, floor)
