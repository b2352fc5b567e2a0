"""A new row as a convex combination of its neighbours (equation 7).

A new row x is written as the combination Σ z_i x_i of its nearest samples that comes
closest to it; its similarities are the same combination of theirs (see `similarities`). A
row that equals a sample has all of z on that sample and so gets exactly what it has.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from manifoldknn.base import Floats, Ints
from manifoldknn.base.distances import row_norms
from manifoldknn.base.threads import in_threads
from manifoldknn.extend.simplex import simplex_weights
from manifoldknn.search.neighbors import NeighborIndex, Neighbors

_CHUNK_BYTES = 1 << 24  # of the largest array alive while some rows are worked on
_ROWS_PER_THREAD = 2048  # at a time: enough to share out, and never too few to be quick


@dataclass(frozen=True)
class Reconstruction:
    """Rows as convex combinations of samples."""

    indices: Ints  # the samples that a row is combined of, nearest first
    z: Floats  # convex weights
    residuals: Floats  # ‖x - Σ z_i x_i‖, the distance that is left
    spacings: Floats  # ‖x - x_1‖, the distance to the nearest sample
    gaps: Floats  # the same to the nearest that is not equal; 0 if all of them are


def reconstruction(
    Q: Any,
    index: NeighborIndex,
    *,
    n_neighbors: int,
    found: Neighbors | None = None,
    n_jobs: int | None = None,
) -> Reconstruction:
    """Write rows as the nearest convex combinations of their neighbours (equation 7).

    `found` are those neighbours, where they are known already. Cost per row: a neighbour search and
    O(k²d). Beyond the answer, memory is bounded by working in chunks.
    """
    indices = (index.query(Q, n_neighbors) if found is None else found).indices
    n = len(indices)
    made = Reconstruction(indices, np.empty(indices.shape), np.empty(n), np.empty(n), np.empty(n))

    def fill(part: slice) -> None:
        here = indices[part]
        rows = coordinates(Q[part], index.metric)
        neighbors = coordinates(index.rows(here.ravel()), index.metric)
        neighbors = neighbors.reshape(*here.shape, -1)
        z = simplex_weights(rows, neighbors)
        spacings = row_norms(neighbors[:, 0, :] - rows)
        made.z[part], made.spacings[part] = z, spacings
        made.residuals[part] = row_norms(np.matmul(z[:, None, :], neighbors)[:, 0, :] - rows)
        gaps = spacings.copy()
        repeated = np.flatnonzero(spacings == 0)
        if repeated.size:
            away = neighbors[repeated] - rows[repeated, None, :]
            lengths = row_norms(away.reshape(-1, rows.shape[1])).reshape(len(repeated), -1)
            nearest = np.where(lengths > 0, lengths, np.inf).min(axis=1)
            gaps[repeated] = np.where(np.isinf(nearest), 0.0, nearest)
        made.gaps[part] = gaps

    step = _CHUNK_BYTES // (8 * max(1, indices.shape[1] * Q.shape[1]))
    step = min(max(step, 1), _ROWS_PER_THREAD)
    parts = [slice(start, start + step) for start in range(0, n, step)]
    deque(in_threads(fill, parts, n_jobs), maxlen=0)
    return made


def coordinates(rows: Any, metric: Any) -> Floats:
    """Return rows as dense doubles in the space that reconstruction is done in."""
    dense = rows.toarray() if sparse.issparse(rows) else rows
    dense = np.asarray(dense, dtype=np.float64)
    return np.asarray(normalize(dense)) if metric == "cosine" else dense
