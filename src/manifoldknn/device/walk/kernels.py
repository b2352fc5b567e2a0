"""What the walk asks of sparse matrices on a device, as `walk.normalized` says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from manifoldknn.device.graph.constrained import TorchGraph
from manifoldknn.device.graph.spanning import connected_parts
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.device.segments import ragged
from manifoldknn.device.walk.aggregates import Preconditioner, summed
from manifoldknn.device.walk.products import WalkOperator
from manifoldknn.device.walk.restriction import TorchRestriction
from manifoldknn.graph.weights import must_link_counts
from manifoldknn.walk.normalized import NormalizedGraph, WalkKernels
from manifoldknn.walk.restriction import LOG_CUT


@dataclass(frozen=True)
class TorchMatrix:
    """A sparse matrix, row by row."""

    indptr: torch.Tensor  # where the entries of each row start, and the end
    indices: torch.Tensor  # columns
    data: torch.Tensor


class TorchWalkKernels(TorchKernels, WalkKernels):
    """Kernels of the walk by PyTorch, for some `copies` of one graph after the other."""

    def __init__(self, device: torch.device, copies: int = 1) -> None:
        super().__init__(device)
        self.copies = copies

    def sub(self, matrix: Any, rows: Any) -> TorchMatrix:
        """Return some rows and the same columns, in their order."""
        n = len(matrix.indptr) - 1
        found = self.some_rows(matrix, rows)
        inside = TorchMatrix(found.indptr, self.inverse(rows, n)[found.indices], found.data)
        return inside if len(rows) == n else self.kept(inside, inside.indices >= 0)

    def some_rows(self, matrix: Any, rows: Any) -> TorchMatrix:
        """Return some rows."""
        starts = matrix.indptr[rows]
        counts = matrix.indptr[rows + 1] - starts
        at, _ = ragged(starts, counts)
        return TorchMatrix(_offsets(counts), matrix.indices[at], matrix.data[at])

    def kept(self, matrix: Any, chosen: Any) -> TorchMatrix:
        """Return the entries of a mask."""
        before = _offsets(chosen.long())
        at = torch.nonzero(chosen).squeeze(1)
        return TorchMatrix(before[matrix.indptr], matrix.indices[at], matrix.data[at])

    def owners(self, matrix: Any) -> torch.Tensor:
        """Return the row of every entry."""
        return torch.repeat_interleave(matrix.indptr.diff())

    def with_values(self, matrix: Any, values: Any) -> TorchMatrix:
        """Return a matrix with other values in the same places."""
        return replace(matrix, data=values)

    def contracted(self, weights: Any, group: Any) -> TorchMatrix:
        """Return the graph of groups, edges between two of them added up."""
        m, one, other = int(group.max()) + 1, group[self.owners(weights)], group[weights.indices]
        between = one != other
        key, sums = summed(one[between] * m + other[between], weights.data[between])
        offsets = torch.searchsorted(key // m, torch.arange(m + 1, device=self.device))
        return TorchMatrix(offsets, key % m, sums)

    def connected(self, matrix: Any, group: Any) -> torch.Tensor:
        """Return the connected part of every row, numbered in the order of their first rows."""
        owner = self.owners(matrix)
        upper = torch.nonzero(owner < matrix.indices).squeeze(1)
        linked, numbers = self.links(group)
        chain = torch.nonzero(numbers[1:] == numbers[:-1]).squeeze(1)
        one = torch.cat([owner[upper], linked[chain]]).to(torch.int32)
        other = torch.cat([matrix.indices[upper], linked[chain + 1]]).to(torch.int32)
        return connected_parts(one, other, len(group))

    def links(self, group: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows with must-links, and their classes, ascending."""
        linked = self.places(group >= 0)
        linked = linked[self.order(group[linked])]
        return linked, group[linked]

    def restriction(self, graph: NormalizedGraph, rows: Any, alpha: float) -> TorchRestriction:
        """Return what solves with A_UU for U = rows; with groups, if there are some, for most."""
        inside = self.sub(graph.log_s, rows)
        linked, group = self.links(graph.group[rows])
        half = 0.5 * graph.log_degrees[rows]
        # Parts have scales of their own: nothing may pass between them on this one.
        s = torch.where(inside.data > LOG_CUT, torch.exp(inside.data), 0.0)
        entries = inside.indptr, inside.indices, s, linked, group, torch.exp(-half[linked]), alpha
        found = TorchRestriction(WalkOperator(*entries), half, alpha)
        if graph.levels and 2 * len(rows) > graph.n_samples:
            groups = rows, graph.levels, self.copies
            found.precondition = Preconditioner(*entries, half, *groups)
        return found


def normalized_graph(graph: TorchGraph, copies: int = 1) -> NormalizedGraph:
    """Return S of a graph on a device, or of some copies of one that were made into one."""
    log_degrees = graph.log_degrees()
    half = 0.5 * log_degrees
    log_s = graph.log_weights - half[graph.columns]
    log_s -= torch.repeat_interleave(half, graph.offsets.diff())
    group = torch.as_tensor(graph.must_link, device=graph.device)
    alone = torch.as_tensor(must_link_counts(graph.must_link) == 0, device=graph.device)
    return NormalizedGraph.of_parts(
        TorchMatrix(graph.offsets, graph.columns, log_s), log_degrees,
        group.masked_fill(alone, -1), TorchWalkKernels(graph.device, copies),
    )  # fmt: skip


def _offsets(counts: torch.Tensor) -> torch.Tensor:
    """Return where each of some stretches starts, and the end."""
    return torch.cat([counts.new_zeros(1), torch.cumsum(counts, 0)])
