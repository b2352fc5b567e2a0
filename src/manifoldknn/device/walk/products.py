"""Products of a sparse matrix with a block of columns, the same in every run of the program.

Every row of the product is a weighted sum of rows of the block, which is what
PyTorch's "embedding bag" computes: one thread per row and column, in order, without
atomic additions. Rows with very many entries are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import embedding_bag

from manifoldknn.device.segments import Runs, ragged, run_offsets

_LONG = 64  # entries that one thread adds up


class SparseProduct:
    """v → M v for a sparse M, row by row: the entries of each start at its offset.

    >>> import torch
    >>> from manifoldknn.device.walk.products import SparseProduct
    >>> product = SparseProduct(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), torch.ones(3))
    >>> product(torch.tensor([[1.0], [10.0]])).ravel().tolist()
    [10.0, 11.0]
    """

    def __init__(self, offsets: torch.Tensor, columns: torch.Tensor, values: torch.Tensor) -> None:
        counts = offsets.diff()
        self._long = torch.nonzero(counts > _LONG).squeeze(1)
        if not len(self._long):
            self._bags = _narrowed(columns, offsets), values
            return
        short = counts.clamp(max=_LONG)
        head, _ = ragged(offsets[:-1], short)
        more = counts[self._long] - _LONG
        tail, _ = ragged(offsets[self._long] + _LONG, more)
        pieces = (more + _LONG - 1) // _LONG
        number, owner = ragged(torch.zeros_like(pieces), pieces)
        start = (torch.cumsum(more, 0) - more)[owner] + number * _LONG
        self._bags = _narrowed(columns[head], _ends(short)), values[head]
        cut = torch.cat([start, more.sum()[None]])
        self._pieces = _narrowed(columns[tail], cut), values[tail]
        self._runs = Runs(_ends(pieces))

    def __call__(self, v: torch.Tensor) -> torch.Tensor:
        """Return the product with a block of columns, row by row in memory."""
        out = _bag_sums(v, *self._bags)
        if len(self._long):
            out[self._long] += self._runs.sum(_bag_sums(v, *self._pieces))
        return out


class WalkOperator:
    """v → v - α(S v + must-links).

    `offsets` to `values` are S without must-links, `linked` the rows that have some, `group` their
    class numbers, ascending, and `scale` their 1/√d.

    Must-links are D^-½ (YYᵀ - I) D^-½ on the labelled rows, never written out: YᵀD^-½ v is
    appended to v, and the rest is one product with few entries more. On a graphics
    processor every operation counts, however small.
    """

    def __init__(
        self,
        offsets: torch.Tensor,
        columns: torch.Tensor,
        values: torch.Tensor,
        linked: torch.Tensor,
        group: torch.Tensor,
        scale: torch.Tensor,
        alpha: float,
    ) -> None:
        # What to speed up its conjugate gradients with.
        self.precondition: Callable[[torch.Tensor], torch.Tensor] | None = None
        n, counts = len(offsets) - 1, offsets.diff()
        more = torch.ones_like(counts)
        more[linked] += 1
        ends = offsets[1:] + torch.cumsum(more, 0)  # of every row, with what comes to it
        at = torch.arange(len(columns), device=columns.device)
        at += torch.repeat_interleave(ends - more - offsets[1:], counts)
        where = columns.new_empty(len(columns) + n + len(linked))
        entries = values.new_empty(len(where))
        where[at], entries[at] = columns, -alpha * values
        diagonal = torch.ones(n, dtype=values.dtype, device=values.device)
        diagonal[linked] += alpha * scale.square()
        where[ends - 1] = torch.arange(n, dtype=where.dtype, device=where.device)
        entries[ends - 1] = diagonal
        self._sums: SparseProduct | None = None
        if len(linked):
            members = run_offsets(group)
            number = torch.repeat_interleave(members.diff())
            where[ends[linked] - 2] = (n + number).to(where.dtype)
            entries[ends[linked] - 2] = -alpha * scale
            self._sums = SparseProduct(members, linked, scale)
        self._product = SparseProduct(torch.cat([ends.new_zeros(1), ends]), where, entries)

    def __call__(self, v: torch.Tensor) -> torch.Tensor:
        """Return the product with a block of columns."""
        return self._product(v if self._sums is None else torch.cat([v, self._sums(v)]))


def _narrowed(columns: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both in one type, 32 bits where those suffice."""
    dtype = torch.int32 if len(columns) < 2**31 else torch.int64
    return columns.to(dtype), offsets.to(dtype)


def _ends(counts: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.zeros_like(counts[:1]), torch.cumsum(counts, 0)])


def _bag_sums(
    v: torch.Tensor, places: tuple[torch.Tensor, torch.Tensor], values: torch.Tensor
) -> torch.Tensor:
    columns, offsets = places
    return embedding_bag(
        columns, v, offsets, mode="sum", per_sample_weights=values, include_last_offset=True
    )
