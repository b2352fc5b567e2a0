"""A new row's walk weights from those of its neighbours (equations 7 to 9).

A new row x is written as the convex combination Σ z_i x_i of its nearest
samples that comes closest to it; its walk weights are the same combination of
theirs, w̄(x,·) = Σ z_i w̄(x_i,·). A row that equals a sample has all of z on that
sample and so gets exactly its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from manifoldknn.neighbors import NeighborIndex
from manifoldknn.simplex import simplex_weights
from manifoldknn.voters import NearestLabeled

_CHUNK_BYTES = 1 << 26


def reconstructed_weights(
    Q: Any, index: NeighborIndex, known: NearestLabeled, *, n_neighbors: int
) -> NearestLabeled:
    """Return the walk weights of new rows.

    Parameters
    ----------
    Q : ndarray or CSR matrix of shape (n_queries, n_features)
        New rows.
    index : NeighborIndex
        Search over the samples.
    known : NearestLabeled
        Walk weights of the samples.
    n_neighbors : int
        Neighbours that a new row is reconstructed from.

    Returns
    -------
    NearestLabeled
        As many voters per row as `known` keeps.

    Notes
    -----
    Cost per row: a neighbour search and O(k²d + k·kept); memory is bounded by
    working in chunks.
    """
    found = index.query(Q, n_neighbors)
    n_voters = int(known.voters.max()) + 1
    width = max(n_neighbors * Q.shape[1], n_neighbors * known.weights.shape[1], n_voters)
    step = max(1, _CHUNK_BYTES // (8 * width))
    answers = []
    for start in range(0, len(found.indices), step):
        part = slice(start, start + step)
        indices = found.indices[part]
        z = simplex_weights(
            _coordinates(Q[part], index.metric),
            _coordinates(index.X[indices.ravel()], index.metric).reshape(*indices.shape, -1),
        )
        answers.append(combined(z, indices, known))
    return NearestLabeled(
        np.concatenate([a.weights for a in answers]),
        np.concatenate([a.voters for a in answers]),
        np.concatenate([a.log_scale for a in answers]),
    )


def combined(
    z: NDArray[np.float64], indices: NDArray[np.intp], known: NearestLabeled
) -> NearestLabeled:
    """Return Σ z_i w̄(x_i,·) for every row, heaviest voters first.

    Parameters
    ----------
    z : ndarray of shape (n_queries, n_neighbors)
        Convex weights.
    indices : ndarray of shape (n_queries, n_neighbors)
        Samples they belong to.
    known : NearestLabeled
        Walk weights of the samples.

    Returns
    -------
    NearestLabeled
        Walk weights of the combinations.
    """
    n_queries, n_kept = len(z), known.weights.shape[1]
    n_voters = int(known.voters.max()) + 1
    # Neighbours may differ by hundreds of orders of magnitude: the largest sets the scale.
    scales = np.where(z > 0, known.log_scale[indices], -np.inf)
    log_scale = scales.max(axis=1)
    shift = np.where(np.isneginf(log_scale), 0.0, log_scale)
    share = z * np.exp(scales - shift[:, None])
    terms = share[:, :, None] * known.weights[indices]
    place = np.arange(n_queries)[:, None, None] * n_voters + known.voters[indices].astype(np.intp)
    sums = np.bincount(place.ravel(), terms.ravel(), minlength=n_queries * n_voters)
    sums = sums.reshape(n_queries, n_voters)
    order = np.argsort(-sums, axis=1, kind="stable")[:, :n_kept]
    weights = np.take_along_axis(sums, order, axis=1)
    largest = weights[:, :1]
    with np.errstate(divide="ignore"):
        log_scale = shift + np.log(largest[:, 0])
    return NearestLabeled(
        np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0),
        order.astype(np.int32),
        log_scale,
    )


def _coordinates(rows: Any, metric: Any) -> NDArray[np.float64]:
    dense = rows.toarray() if sparse.issparse(rows) else rows
    dense = np.asarray(dense, dtype=np.float64)
    return np.asarray(normalize(dense)) if metric == "cosine" else dense
