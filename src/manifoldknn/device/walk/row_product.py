"""A product of a sparse matrix of short rows with a block of columns, as a program of Triton's.

cuSPARSE takes as long for two columns as for sixteen, 0.30 ms for 350,000 rows of 12 entries in
double precision on an H200; this takes a third of that. Rows are added up in the same order in
every run.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_ENTRIES = 4  # of a row at a time
_TILE = 1024  # rows times entries times columns of one task


@triton.jit(do_not_specialize=["n_rows", "n_columns"])
def _add_up(
    offsets: tl.tensor, columns: tl.tensor, values: tl.tensor, v: tl.tensor, out: tl.tensor,
    n_rows: tl.tensor, n_columns: tl.tensor,
    ROWS: tl.constexpr, ENTRIES: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    here, wanted = row < n_rows, column < n_columns
    start = tl.load(offsets + row, mask=here, other=0)
    end = tl.load(offsets + row + 1, mask=here, other=0)
    total = tl.zeros((ROWS, WIDTH), dtype=out.dtype.element_ty)
    for passed in range(0, tl.max(end - start, 0), ENTRIES):
        at = start[:, None] + passed + tl.arange(0, ENTRIES)[None, :]
        some = at < end[:, None]
        factor = tl.load(values + at, mask=some, other=0.0)
        place = tl.load(columns + at, mask=some, other=0).to(tl.int64) * n_columns
        both = some[:, :, None] & wanted[None, None, :]
        of_v = tl.load(v + place[:, :, None] + column[None, None, :], mask=both, other=0.0)
        total += tl.sum(factor[:, :, None] * of_v, 1)
    place = row[:, None] * n_columns + column[None, :]
    tl.store(out + place, total, mask=here[:, None] & wanted[None, :])


def row_product(offsets: Tensor, columns: Tensor, values: Tensor, v: Tensor) -> Tensor:
    """Return M v for the rows of M, whose entries start at the offsets."""
    n_rows, n_columns = len(offsets) - 1, v.shape[1]
    out = torch.empty((n_rows, n_columns), dtype=v.dtype, device=v.device)
    width = min(triton.next_power_of_2(n_columns), 64)
    rows = max(1, _TILE // (_ENTRIES * width))
    grid = (triton.cdiv(n_rows, rows), triton.cdiv(n_columns, width))
    if n_rows:
        with torch.cuda.device(v.device):
            _add_up[grid](
                offsets, columns, values, v.contiguous(), out, n_rows, n_columns,
                ROWS=rows, ENTRIES=_ENTRIES, WIDTH=width,
            )  # fmt: skip
    return out
