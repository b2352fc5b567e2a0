"""The walk from all labelled samples on a device, and what the vote needs of it.

Label columns of (I - αP)⁻¹ in blocks as wide as memory allows; of each row only the
heaviest weights so far are kept. The answer is that of `manifoldknn.voters.label_walk`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manifoldknn.gpu.graph import TorchGraph
from manifoldknn.gpu.normalized import NormalizedTorchGraph
from manifoldknn.gpu.peeling import TorchSolution, solve_on_device
from manifoldknn.gpu.tensors import free_bytes, is_out_of_memory, release
from manifoldknn.gpu.transfer import to_numpy
from manifoldknn.nearest import NearestLabeled
from manifoldknn.peeling import Columns
from manifoldknn.progress import countdown
from manifoldknn.voters import LabelWalk, kept_per_row, label_walk

logger = logging.getLogger(__name__)

_ENTRIES = 1 << 28  # rows times columns of a block, at most
_WIDEST = 128
_BYTES_PER_ENTRY = 120
_SHARE_OF_FREE = 0.8
_SORTED_AT_ONCE = 1 << 25
_ROUGH = 0.1  # accuracy of what only tells the scale of a row


def torch_label_walk(
    graph: TorchGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    *,
    n_neighbors: int,
    alpha: float,
    tol: float,
    max_iter: int,
    by_class: bool | None = None,
) -> LabelWalk:
    """Walk from all labelled samples and keep what the vote needs.

    Parameters
    ----------
    graph : TorchGraph
        The graph.
    labeled, codes : ndarray of int
        Labelled samples and their class numbers.
    n_neighbors : int
        k of the vote.
    alpha, tol, max_iter
        As in `walk_weights`.
    by_class : bool, optional
        Force class sums or single samples; by default, what is cheaper.

    Returns
    -------
    LabelWalk
        Voters and their weights for every row, as NumPy arrays.

    Notes
    -----
    Memory is O(n·(n_kept + block)). Two runs give the same numbers, bit for bit, if
    blocks are the same; those are narrower where memory is short. Where not even one
    column fits, the CPU walks.
    """
    accuracy: dict[str, Any] = {"alpha": alpha, "tol": tol, "max_iter": max_iter}
    try:
        return _label_walk(graph, labeled, codes, n_neighbors, by_class, **accuracy)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    logger.info("out of memory on %s: walking on the CPU", graph.device)
    release(graph.device)
    walked = graph.graph_to_numpy()
    return label_walk(
        walked, labeled, codes, n_neighbors=n_neighbors, by_class=by_class, **accuracy
    )


def _label_walk(
    graph: TorchGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    n_neighbors: int,
    by_class: bool | None,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
) -> LabelWalk:
    n_labeled, n_classes = len(labeled), int(codes.max()) + 1
    if by_class is None:
        by_class = n_neighbors >= n_labeled > 2 * n_classes
    walk = _Walk(NormalizedTorchGraph(graph), labeled, codes, alpha, tol, max_iter)
    if by_class:
        nearest = walk.heaviest(n_classes, n_classes, walk.log_class_weights, columns_each=2)
        voting, voter_classes = n_classes, np.arange(n_classes)
    else:
        n_kept = kept_per_row(graph.n_samples, n_labeled, n_neighbors)
        nearest = walk.heaviest(n_labeled, n_kept, walk.log_label_weights)
        voting, voter_classes = min(n_neighbors, n_labeled), codes
    return LabelWalk(nearest, voter_classes, voting, by_class, walk.n_iter, walk.converged)


class _Walk:
    """Columns of the walk, block by block, and the count of what they took."""

    def __init__(
        self,
        graph: NormalizedTorchGraph,
        labeled: NDArray[np.intp],
        codes: NDArray[np.intp],
        alpha: float,
        tol: float,
        max_iter: int,
    ) -> None:
        self.graph, self.labeled, self.codes = graph, labeled, codes
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self.half = 0.5 * graph.log_degrees
        self.source_half = self.half[torch.as_tensor(labeled, device=graph.device)].cpu().numpy()
        self.reference: torch.Tensor | None = None
        self.n_iter, self.converged = 0, True

    def heaviest(
        self,
        n_voters: int,
        n_kept: int,
        log_weights: Callable[[NDArray[np.intp]], TorchSolution],
        columns_each: int = 1,
    ) -> NearestLabeled:
        """Return the heaviest voters of every row."""
        width = max(1, block_width(self.graph.n_samples, self.graph.device) // columns_each)
        chosen: _Heaviest | None = None
        for block, found in countdown(
            self._blocks(n_voters, width, log_weights), -(-n_voters // width), "blocks of labels"
        ):
            self.n_iter += found.n_iter
            self.converged &= found.converged
            if chosen is None:
                chosen = _Heaviest(found.log_values, n_kept)
            else:
                chosen.add(found.log_values, int(block[0]))
            del found
        assert chosen is not None
        return chosen.relative()

    def _blocks(
        self, n_voters: int, width: int, log_weights: Callable[[NDArray[np.intp]], TorchSolution]
    ) -> Iterator[tuple[NDArray[np.intp], TorchSolution]]:
        """Yield blocks of voters and their weights; narrower ones once memory runs out."""
        left = np.arange(n_voters)
        while left.size:
            width = -(-left.size // -(-left.size // width))  # as many blocks, all alike
            block = left[:width]
            try:
                if width < n_voters and self.reference is None:
                    self._find_scales(n_voters)
                found = log_weights(block)
            except RuntimeError as error:
                if not is_out_of_memory(error) or width == 1:
                    raise
                width = -(-width // 2)
                logger.info("out of memory: going on with %d label columns at a time", width)
            else:
                left = left[width:]
                yield block, found
                continue
            release(self.graph.device)  # outside the handler, which would keep the block alive

    def _find_scales(self, n_voters: int) -> None:
        """Learn how large the largest entry of every row is at least: no less than the mean."""
        total = self._class_columns(np.zeros(1, dtype=np.intp), np.zeros_like(self.codes), _ROUGH)
        self.n_iter += total.n_iter
        self.converged &= total.converged
        mean = total.log_values.T - math.log(n_voters) + math.log1p(-_ROUGH)
        self.reference = mean.contiguous()

    def log_label_weights(self, block: NDArray[np.intp]) -> TorchSolution:
        """Return log w̄ between every sample and some labelled ones."""
        half = self.source_half[block]
        columns = Columns(
            rows=self.labeled[block],
            cols=np.arange(len(block)),
            log_values=np.zeros(len(block)),
            views=np.stack([half, -half]),  # P_TRW,ij and P_TRW,ji, up to a factor of the row
        )
        # The sums over all labels of x_ij √d_j and of x_ij / √d_j come in the other order.
        reference = None if self.reference is None else self.reference.flip(0)
        found = self._solved(columns, self.tol, reference)
        difference = self.half[:, None] - torch.as_tensor(half, device=self.graph.device)
        cosh = torch.logaddexp(difference, -difference).sub_(math.log(2.0))
        found.log_values.add_(cosh)
        return found

    def log_class_weights(self, block: NDArray[np.intp]) -> TorchSolution:
        """Return log Σ_{j of class c} w̄_ij for every sample and some classes."""
        both = self._class_columns(block, self.codes, self.tol, self.reference)
        half = self.half[:, None]
        back = both.log_values[:, : len(block)] + half
        there = both.log_values[:, len(block) :] - half
        logs = torch.logaddexp(there, back).sub_(math.log(2.0))
        return TorchSolution(logs, both.n_iter, both.converged)

    def _class_columns(
        self,
        block: NDArray[np.intp],
        codes: NDArray[np.intp],
        tol: float,
        reference: torch.Tensor | None = None,
    ) -> TorchSolution:
        """Return log A⁻¹D^-½Y and log A⁻¹D^½Y side by side, for some classes."""
        among = np.flatnonzero(np.isin(codes, block))
        column = np.searchsorted(block, codes[among])
        half, size = self.source_half[among], len(block)
        columns = Columns(
            rows=np.concatenate([self.labeled[among]] * 2),
            cols=np.concatenate([column, column + size]),
            log_values=np.concatenate([-half, half]),
            views=np.where(np.arange(2 * size) // size == [[0], [1]], 0.0, -np.inf),
        )
        return self._solved(columns, tol, reference)

    def _solved(
        self, columns: Columns, tol: float, reference: torch.Tensor | None
    ) -> TorchSolution:
        return solve_on_device(
            self.graph,
            columns,
            alpha=self.alpha,
            tol=tol,
            max_iter=self.max_iter,
            reference=reference,
        )


def block_width(n_samples: int, device: torch.device) -> int:
    """Return how many label columns are walked at a time.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    device : torch.device
        Where.

    Returns
    -------
    int
        128, and fewer beyond 2 million rows, so that a block takes no more than 32 GB;
        halved until it fits into the free memory.
    """
    width = max(1, min(_WIDEST, _ENTRIES // n_samples))
    room = _SHARE_OF_FREE * free_bytes(device)
    while width > 1 and width * n_samples * _BYTES_PER_ENTRY > room:
        width = -(-width // 2)
    return width


class _Heaviest:
    """A running selection of the heaviest voters of every row, heaviest first.

    Equal weights stay in the order of positions: sorting is stable, and blocks come in order.
    """

    def __init__(self, values: torch.Tensor, n_kept: int) -> None:
        self.n_kept = n_kept
        self.values, self.voters = _top(values, None, 0, n_kept)

    def add(self, values: torch.Tensor, first: int) -> None:
        """Take another block into account, whose first column is the voter `first`."""
        width = min(self.n_kept, self.values.shape[1] + values.shape[1])
        if width == self.values.shape[1]:
            for rows in _row_slices(len(values), width + values.shape[1]):
                kept = self.values[rows], self.voters[rows]
                self.values[rows], self.voters[rows] = _top(values[rows], kept, first, width)
            return
        pieces = [
            _top(values[rows], (self.values[rows], self.voters[rows]), first, width)
            for rows in _row_slices(len(values), width + values.shape[1])
        ]
        self.values, self.voters = (torch.cat(both) for both in zip(*pieces))

    def relative(self) -> NearestLabeled:
        """Return the selection, the scale of each row taken out."""
        scale = self.values[:, 0].clone()
        self.values -= torch.where(torch.isneginf(scale), 0.0, scale)[:, None]
        self.values.exp_()
        return NearestLabeled(to_numpy(self.values), to_numpy(self.voters), to_numpy(scale))


def _top(
    values: torch.Tensor,
    kept: tuple[torch.Tensor, torch.Tensor] | None,
    first: int,
    width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest values of each row, kept ones and new ones, and whose they are."""
    numbers = torch.arange(first, first + values.shape[1], dtype=torch.int32, device=values.device)
    voters = numbers.expand_as(values)
    if kept is not None:
        values, voters = torch.cat([kept[0], values], 1), torch.cat([kept[1], voters], 1)
    out = []
    for rows in _row_slices(len(values), values.shape[1]):
        largest, order = torch.sort(values[rows], dim=1, descending=True, stable=True)
        out.append((largest[:, :width], torch.gather(voters[rows], 1, order[:, :width])))
    best, whose = (torch.cat(both) for both in zip(*out))
    return best.contiguous(), whose


def _row_slices(n: int, width: int) -> list[slice]:
    step = max(1, _SORTED_AT_ONCE // width)
    return [slice(start, start + step) for start in range(0, n, step)]
