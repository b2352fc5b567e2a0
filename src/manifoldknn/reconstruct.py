"""A new row's walk weights from those of its neighbours (equations 7 to 9).

A new row x is written as the convex combination Σ z_i x_i of its nearest
samples that comes closest to it; its walk weights are the same combination of
theirs, w̄(x,·) = Σ z_i w̄(x_i,·). A row that equals a sample has all of z on that
sample and so gets exactly its weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from manifoldknn.distances import row_norms
from manifoldknn.nearest import NearestLabeled
from manifoldknn.neighbors import NeighborIndex, Neighbors
from manifoldknn.simplex import simplex_weights
from manifoldknn.threads import in_threads

_CHUNK_BYTES = 1 << 24  # of the largest array alive while some rows are worked on
_COMBINED_BYTES = 1 << 22  # the same where several such arrays are alive in every thread
_ROWS_PER_THREAD = 2048  # at a time: enough to share out, and never too few to be quick
_MOST_ROWS = 1 << 14
_LEAST_ROWS = 64


@dataclass(frozen=True)
class Reconstruction:
    """Rows as convex combinations of samples.

    Attributes
    ----------
    indices : ndarray of shape (n_queries, n_neighbors)
        The samples that a row is combined of, nearest first.
    z : ndarray of shape (n_queries, n_neighbors)
        Convex weights.
    residuals : ndarray of shape (n_queries,)
        ‖x - Σ z_i x_i‖, the distance that is left.
    spacings : ndarray of shape (n_queries,)
        ‖x - x_1‖, the distance to the nearest sample.
    gaps : ndarray of shape (n_queries,)
        The same to the nearest that is not equal; 0 if all of them are.
    """

    indices: NDArray[np.intp]
    z: NDArray[np.float64]
    residuals: NDArray[np.float64]
    spacings: NDArray[np.float64]
    gaps: NDArray[np.float64]


def row_chunks(
    n_rows: int, *values_per_row: int, most_bytes: int = _CHUNK_BYTES
) -> Iterator[slice]:
    """Yield slices over rows such that what is computed for one of them fits a chunk.

    Parameters
    ----------
    n_rows : int
        Rows in all.
    *values_per_row : int
        Numbers that a row brings along in each of the arrays alive at a time.
    most_bytes : int, optional
        Size of a chunk.

    Yields
    ------
    slice
        From 64 to 16,384 rows: 16 MiB per array, or `most_bytes`, where a row allows it.
    """
    step = most_bytes // (8 * max(1, *values_per_row))
    step = min(max(step, _LEAST_ROWS), _MOST_ROWS)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def reconstruction(
    Q: Any,
    index: NeighborIndex,
    *,
    n_neighbors: int,
    found: Neighbors | None = None,
    n_jobs: int | None = None,
) -> Reconstruction:
    """Write rows as the nearest convex combinations of their neighbours (equation 7).

    Parameters
    ----------
    Q : ndarray or CSR matrix of shape (n_queries, n_features)
        Rows.
    index : NeighborIndex
        Search over the samples.
    n_neighbors : int
        Neighbours that a row is reconstructed from.
    found : Neighbors, optional
        Those neighbours, where they are known already.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    Reconstruction
        Combinations and what is left.

    Notes
    -----
    Cost per row: a neighbour search and O(k²d). Beyond the answer, memory is
    bounded by working in chunks.
    """
    indices = (index.query(Q, n_neighbors) if found is None else found).indices
    n = len(indices)
    made = Reconstruction(indices, np.empty(indices.shape), np.empty(n), np.empty(n), np.empty(n))

    def fill(part: slice) -> None:
        _reconstruct(Q, index, part, made)

    step = _CHUNK_BYTES // (8 * max(1, indices.shape[1] * Q.shape[1]))
    step = min(max(step, 1), _ROWS_PER_THREAD)
    parts = [slice(start, start + step) for start in range(0, n, step)]
    deque(in_threads(fill, parts, n_jobs), maxlen=0)
    return made


def _reconstruct(Q: Any, index: NeighborIndex, part: slice, made: Reconstruction) -> None:
    """Fill in some rows."""
    here = made.indices[part]
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


def reconstructed_weights(
    Q: Any,
    index: NeighborIndex,
    known: NearestLabeled,
    *,
    n_neighbors: int,
    n_voters: int | None = None,
    n_jobs: int | None = None,
) -> NearestLabeled:
    """Return the walk weights of new rows (equations 8 and 9).

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
    n_voters : int, optional
        How many voters there are; counted if not given.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    NearestLabeled
        As many voters per row as `known` keeps.

    Notes
    -----
    Cost per row: a neighbour search and O(k²d + k·kept); beyond the answer, memory
    is bounded by working in chunks.
    """
    made = reconstruction(Q, index, n_neighbors=n_neighbors, n_jobs=n_jobs)
    return combined(made.z, made.indices, known, n_voters=n_voters, n_jobs=n_jobs)


def combined(
    z: NDArray[np.float64],
    indices: NDArray[np.intp],
    known: NearestLabeled,
    *,
    n_voters: int | None = None,
    n_jobs: int | None = None,
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
    n_voters : int, optional
        How many voters there are; counted if not given.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    NearestLabeled
        Walk weights of the combinations.
    """
    if n_voters is None:
        n_voters = int(known.voters.max()) + 1
    n_kept = known.weights.shape[1]
    answer = NearestLabeled(
        np.empty((len(z), n_kept)), np.empty((len(z), n_kept), np.int32), np.empty(len(z))
    )

    def fill(part: slice) -> None:
        _combine(z[part], indices[part], known, n_voters, answer.rows(part))

    parts = row_chunks(len(z), z.shape[1] * n_kept, n_voters, most_bytes=_COMBINED_BYTES)
    deque(in_threads(fill, parts, n_jobs), maxlen=0)
    return answer


def _combine(
    z: NDArray[np.float64],
    indices: NDArray[np.intp],
    known: NearestLabeled,
    n_voters: int,
    out: NearestLabeled,
) -> None:
    """Combine some rows, all at once, into the arrays of `out`."""
    n_queries, n_kept = len(z), known.weights.shape[1]
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
        out.log_scale[:] = shift + np.log(largest[:, 0])
    out.weights[:] = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    out.voters[:] = order


def coordinates(rows: Any, metric: Any) -> NDArray[np.float64]:
    """Return rows as dense doubles in the space that reconstruction is done in."""
    dense = rows.toarray() if sparse.issparse(rows) else rows
    dense = np.asarray(dense, dtype=np.float64)
    return np.asarray(normalize(dense)) if metric == "cosine" else dense
