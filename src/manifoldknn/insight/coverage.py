"""Rows that stand for others: greedy coverage by the walk.

With K = (D - αW)⁻¹ on the graph without labels, N_ij = K_ij / √(K_ii K_jj) tells how near two rows
are, from 0 to 1. A row r is covered as far as the nearest row that has, or soon gets, a label.
Every step takes the row j that adds most, for weights u of what there is to find out,

    gain_j = Σ_r u_r max(0, N_rj - covered_r),   then   covered_r = max(covered_r, N_rj).

What comes later changes nothing of what came first, so the first two of five are the two of two.

Of very many rows, those that hang together most are one: a walker on groups is as far as one on
rows, and there are few of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.threads import in_threads
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.vote.deciders import log_columns
from manifoldknn.walk.aggregates import contracted, grouped
from manifoldknn.walk.choose import PUBLISHED_ALPHA, chosen_way, prepared_graph
from manifoldknn.walk.label_columns import block_width
from manifoldknn.walk.normalized import NormalizedGraph

_TOL, _MAX_ITER = 0.01, 1000
_MOST_NODES = 40_000  # that are walked over; more rows are put into groups
_FAINTEST = -600.0  # logarithm of a weight beside the largest, in groups


class Nearness:
    """N between some rows, these and others, to 0.01; and from these to any that come later.

    Costs a column of the walk, once, for each that is named, in blocks. Beyond 40,000 rows it is N
    between the groups of rows.
    """

    def __init__(
        self,
        graph: ConstrainedGraph,
        rows: NDArray[np.intp],
        others: NDArray[np.intp],
        alpha: float = PUBLISHED_ALPHA,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self._graph, self._alpha, self._node = _nodes(graph, alpha)
        self._rows, self._at = np.unique(self._node[rows], return_inverse=True)
        self._n_jobs = n_jobs
        self._own: NDArray[np.float64] | None = None
        self._near = np.empty((len(self._rows), 0), dtype=np.float32)
        self._place: dict[int, int] = {}  # of a node among the columns
        self._walk_from(self._rows)
        self.to(others)

    def to(self, others: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return N between the rows and others, a column for each of these."""
        nodes: list[int] = self._node[others].tolist()
        self._walk_from(
            np.array(
                [node for node in dict.fromkeys(nodes) if node not in self._place], dtype=np.intp
            )
        )
        places = np.array([self._place[node] for node in nodes], dtype=np.intp)
        return self._near[np.ix_(self._at, places)]

    def _walk_from(self, new: NDArray[np.intp]) -> None:
        if len(new):
            self._place |= {node: len(self._place) + at for at, node in enumerate(new.tolist())}
            self._near = np.hstack([self._near, self._walked(new)])

    def _walked(self, sources: NDArray[np.intp]) -> NDArray[np.float32]:
        rows, alpha = self._rows, self._alpha
        normalized = NormalizedGraph(self._graph)
        way = chosen_way(normalized, alpha, n_columns=len(sources))
        ready = prepared_graph(normalized, np.union1d(rows, sources), alpha, way)
        half = 0.5 * ready.log_degrees

        def solve(block: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            """Return log K_rj √(d_r d_j), and the same of every source with itself."""
            some = sources[block]
            wanted = np.concatenate([rows, some])
            # The entry of a row with itself is at least 1: errors are measured by that.
            least = half[some], -half
            logs = log_columns(
                ready, some, wanted, alpha, least=least, tol=_TOL, max_iter=_MAX_ITER
            )
            logs += half[wanted, None] + half[some]
            return logs[: len(rows)], np.diagonal(logs[len(rows) :])

        width = len(sources) if way.name == "dense" else block_width(self._graph.n_samples)
        blocks = np.array_split(np.arange(len(sources)), max(1, -(-len(sources) // width)))
        out = np.empty((len(rows), len(sources)), dtype=np.float32)
        own = np.empty(len(sources))
        threads = self._n_jobs if way.name == "iterate" else 1
        for block, (logs, of_block) in zip(blocks, in_threads(solve, blocks, threads)):
            out[:, block], own[block] = np.exp(logs - 0.5 * of_block), of_block
        if self._own is None:  # the rows themselves come first of all
            self._own = own[: len(rows)]
        out *= np.exp(-0.5 * self._own[:, None])
        return out


def _nodes(
    graph: ConstrainedGraph, alpha: float
) -> tuple[ConstrainedGraph, float, NDArray[np.intp]]:
    """Return the graph that is walked over, alpha on it, and the node of every row.

    With D and W of groups, and a share s of D outside of them, (1 - α) D + α (D - W) is up to a
    factor sD - α'W, where W has no edges within groups and α' = α / (α + (1 - α)/s). So walkers
    live as long as before.
    """
    everyone = np.arange(graph.n_samples)
    if graph.n_samples <= _MOST_NODES or not graph.is_sparse or (graph.must_link >= 0).any():
        return graph, alpha, everyone
    group = next((of for of in grouped(graph.log_weights) if of.max() < _MOST_NODES), everyone)
    weights = graph.log_weights.copy()
    weights.data = np.exp(np.maximum(weights.data - weights.data.max(), _FAINTEST))
    between = contracted(weights, group)
    outside = between.data.sum() / weights.data.sum()
    if not outside:
        return graph, alpha, everyone
    between.data = np.log(between.data)
    nobody = np.full(between.shape[0], -1, dtype=np.intp)
    return ConstrainedGraph(between, nobody), alpha / (alpha + (1 - alpha) / outside), group


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
