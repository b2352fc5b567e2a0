"""Products of a sparse matrix with a block of columns, the same in every run of the program.

Every row of the product is a weighted sum of rows of the block, which is what
PyTorch's "embedding bag" computes: one thread per row and column, in order, without
atomic additions. Rows with very many entries are cut into pieces.
"""

from __future__ import annotations

import torch
from torch.nn.functional import embedding_bag

from manifoldknn.gpu.segments import Runs, ragged

_LONG = 64  # entries that one thread adds up


class SparseProduct:
    """v → M v for a sparse M.

    Parameters
    ----------
    offsets : Tensor of int64, shape (n_rows + 1,)
        Where the entries of each row start.
    columns : Tensor of int, shape (n_entries,)
        Column of each entry.
    values : Tensor of float, shape (n_entries,)
        The entries.

    Examples
    --------
    >>> import torch
    >>> from manifoldknn.gpu.products import SparseProduct
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

    Parameters
    ----------
    s : SparseProduct
        S without must-links.
    linked, group : Tensor of int64
        Rows with must-links and their class numbers, ascending.
    scale : Tensor of float
        1/√d of those rows.
    alpha : float
        Share of strength kept per step.

    Notes
    -----
    Must-links are D^-½ (YYᵀ - I) D^-½ on the labelled rows, never written out: O(l).
    """

    def __init__(
        self,
        s: SparseProduct,
        linked: torch.Tensor,
        group: torch.Tensor,
        scale: torch.Tensor,
        alpha: float,
    ) -> None:
        self._s, self._linked, self._alpha = s, linked, alpha
        self._scale = scale[:, None]
        if len(linked):
            self._members = Runs.of_numbers(group)
            self._group = torch.repeat_interleave(self._members.offsets.diff())

    def __call__(self, v: torch.Tensor) -> torch.Tensor:
        """Return the product with a block of columns."""
        out = self._s(v)
        if len(self._linked):
            scaled = self._scale * v[self._linked]
            sums = self._members.sum(scaled)[self._group]
            out[self._linked] += self._scale * (sums - scaled)
        return torch.sub(v, out, alpha=self._alpha, out=out)


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
