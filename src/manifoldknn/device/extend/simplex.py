"""Convex weights of many rows at once on a device (equation 7).

Gram matrices are made here, tile by tile; `manifoldknn.extend.simplex` solves them.
"""

from typing import Any

import torch

from manifoldknn.base.tensors import tile_rows, with_tiles
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.extend.simplex import active_set

_TILE_BYTES = 1 << 31


def torch_simplex_weights(points: Any, samples: Any, near: Any) -> Any:
    """Return the weights that write each point as the nearest convex combination of samples.

    As `simplex_weights` for the same (m, d) points and their (m, k) neighbours; non-negative, each
    row summing to one. The device must have double precision. O(k²d) a row for the Gram matrix,
    O(k² + s³) an iteration for a support of s.
    """
    m, k = near.shape
    weights = torch.empty((m, k), dtype=torch.float64, device=points.device)

    def fill(part: slice) -> None:
        gram, order = _sorted_gram(points[part], samples, near[part])
        solved = active_set(gram, 10 * k + 50, TorchKernels(gram.device)).T
        weights[part] = weights[part].scatter(1, order, solved)

    # As many rows at a time as possible: an iteration costs the same for few.
    step = tile_rows(points.device, 80 * k * k, _TILE_BYTES)
    with_tiles(fill, m, step, points.device)
    return weights


def _sorted_gram(points: Any, samples: Any, near: Any) -> tuple[Any, Any]:
    """Gram matrices (k, k, m) of the differences, nearest first, and the (m, k) order taken."""
    m, k = near.shape
    gram = torch.empty((m, k, k), dtype=torch.float64, device=points.device)
    lengths = torch.empty((m, k), dtype=torch.float64, device=points.device)

    def fill(part: slice) -> None:
        gram[part], lengths[part] = _gram(points[part], samples, near[part])

    step = tile_rows(points.device, 24 * k * points.shape[1], _TILE_BYTES)
    with_tiles(fill, m, step, points.device)
    order = torch.argsort(lengths, dim=1, stable=True)
    rows = torch.arange(m, device=gram.device)[:, None, None]
    gram = gram[rows, order[:, :, None], order[:, None, :]]
    return gram.permute(1, 2, 0).contiguous(), order


def _gram(points: Any, samples: Any, near: Any) -> tuple[Any, Any]:
    """Gram matrices (m, k, k) of the scaled differences, and squared lengths, -1 for a match."""
    differences = samples[near].double() - points[:, None, :]
    sizes = differences.abs().amax(dim=2)
    # A power of two scales without rounding; even clipped, squares do not over- or underflow.
    exponents = torch.frexp(sizes.amax(dim=1))[1].clamp(-1000, 1000)
    differences *= torch.ldexp(torch.ones_like(sizes[:, 0]), -exponents)[:, None, None]
    gram = differences @ differences.transpose(1, 2)
    return gram, torch.where(sizes > 0, gram.diagonal(dim1=1, dim2=2), -1.0)
