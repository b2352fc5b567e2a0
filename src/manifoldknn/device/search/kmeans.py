"""Centres of cells: Lloyd's iteration on a sample of rows, the same on every run.

Means are sums of whole numbers: rows, which lie within ±1, are counted in units of
2^-30, and integers add up to the same whatever the order that a device adds them in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldknn.base.tensors import tile_rows, with_tiles

_CELLS_PER_ROOT = 4.0
_ROWS_PER_CELL = 64  # of the sample that centres are learnt from
_ROUNDS = 8
_UNIT = float(1 << 30)
_TILE_BYTES = 1 << 31


def cell_centers(products: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return 4√n centres of rows within ±1 (but for rounding), and their squared lengths.

    Each is the mean of the sampled rows nearest to it, nearly.
    """
    import torch

    n, device = len(products), products.device
    n_cells = max(1, int(_CELLS_PER_ROOT * n**0.5))
    n_cells = min(n_cells, n)
    drawn = rng.permutation(np.unique(rng.integers(n, size=n_cells * _ROWS_PER_CELL)))
    if len(drawn) < n_cells:  # few rows, of which some were drawn several times
        drawn = rng.permutation(n)
    sample = products[torch.as_tensor(drawn, device=device)]
    centers = sample[:n_cells].clone()
    fixed = (sample.double() * _UNIT).round().long() if device.type != "mps" else None
    for _ in range(_ROUNDS):
        norms = centers.square().sum(dim=1)
        nearest = nearest_centers(sample, centers, norms, 1)[:, 0]
        centers = _means(sample, fixed, nearest, centers)
    return centers, centers.square().sum(dim=1)


def _means(sample: Any, fixed: Any, nearest: Any, centers: Any) -> Any:
    """Return the mean of every cell's rows, or its centre where it has none."""
    import torch

    counts = torch.bincount(nearest, minlength=len(centers))[:, None]
    if fixed is None:  # a device without doubles
        sums = torch.zeros_like(centers).index_add_(0, nearest, sample)
    else:
        whole = torch.zeros(centers.shape, dtype=torch.int64, device=centers.device)
        sums = whole.index_add_(0, nearest, fixed).double() / _UNIT
    return torch.where(counts > 0, (sums / counts.clamp(min=1)).to(centers.dtype), centers)


def nearest_centers(products: Any, centers: Any, norms: Any, count: int) -> Any:
    """Return the numbers of the `count` nearest centres of every row, the nearest first."""
    import torch

    out = torch.empty((len(products), count), dtype=torch.int64, device=products.device)

    def fill(part: slice) -> None:
        scores = torch.addmm(norms, products[part], centers.T, alpha=-2)
        if count == 1:
            out[part] = scores.argmin(dim=1, keepdim=True)
        else:
            out[part] = torch.topk(scores, count, dim=1, largest=False, sorted=True)[1]

    step = tile_rows(products.device, 6 * len(centers) + 16 * count, _TILE_BYTES)
    with_tiles(fill, len(products), step, products.device)
    return out
