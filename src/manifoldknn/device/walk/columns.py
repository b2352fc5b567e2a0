"""The walk on a device: class densities, label columns, and classes while labels are hidden.

The numbers of `manifoldknn.vote.densities` and `manifoldknn.vote.walks`. Columns are solved in
blocks as wide as memory allows, and narrower ones once it runs out. A graphics processor
spends the time of a few columns on being told what to do: graphs with different labels
hidden are therefore solved as one.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manifoldknn.base import Floats, Ints
from manifoldknn.base.progress import countdown
from manifoldknn.base.tensors import free_bytes, is_out_of_memory, release
from manifoldknn.device.graph.constrained import TorchGraph, TorchRecipe
from manifoldknn.device.kernels import to_numpy
from manifoldknn.device.walk.aggregates import Levels
from manifoldknn.device.walk.normalized import NormalizedTorchGraph
from manifoldknn.vote.densities import FIRST_REACH
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.walks import Walked
from manifoldknn.walk import choose as ways
from manifoldknn.walk.iteration import LONG_WALK
from manifoldknn.walk.levels import Columns, solve_by_levels

logger = logging.getLogger(__name__)

_ENTRIES = 1 << 28  # rows times columns of a block, at most
_AS_ONE = 1 << 25  # the same of all graphs with hidden labels that are solved as one
_WIDEST = 128
_BYTES_PER_ENTRY = 120
_SHARE_OF_FREE = 0.8
_SHARE_FOR_SUMS = 0.25  # of the tolerance, for s; the rest is for f
_ROUGH = 0.1  # accuracy of what only tells the scale of a row


@dataclass
class Kept:
    """What a walk leaves on the device for walks on graphs that are much alike."""

    levels: Levels | None = None  # rows that belong together; nothing where walks are short
    log_sums: Tensor | None = None  # log of what s has beside 1/d, of every row


def walk_by_class_on_device(
    graph: TorchGraph, n_classes: int, alpha: float, *, tol: float, max_iter: int,
    reach: float = FIRST_REACH, start: Floats | None = None, kept: Kept | None = None,
) -> Walked:  # fmt: skip
    """Return the density of every class at every row, in single precision, and fill `kept`.

    As `class_densities`. Two runs give the same numbers, bit for bit, if blocks are the same.
    """
    walk = _Walk(graph, alpha, tol, max_iter, kept)
    logs, log_sums = walk.log_densities(n_classes, reach, start=start)
    similarities = Similarities.from_logarithms(logs, np.float32)
    return Walked(similarities, log_sums, walk.n_iter, walk.converged, reach=reach)


def walk_by_label_on_device(
    graph: TorchGraph, labeled: Ints, alpha: float, *, tol: float, max_iter: int
) -> Walked:
    """Return w̄ between every row and every labelled sample, as `walk_weights`."""
    walk = _Walk(graph, alpha, tol, max_iter)
    logs = walk.log_label_weights(labeled)
    return Walked(Similarities.from_logarithms(logs), None, walk.n_iter, walk.converged)


def hidden_on_device(
    recipe: TorchRecipe, codes: Ints, groups: list[Ints], n_classes: int, alpha: float, *,
    tol: float, max_iter: int, reach: float = FIRST_REACH, kept: Kept | None = None,
) -> list[Floats]:  # fmt: skip
    """Return log f of rows while their labels are hidden, group by group.

    As `hidden_densities`; `kept` is that of the walk from all labels.
    """

    def solve(*some: Ints) -> list[Floats]:
        visible = np.tile(codes, (len(some), 1))
        for row, hidden in zip(visible, some):
            row[hidden] = -1
        graph = recipe.constrained(*visible, n_classes=n_classes, hidden=some)
        rows = np.concatenate([hidden + i * len(codes) for i, hidden in enumerate(some)])
        walk = _Walk(graph, alpha, tol, max_iter, kept, len(some))
        logs, _ = walk.log_densities(n_classes, reach, rows=rows)
        return np.split(logs, np.cumsum([len(hidden) for hidden in some])[:-1])

    kept = kept or Kept()
    if kept.levels is None:
        _Walk(recipe.constrained(codes), alpha, tol, max_iter, kept)
    if len(groups) * len(codes) * n_classes <= _AS_ONE:
        try:
            return solve(*groups)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        logger.info("out of memory: hiding one group of labels after the other")
        release(recipe.recipe.nearest.device)
    found = (solve(group)[0] for group in groups)
    return list(countdown(found, len(groups), "groups of hidden labels"))


class _Walk:
    """Columns of a walk, block by block, and the count of what they took."""

    def __init__(
        self, graph: TorchGraph, alpha: float, tol: float, max_iter: int, kept: Kept | None = None,
        copies: int = 1,
    ) -> None:  # fmt: skip
        self.graph, self.must_link = NormalizedTorchGraph(graph), graph.must_link
        self.kept = kept or Kept()
        if self.kept.levels is None:
            is_long = alpha >= LONG_WALK and graph.n_samples > ways.MANY_ROWS
            self.kept.levels = self.graph.find_levels() if is_long else ()
        self.graph.levels, self.graph.copies = self.kept.levels, copies
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        self._kernels = self.graph.kernels
        self.half = 0.5 * self.graph.log_degrees
        self.n_iter, self.converged = 0, True

    def log_densities(
        self, n_classes: int, reach: float, *, rows: Ints | None = None, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return log f of all rows, or of some once they have settled, and log s of every label."""
        labeled = np.flatnonzero(self.must_link >= 0)
        number = self.must_link[labeled]  # graphs solved as one have classes of their own
        at = self._kernels.array(labeled)
        log_sums = self._log_sums(at)
        log_counts = self._kernels.array(np.log(np.bincount(number)[number]))
        columns = Columns(
            at,
            self._kernels.array(number % n_classes),
            -self.half[at] - log_sums - log_counts,
            self.half.new_zeros((1, n_classes)),
            reach,
            settle=rows is not None,
        )
        asked: Any = slice(None) if rows is None else self._kernels.array(rows)
        wanted = None if rows is None else self._kernels.mask(asked, len(self.half))
        guess = None if start is None else self._kernels.array(start) + self.half[:, None]
        out = np.empty((len(self.half) if rows is None else len(rows), n_classes))
        tol = (1.0 - _SHARE_FOR_SUMS) * self.tol
        for block, found in self._blocks(columns, tol, wanted, guess):
            out[:, block] = to_numpy(found[asked] - self.half[asked, None])
        return out, np.array(to_numpy(log_sums))

    def _log_sums(self, labeled: torch.Tensor) -> torch.Tensor:
        """Return log s of every label: D⁻¹·1, and the walk from where the first step leads.

        An estimate, as on the processor.
        """
        inflow = self.graph.log_first_step() + math.log(self.alpha)
        sources = torch.nonzero(torch.isfinite(inflow)).squeeze(1)
        where = sources, torch.zeros_like(sources), inflow[sources]
        columns = Columns(*where, inflow.new_zeros((1, 1)), settle=True)
        tol = _SHARE_FOR_SUMS * self.tol
        before = self.kept.log_sums
        start = None if before is None else (before.repeat(self.graph.copies) + self.half)[:, None]
        wanted = self._kernels.mask(labeled, len(self.half))
        found = self._solved(columns, tol, wanted=wanted, start=start)[:, 0]
        found -= self.half
        if before is None and self.graph.copies == 1:
            self.kept.log_sums = found
        return torch.logaddexp(-2.0 * self.half[labeled], found[labeled])

    def log_label_weights(self, labeled: Ints) -> Floats:
        """Return log w̄ between all rows and labelled ones."""
        at = self._kernels.array(labeled)
        half = self.half[at]
        columns = Columns(
            at,
            torch.arange(len(at), device=at.device),
            torch.zeros_like(half),
            torch.stack([half, -half]),  # P_TRW,ij and P_TRW,ji, up to a factor of the row
        )
        out = np.empty((len(self.half), len(labeled)))
        blocks = self._blocks(columns, self.tol)
        expected = -(-len(labeled) // block_width(len(self.half), self.half.device))
        for block, found in countdown(blocks, expected, "blocks of labels"):
            difference = self.half[:, None] - half[block]
            cosh = torch.logaddexp(difference, -difference).sub_(math.log(2.0))
            out[:, block] = to_numpy(found + cosh)
        return out

    def _blocks(
        self,
        columns: Columns,
        tol: float,
        wanted: Tensor | None = None,
        start: Tensor | None = None,
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of columns and log x of theirs; narrower ones once memory runs out."""
        first, end, reference = 0, columns.n_columns, None
        width = block_width(len(self.half), self.half.device)
        while first < end:
            width = -(-(end - first) // -(-(end - first) // width))  # as many blocks, all alike
            block = slice(first, first + width)
            try:
                if width < end and reference is None:
                    reference = self._scales(columns, wanted)
                guess = None if start is None else start[:, block]
                found = self._solved(
                    columns.block(block), tol, reference=reference, wanted=wanted, start=guess
                )
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
            release(self.half.device)  # outside the handler, which would keep the block alive

    def _scales(self, columns: Columns, wanted: Tensor | None) -> Tensor:
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
        mean = self._solved(total, _ROUGH, wanted=wanted).T - math.log(columns.n_columns)
        return (mean + math.log1p(-_ROUGH)).contiguous()

    def _solved(self, columns: Columns, tol: float, **more: Tensor | None) -> Any:
        found = solve_by_levels(
            self.graph, columns, alpha=self.alpha, tol=tol, max_iter=self.max_iter, **more
        )
        self.n_iter += found.n_iter
        self.converged &= found.converged
        return found.log_values


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
