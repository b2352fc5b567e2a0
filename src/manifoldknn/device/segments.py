"""Maxima and sums over runs of consecutive rows, the same in every run of the program.

Adding with atomic operations gives sums that depend on who comes first. Here runs
are cut into short pieces, each piece is reduced by one thread in order, and the
pieces are reduced in the same way: a tree whose shape depends on nothing but the
lengths of the runs.
"""

from __future__ import annotations

import torch
from torch import Tensor

_PIECE = 128  # rows that one thread goes through


class Runs:
    """Runs of consecutive rows: where each starts, and the end; no run is empty.

    >>> import torch
    >>> from manifoldknn.device.segments import Runs
    >>> Runs(torch.tensor([0, 2, 5])).sum(torch.ones(5, 1)).ravel().tolist()
    [2.0, 3.0]
    """

    def __init__(self, offsets: Tensor) -> None:
        self.offsets = offsets
        self.n_runs = len(offsets) - 1
        self._levels: list[Tensor] = []
        while self.n_runs and int((offsets[1:] - offsets[:-1]).max()) > _PIECE:
            cut, offsets = _in_pieces(offsets)
            self._levels.append(cut)
        self._levels.append(offsets)

    @classmethod
    def of_numbers(cls, numbers: Tensor) -> Runs:
        """Return the runs of equal numbers."""
        return cls(run_offsets(numbers))

    def max(self, values: Tensor) -> Tensor:
        """Return the maximum of every run, for values of shape (n_rows, n_columns)."""
        return self._reduced(values, "max")

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of every run, for values of shape (n_rows, n_columns)."""
        return self._reduced(values, "sum")

    def log_sum(self, logs: Tensor) -> Tensor:
        """Return log Σ exp of every run, for logarithms of shape (n_rows, n_columns)."""
        top = self.max(logs)
        finite = torch.where(torch.isneginf(top), 0.0, top)
        owner = torch.repeat_interleave(self.offsets.diff())
        return torch.log(self.sum(torch.exp(logs - finite[owner]))) + finite

    def _reduced(self, values: Tensor, how: str) -> Tensor:
        if self.n_runs == 1:  # the usual case, and one that PyTorch is quick at
            whole = values.amax(0) if how == "max" else values.sum(0)
            return whole[None]
        for offsets in self._levels:
            values = torch.segment_reduce(values, how, offsets=offsets, axis=0, unsafe=True)
        return values


def run_offsets(numbers: Tensor) -> Tensor:
    """Return where each run of equal numbers starts, and the length of the whole."""
    first = torch.ones(len(numbers) + 1, dtype=torch.bool, device=numbers.device)
    first[1:-1] = numbers[1:] != numbers[:-1]
    return torch.nonzero(first).squeeze(1)


def ragged(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places of several stretches one after the other, and which stretch each is of.

    That is ``starts[owner] + 0 … counts[owner] - 1``, and owner; lengths may be 0.
    """
    owner = torch.repeat_interleave(counts)
    before = torch.cumsum(counts, 0) - counts
    places = torch.arange(len(owner), device=counts.device) + (starts - before)[owner]
    return places, owner


def _in_pieces(offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Cut runs into pieces; return where pieces start, and the runs of pieces."""
    counts = offsets[1:] - offsets[:-1]
    pieces = (counts + _PIECE - 1) // _PIECE
    number, owner = ragged(torch.zeros_like(pieces), pieces)
    starts = offsets[:-1][owner] + number * _PIECE
    ends = torch.cumsum(pieces, 0)
    return torch.cat([starts, offsets[-1:]]), torch.cat([torch.zeros_like(ends[:1]), ends])
