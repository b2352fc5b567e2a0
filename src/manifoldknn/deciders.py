"""Which labels decided a row, where classes vote.

The density of a class is a sum over its labels (see `densities`), so label j of class c has the
share K_ij / (s_j n_c) / Σ_c f_c(i) of all that was said of row i. K is symmetric: a few rows are
answered by walking from them, many by walking from the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.graph import ConstrainedGraph
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.progress import countdown
from manifoldknn.similarities import Similarities, combined
from manifoldknn.vote import heaviest
from manifoldknn.walk import chosen_way, prepared_graph
from manifoldknn.walked import log_columns

_BLOCK = 16  # walks at a time
_ENTRIES = 1 << 23  # of rows times labels that are held at a time


def deciding_labels(
    graph: ConstrainedGraph,
    z: NDArray[np.float64],
    indices: NDArray[np.intp],
    labeled: NDArray[np.intp],
    log_divisors: NDArray[np.float64],
    alpha: float,
    n_kept: int,
    *,
    tol: float,
    max_iter: int,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the labels with the largest shares in what is said of some rows.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    z, indices : ndarray of shape (n_rows, n_neighbors)
        The rows, as convex combinations of rows of the graph.
    labeled : ndarray of int
        Labelled rows.
    log_divisors : ndarray of shape (n_labeled,)
        log (s_j n_c).
    alpha, tol, max_iter
        As in `class_densities`.
    n_kept : int
        How many per row.

    Returns
    -------
    shares : ndarray of shape (n_rows, n_kept)
        Of all labels together, largest first; zeros where no label reaches the row.
    labels : ndarray of shape (n_rows, n_kept)
        Positions in `labeled`.

    Notes
    -----
    A walk per row or per label, whichever is less; memory O(n_rows·n_kept) and a block.
    """
    there, place = np.unique(indices, return_inverse=True)
    place = place.reshape(indices.shape)
    by_label = len(labeled) < len(there)
    normalized = NormalizedGraph(graph)
    way = chosen_way(normalized, alpha, n_columns=min(len(labeled), len(there)))
    ready = prepared_graph(normalized, np.union1d(labeled, there), alpha, way)
    accuracy: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    kept = np.full((len(z), 0), -np.inf), np.zeros((len(z), 0), dtype=np.intp)
    total = np.full(len(z), -np.inf)
    step = max(_BLOCK, _ENTRIES // max(1, len(there)))
    blocks = np.array_split(np.arange(len(labeled)), -(-len(labeled) // step))
    for block in countdown(iter(blocks), len(blocks), "blocks of labels"):
        sources, rows = (labeled[block], there) if by_label else (there, labeled[block])
        parts = np.array_split(sources, -(-len(sources) // _BLOCK))
        logs = np.hstack([log_columns(ready, part, rows, alpha, **accuracy) for part in parts])
        known = Similarities.from_logarithms((logs if by_label else logs.T) - log_divisors[block])
        found = combined(z, place, known).logarithms()
        total = np.logaddexp(total, np.logaddexp.reduce(found, axis=1))
        kept = _merged(kept, found, block, n_kept)
    order = np.argsort(-kept[0], axis=1, kind="stable")
    logs, labels = (np.take_along_axis(part, order, axis=1) for part in kept)
    return np.exp(logs - np.where(np.isneginf(total), 0.0, total)[:, None]), labels


def _merged(
    kept: tuple[NDArray[np.float64], NDArray[np.intp]],
    logs: NDArray[np.float64],
    numbers: NDArray[np.intp],
    n_kept: int,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the heaviest of those that were kept and a new block."""
    logs = np.hstack([kept[0], logs])
    labels = np.hstack([kept[1], np.broadcast_to(numbers, (len(logs), len(numbers)))])
    _, order = heaviest(logs, n_kept)
    return np.take_along_axis(logs, order, axis=1), np.take_along_axis(labels, order, axis=1)
