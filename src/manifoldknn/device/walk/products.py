"""Products of a sparse matrix with a block of columns, the same in every run of the program.

On CUDA they are those of `row_product`, or cuSPARSE's where Triton does not work. Long rows are cut
there: threads would wait for who has one, and cuSPARSE adds up its parts in any order. Elsewhere
they are PyTorch's "embedding bag": a weighted sum of rows of the block for every row.
"""

import logging
import warnings
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from manifoldknn.device.kernels import in_pieces, run_offsets

logger = logging.getLogger(__name__)

_LONGEST = 256  # entries of a row


@cache
def _by_rows(device: torch.device) -> bool:
    """Tell whether products by Triton work on a device: it needs a compiler at first."""
    try:
        from manifoldknn.device.walk.row_product import row_product

        one = torch.ones(1, dtype=torch.float64, device=device)
        offsets = torch.arange(2, dtype=torch.int32, device=device)
        return bool(row_product(offsets, offsets[:1], one, one[:, None]) == 1.0)
    except Exception as error:  # of any kind: from the import, the compiler or the driver
        logger.info("sparse products by cuSPARSE, which takes longer (Triton says: %s)", error)
        return False


class SparseProduct:
    """v → M v for a sparse M, row by row: the entries of each start at its offset.

    >>> import torch
    >>> from manifoldknn.device.walk.products import SparseProduct
    >>> product = SparseProduct(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), torch.ones(3))
    >>> product(torch.tensor([[1.0], [10.0]])).ravel().tolist()
    [10.0, 11.0]
    """

    def __init__(self, offsets: Tensor, columns: Tensor, values: Tensor) -> None:
        self._pieces: SparseProduct | None = None
        if values.is_cuda and len(columns) and int(offsets.diff().max()) > _LONGEST:
            offsets, pieces = in_pieces(offsets, _LONGEST)
            places = torch.arange(len(offsets) - 1, device=offsets.device)
            self._pieces = SparseProduct(pieces, places, torch.ones_like(values[: len(places)]))
        dtype = torch.int32 if len(columns) < 2**31 else torch.int64
        self._offsets, self._columns, self._values = offsets.to(dtype), columns.to(dtype), values
        self._matrix: Tensor | None = None

    def __call__(self, v: Tensor) -> Tensor:
        """Return the product with a block of columns, row by row in memory."""
        found = self._product(v)
        return found if self._pieces is None else self._pieces(found)

    def _product(self, v: Tensor) -> Tensor:
        if not v.is_cuda:
            return embedding_bag(
                self._columns, v, self._offsets, mode="sum", per_sample_weights=self._values,
                include_last_offset=True,
            )  # fmt: skip
        if _by_rows(v.device):
            from manifoldknn.device.walk.row_product import row_product

            return row_product(self._offsets, self._columns, self._values, v)
        if self._matrix is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the type is said to be new
                self._matrix = torch.sparse_csr_tensor(
                    self._offsets, self._columns, self._values, (len(self._offsets) - 1, len(v)),
                    check_invariants=False,
                )  # fmt: skip
        return self._matrix @ v


class WalkMatrix(NamedTuple):
    """S and its must-links, and α."""

    offsets: Tensor  # of S without must-links, row by row, as the next two
    columns: Tensor
    values: Tensor
    linked: Tensor  # rows with must-links
    group: Tensor  # their class numbers, ascending
    scale: Tensor  # their 1/√d
    alpha: float

    def diagonal(self) -> Tensor:
        """Return the diagonal of A = I - αS, which must-links have taken themselves out of."""
        found = self.values.new_ones(len(self.offsets) - 1)
        found[self.linked] += self.alpha * self.scale.square()
        return found


class WalkOperator:
    """v → v - α(S v + must-links).

    Must-links are D^-½ (YYᵀ - I) D^-½ on the labelled rows, never written out: YᵀD^-½ v is
    appended to v, and the rest is one product with few entries more. On a graphics
    processor every operation counts, however small.
    """

    def __init__(self, matrix: WalkMatrix) -> None:
        offsets, columns, values, linked, group, scale, alpha = matrix
        n, counts = len(offsets) - 1, offsets.diff()
        more = torch.ones_like(counts)
        more[linked] += 1
        ends = offsets[1:] + torch.cumsum(more, 0)  # of every row, with what comes to it
        at = torch.arange(len(columns), device=columns.device)
        at += torch.repeat_interleave(ends - more - offsets[1:], counts)
        where = columns.new_empty(len(columns) + n + len(linked))
        entries = values.new_empty(len(where))
        where[at], entries[at] = columns, -alpha * values
        where[ends - 1] = torch.arange(n, dtype=where.dtype, device=where.device)
        entries[ends - 1] = matrix.diagonal()
        self._sums: SparseProduct | None = None
        if len(linked):
            members = run_offsets(group)
            number = torch.repeat_interleave(members.diff())
            where[ends[linked] - 2] = (n + number).to(where.dtype)
            entries[ends[linked] - 2] = -alpha * scale
            self._sums = SparseProduct(members, linked, scale)
        self._product = SparseProduct(torch.cat([ends.new_zeros(1), ends]), where, entries)

    def __call__(self, v: Tensor) -> Tensor:
        """Return the product with a block of columns."""
        return self._product(v if self._sums is None else torch.cat([v, self._sums(v)]))
