"""The walk on a device: class densities, label columns, and classes while labels are hidden.

The numbers of `manifoldknn.vote.densities` and `manifoldknn.vote.walked`. Columns are solved in
blocks as wide as memory allows, and narrower ones once it runs out. A graphics processor
spends the time of a few columns on being told what to do: graphs with different labels
hidden are therefore solved as one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manifoldknn.base.kernels import Kernels
from manifoldknn.base.progress import countdown
from manifoldknn.base.tensors import free_bytes, is_out_of_memory, release
from manifoldknn.device.graph.constrained import TorchGraph, TorchRecipe
from manifoldknn.device.transfer import to_numpy
from manifoldknn.device.walk.kernels import TorchMatrix, normalized_graph
from manifoldknn.vote.densities import FIRST_REACH, class_densities
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.ties import ReadyGraph, sparse_log_inflow
from manifoldknn.vote.walked import Walked, walk_by_class
from manifoldknn.walk.choose import Way, iterated
from manifoldknn.walk.levels import Columns, Solution
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.parts import solve_by_parts

logger = logging.getLogger(__name__)

_ENTRIES = 1 << 28  # rows times columns of a block, at most
_AS_ONE = 1 << 25  # the same of all graphs with hidden labels that are solved as one
_WIDEST = 128
_BYTES_PER_ENTRY = 120
_SHARE_OF_FREE = 0.8
_ROUGH = 0.1  # accuracy of what only tells the scale of a row


@dataclass
class Kept:
    """What a walk leaves on the device for walks on graphs that are much alike."""

    way: Way | None = None  # with rows that belong together, where walks are long
    log_sums: torch.Tensor | None = None  # log of what s has beside 1/d, of every row


def walk_by_class_on_device(
    graph: TorchGraph,
    n_classes: int,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    reach: float = FIRST_REACH,
    start: NDArray[np.float64] | None = None,
    kept: Kept | None = None,
) -> Walked:
    """Return the density of every class at every row, in single precision, and fill `kept`.

    As `walk_by_class`. Two runs give the same numbers, bit for bit, if blocks are the same.
    """
    labeled = np.flatnonzero(graph.must_link >= 0)
    return walk_by_class(
        _ready(graph, alpha, kept), labeled, graph.must_link[labeled], n_classes, alpha, tol=tol,
        max_iter=max_iter, reach=reach, start=start,
    )  # fmt: skip


def walk_by_label_on_device(
    graph: TorchGraph, labeled: NDArray[np.intp], alpha: float, *, tol: float, max_iter: int
) -> Walked:
    """Return w̄ between every row and every labelled sample, as `walk_by_label`."""
    ready = _ready(graph, alpha)
    at, half = ready.kernels.array(labeled), 0.5 * ready.log_degrees
    columns = Columns(
        at,
        torch.arange(len(at), device=at.device),
        half[at],
        torch.stack([half[at], -half[at]]),  # P_TRW,ij and P_TRW,ji, up to a factor of the row
    )
    logs, n_iter, converged = np.empty((graph.n_samples, len(labeled))), 0, True
    expected = -(-len(labeled) // block_width(graph.n_samples, at.device))
    blocks = ready.blocks(columns, alpha=alpha, tol=tol, max_iter=max_iter)
    for block, found in countdown(blocks, expected, "blocks of labels"):
        # K times the mean of both degrees is w̄.
        mean = torch.logaddexp(2.0 * half[:, None], 2.0 * half[at][block]) - math.log(2.0)
        logs[:, block] = to_numpy(found.log_values + mean - half[at][block])
        n_iter, converged = n_iter + found.n_iter, converged and found.converged
    return Walked(Similarities.from_logarithms(logs), None, n_iter, converged)


def hidden_on_device(
    recipe: TorchRecipe,
    codes: NDArray[np.intp],
    groups: list[NDArray[np.intp]],
    n_classes: int,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    reach: float = FIRST_REACH,
    kept: Kept | None = None,
) -> list[NDArray[np.float64]]:
    """Return log f of rows while their labels are hidden, group by group.

    As `hidden_densities`; `kept` is that of the walk from all labels.
    """
    kept = kept or Kept()
    if kept.way is None:
        kept.way = _way(recipe.constrained(codes), alpha)

    def solve(*some: NDArray[np.intp]) -> list[NDArray[np.float64]]:
        visible = np.tile(codes, (len(some), 1))
        for row, hidden in zip(visible, some):
            row[hidden] = -1
        graph = recipe.constrained(*visible, n_classes=n_classes, hidden=some)
        rows = np.concatenate([hidden + i * len(codes) for i, hidden in enumerate(some)])
        labeled = np.flatnonzero(graph.must_link >= 0)
        found = class_densities(
            _ready(graph, alpha, kept, len(some)), labeled, graph.must_link[labeled], n_classes,
            alpha, tol=tol, max_iter=max_iter, reach=reach, rows=rows, settle=True,
        )  # fmt: skip
        return np.split(found.log_values, np.cumsum([len(hidden) for hidden in some])[:-1])

    if len(groups) * len(codes) * n_classes <= _AS_ONE:
        try:
            return solve(*groups)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        logger.info("out of memory: hiding one group of labels after the other")
        release(recipe.near.device)
    found = (solve(group)[0] for group in groups)
    return list(countdown(found, len(groups), "groups of hidden labels"))


def _way(graph: TorchGraph, alpha: float) -> Way:
    return iterated(normalized_graph(graph), alpha, where=f" on {graph.device}")


def _ready(
    graph: TorchGraph, alpha: float, kept: Kept | None = None, copies: int = 1
) -> TorchReady:
    """Return a graph, or some copies of it made into one, that columns are computed with."""
    kept = kept or Kept()
    kept.way = kept.way or _way(graph, alpha)
    ready = normalized_graph(graph, copies)
    matrix = TorchMatrix(graph.offsets, graph.columns, graph.log_weights)
    inflow = sparse_log_inflow(matrix, graph.must_link, ready.log_degrees, ready.kernels)
    going = ready.going(levels=kept.way.levels)
    return TorchReady(going, ready.log_degrees, inflow, kept, copies)


@dataclass(frozen=True)
class TorchReady(ReadyGraph):
    """A graph on a device; its columns are solved in blocks, as wide as memory allows."""

    ready: NormalizedGraph
    kept: Kept
    copies: int

    @property
    def kernels(self) -> Kernels:
        """Those of its arrays."""
        return self.ready.kernels

    def solve(
        self, columns: Columns, *, rows: Any = None, start: Any = None, **accuracy: Any
    ) -> Solution:
        """Return log (K v), moved to NumPy arrays."""
        asked: Any = slice(None) if rows is None else self.kernels.array(rows)
        wanted = None if rows is None else self.kernels.mask(asked, self.ready.n_samples)
        start = None if start is None else self.kernels.array(start)
        n = self.ready.n_samples if rows is None else len(rows)
        out, n_iter, converged, reach = np.empty((n, columns.n_columns)), 0, True, np.inf
        for block, found in self.blocks(columns, wanted=wanted, start=start, **accuracy):
            out[:, block] = to_numpy(found.log_values[asked])
            n_iter, converged = n_iter + found.n_iter, converged and found.converged
            reach = min(reach, found.reach)
            del found
        return Solution(out, n_iter, converged, reach)

    def solve_sums(self, columns: Columns, *, rows: Any = None, **accuracy: Any) -> Solution:
        """Do the same from what the sums were for all labels, if that is known, or keep it."""
        asked = self.kernels.array(rows)
        before = self.kept.log_sums
        start = None if before is None else before.repeat(self.copies)[:, None]
        wanted = self.kernels.mask(asked, self.ready.n_samples)
        found = self._solved(columns, wanted=wanted, start=start, **accuracy)
        if before is None and self.copies == 1:
            self.kept.log_sums = found.log_values[:, 0]
        return replace(found, log_values=to_numpy(found.log_values[asked]))

    def blocks(
        self, columns: Columns, *, wanted: Any = None, start: Any = None, **accuracy: Any
    ) -> Iterator[tuple[slice, Solution]]:
        """Yield blocks of columns and log (K v) of theirs; narrower ones once memory runs out."""
        first, end, reference = 0, columns.n_columns, None
        width = block_width(self.ready.n_samples, self.ready.log_degrees.device)
        while first < end:
            width = -(-(end - first) // -(-(end - first) // width))  # as many blocks, all alike
            block = slice(first, first + width)
            try:
                if width < end and reference is None:
                    reference = self._scales(columns, wanted, **accuracy)
                guess = None if start is None else start[:, block]
                how: Any = {"reference": reference, "wanted": wanted, "start": guess, **accuracy}
                found = self._solved(columns.block(block), **how)
            except RuntimeError as error:
                if not is_out_of_memory(error) or width == 1:
                    raise
                width = -(-width // 2)
                logger.info("out of memory: going on with %d columns at a time", width)
            else:
                yield block, found
                del found
                first += width
                continue
            # Outside the handler, which would keep the block alive.
            release(self.ready.log_degrees.device)

    def _scales(self, columns: Columns, wanted: Any, **accuracy: Any) -> torch.Tensor:
        """Return how large the largest entry of every row is at least, as each view sees it.

        That is no less than the mean; a row is a source of one column only.
        """
        n_views = len(columns.views)
        number = torch.arange(n_views, device=columns.rows.device)
        total = Columns(
            columns.rows.repeat(n_views),
            number.repeat_interleave(len(columns.rows)),
            (columns.log_values + columns.views[:, columns.cols]).reshape(-1),
            torch.where(number[:, None] == number, 0.0, -torch.inf).double(),
        )
        found = self._solved(total, wanted=wanted, **accuracy | {"tol": _ROUGH})
        mean = found.log_values.T - math.log(columns.n_columns)
        return (mean + math.log1p(-_ROUGH)).contiguous()

    def _solved(
        self, columns: Columns, *, start: Any = None, reference: Any = None, **how: Any
    ) -> Solution:
        """Return log (K v) of all rows, on the device."""
        half = 0.5 * self.ready.log_degrees
        columns = replace(columns, log_values=columns.log_values - half[columns.rows])
        start = None if start is None else start + half[:, None]
        reference = None if reference is None else reference + half
        found = solve_by_parts(self.ready, columns, start=start, reference=reference, **how)
        found.log_values.sub_(half[:, None])
        return found


def block_width(n_samples: int, device: torch.device) -> int:
    """Return how many columns are walked at a time.

    128, and fewer beyond 2 million rows, so that a block takes no more than 32 GB; halved until it
    fits into the free memory.
    """
    width = max(1, min(_WIDEST, _ENTRIES // n_samples))
    room = _SHARE_OF_FREE * free_bytes(device)
    while width > 1 and width * n_samples * _BYTES_PER_ENTRY > room:
        width = -(-width // 2)
    return width
