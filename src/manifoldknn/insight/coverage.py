"""Rows that stand for others: greedy coverage by the walk.

With K = (D - αW)⁻¹ on the graph without labels, N_ij = K_ij / √(K_ii K_jj) tells how near two rows
are, from 0 to 1. A row r is covered as far as the nearest row that has, or soon gets, a label.
Every step takes the row j that adds most, for weights u of what there is to find out,

    gain_j = Σ_r u_r max(0, N_rj - covered_r),   then   covered_r = max(covered_r, N_rj).

What comes later changes nothing of what came first, so the first two of five are the two of two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.threads import in_threads
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.vote.deciders import log_columns
from manifoldknn.walk.choose import PUBLISHED_ALPHA, chosen_way, prepared_graph
from manifoldknn.walk.label_columns import block_width
from manifoldknn.walk.normalized import NormalizedGraph

_TOL, _MAX_ITER = 0.01, 1000


def similarities(
    graph: ConstrainedGraph,
    rows: NDArray[np.intp],
    others: NDArray[np.intp],
    alpha: float = PUBLISHED_ALPHA,
    *,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Return N between some rows, and these and others: (n_rows, n_rows + n_others), to 0.01.

    Nobody is named twice. Costs a column of the walk for each of all these rows, in blocks.
    """
    sources = np.concatenate([rows, others])
    normalized = NormalizedGraph(graph)
    way = chosen_way(normalized, alpha, n_columns=len(sources))
    ready = prepared_graph(normalized, np.sort(sources), alpha, way)
    half = 0.5 * ready.log_degrees

    def solve(block: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log K_rj √(d_r d_j), and the same of every source with itself."""
        some = sources[block]
        wanted = np.concatenate([rows, some])
        # The entry of a row with itself is at least 1: errors are measured by that.
        least = half[some], -half
        logs = log_columns(ready, some, wanted, alpha, least=least, tol=_TOL, max_iter=_MAX_ITER)
        logs += half[wanted, None] + half[some]
        return logs[: len(rows)], np.diagonal(logs[len(rows) :])

    width = len(sources) if way.name == "dense" else block_width(graph.n_samples)
    blocks = np.array_split(np.arange(len(sources)), max(1, -(-len(sources) // width)))
    out = np.empty((len(rows), len(sources)), dtype=np.float32)
    own = np.empty(len(sources))
    threads = n_jobs if way.name == "iterate" else 1
    for block, (logs, of_block) in zip(blocks, in_threads(solve, blocks, threads)):
        out[:, block], own[block] = np.exp(logs - 0.5 * of_block), of_block
    out *= np.exp(-0.5 * own[: len(rows), None])
    return out


def covering(
    near: NDArray[np.float32], weights: NDArray[np.float64], covered: NDArray[np.float32]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield all rows, each the one that adds most to those before it; of equal ones the first.

    `near` is N between them, `weights` are u, and rows are `covered` so far before. With a row
    comes by how much it covers each row more. O(n_rows²) at first, and O(n_rows) for each gain that
    is computed anew.
    """
    weights = weights.astype(np.float32)
    gains = weights @ np.maximum(near - covered[:, None], 0)
    for _ in range(len(near)):
        while True:  # gains only fall, so old ones are bounds: few are computed anew
            row = int(gains.argmax())
            added = np.maximum(near[:, row] - covered, 0)
            gains[row] = min(gains[row], weights @ added)
            if gains.argmax() == row:
                break
        gains[row], covered = -1.0, covered + added
        yield row, added


def drawn(
    weights: NDArray[np.float64], m: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Draw about `m` rows, heavy ones sooner; return them, and the chance that each had.

    Weights divided by chances then add up, but for luck, to what those of all rows do.

    >>> rows, chance = drawn(np.array([0.1, 5.0, 0.1, 0.2]), 2, np.random.default_rng(0))
    >>> 1 in rows, chance[rows == 1]
    (True, array([1.]))
    """
    chance, free = np.ones(len(weights)), np.ones(len(weights), dtype=bool)
    while m < len(weights):
        share = (m - (~free).sum()) * weights[free] / weights[free].sum()
        chance[free] = np.minimum(share, 1.0)
        if (share <= 1.0).all():
            break
        free[free] = share < 1.0
    steps = np.floor(np.cumsum(chance) + rng.random())
    rows = np.flatnonzero(np.diff(steps, prepend=0.0)) if m < len(weights) else np.arange(len(free))
    return rows, chance[rows]
