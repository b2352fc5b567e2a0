"""Which labels decided a row, where classes vote.

The density of a class is a sum over its labels (see `densities`), so label j of class c has the
share K_ij / (s_j n_c) / Σ_c f_c(i) of all that was said of row i. K is symmetric: a few rows are
answered by walking from them, many by walking from the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.base.progress import countdown
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.vote.similarities import Similarities, combined
from manifoldknn.vote.votes import heaviest
from manifoldknn.walk.choose import chosen_way, prepared_graph
from manifoldknn.walk.levels import Columns
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph, solve_columns

_BLOCK = 8  # walks at a time: about 1 kB per row
_ENTRIES = 1 << 23  # of rows times labels that are held at a time


def deciding_labels(
    graph: ConstrainedGraph, z: Floats, indices: Ints, labeled: Ints, log_divisors: Floats,
    log_largest: Floats, alpha: float, n_kept: int, *, tol: float, max_iter: int,
    n_jobs: int | None = None,
) -> tuple[Floats, Ints]:  # fmt: skip
    """Return the labels with the largest shares in what is said of some rows.

    The rows are convex combinations `z` of the rows `indices` of the graph. Of every label,
    `log_divisors` is log (s_j n_c); of every row of the graph, `log_largest` is the logarithm of
    what some label says of it, at least.

    `n_kept` of each per row come back: shares of all labels together, largest first, zeros where no
    label reaches the row; and positions in `labeled`. A walk per row or per label, whichever is
    less; memory O(n_rows·n_kept) and a block.
    """
    there, place = np.unique(indices, return_inverse=True)
    place = place.reshape(indices.shape)
    normalized = NormalizedGraph(graph)
    way = chosen_way(normalized, alpha, n_columns=min(len(labeled), len(there)))
    ready = prepared_graph(normalized, np.union1d(labeled, there), alpha, way, n_jobs=n_jobs)
    accuracy: dict[str, Any] = {"tol": tol, "max_iter": max_iter}

    kept = np.full((len(z), 0), -np.inf), np.zeros((len(z), 0), dtype=np.intp)
    total = np.full(len(z), -np.inf)
    if len(labeled) < len(there):
        parts = _blocks(len(labeled), _BLOCK)
        for block in countdown(iter(parts), len(parts), "blocks of labels"):
            least = -log_divisors[block], log_largest
            logs = log_columns(ready, labeled[block], there, alpha, least=least, **accuracy)
            known = Similarities.from_logarithms(logs - log_divisors[block])
            found = combined(z, place, known).logarithms()
            total = np.logaddexp(total, np.logaddexp.reduce(found, axis=1))
            kept = _merged(kept, found, block, n_kept)
    else:
        pieces = []
        for rows in _blocks(len(z), max(_BLOCK, _ENTRIES // (len(labeled) * z.shape[1]))):
            some, at = np.unique(indices[rows], return_inverse=True)
            parts = [some[part] for part in _blocks(len(some), _BLOCK)]
            said = [log_columns(ready, part, labeled, alpha, **accuracy).T for part in parts]
            known = Similarities.from_logarithms(np.vstack(said) - log_divisors)
            found = combined(z[rows], at.reshape(len(rows), -1), known).logarithms()
            total[rows] = np.logaddexp.reduce(found, axis=1)
            nothing = kept[0][rows], kept[1][rows]
            pieces.append(_merged(nothing, found, np.arange(len(labeled)), n_kept))
        kept = np.vstack([logs for logs, _ in pieces]), np.vstack([found for _, found in pieces])
    shares = np.exp(kept[0] - np.where(np.isneginf(total), 0.0, total)[:, None])
    return shares, kept[1]


def _blocks(count: int, size: int) -> list[Ints]:
    """Return 0, 1, … count - 1 in blocks."""
    return np.array_split(np.arange(count), -(-count // size))


def log_columns(
    graph: NormalizedGraph | ReducedGraph, sources: Ints, rows: Ints, alpha: float, *,
    least: tuple[Floats, Floats] | None = None, **accuracy: Any,
) -> Floats:  # fmt: skip
    """Return log K between some rows and others, every entry accurate by itself.

    K = (D - αW)⁻¹, a row for each of `rows` and a column for each of `sources`, where walkers
    start; a reduced graph must have kept the sources. `least` are logarithms of factors of the
    columns, and for every row of the graph of an entry that it is known to have in some column,
    times its factor: accuracy beside that is enough. `accuracy` are `tol` and `max_iter`.
    """
    half, n_columns = 0.5 * graph.log_degrees, len(sources)
    views, reference = np.where(np.eye(n_columns, dtype=bool), 0.0, -np.inf), None
    if least is not None:
        views, reference = least[0][None], (least[1] + half)[None]
    columns = Columns(
        rows=sources, cols=np.arange(n_columns), log_values=-half[sources], views=views
    )
    found = solve_columns(graph, columns, alpha=alpha, rows=rows, reference=reference, **accuracy)
    return found.log_values - half[rows, None]


def _merged(
    kept: tuple[Floats, Ints], logs: Floats, numbers: Ints, n_kept: int
) -> tuple[Floats, Ints]:
    """Return the heaviest of those that were kept and a new block."""
    logs = np.hstack([kept[0], logs])
    labels = np.hstack([kept[1], np.broadcast_to(numbers, (len(logs), len(numbers)))])
    _, order = heaviest(logs, n_kept)
    return np.take_along_axis(logs, order, axis=1), np.take_along_axis(labels, order, axis=1)
