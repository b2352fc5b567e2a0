"""Convex weights of many rows at once on a device (equation 7).

The active-set method of `manifoldknn.extend.simplex`, step for step, in double precision: from
the nearest neighbour on, let the neighbour that violates the optimality condition most
join the support, move towards the minimiser over the affine hull of the support, and drop
neighbours whose weights reach zero on the way. Rows that are done leave the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldknn.base.tensors import tile_rows, with_tiles
from manifoldknn.extend.simplex import _fallback

_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
_TILE_BYTES = 1 << 31


def torch_simplex_weights(points: Any, samples: Any, near: Any) -> Any:
    """Return the weights that write each point as the nearest convex combination of samples.

    As `simplex_weights` for the same (m, d) points and their (m, k) neighbours; non-negative, each
    row summing to one. The device must have double precision. O(k²d) a row for the Gram matrix,
    O(k² + s³) an iteration for a support of s.
    """
    import torch

    m, k = near.shape
    weights = torch.empty((m, k), dtype=torch.float64, device=points.device)

    def fill(part: slice) -> None:
        gram, order = _sorted_gram(points[part], samples, near[part])
        weights[part] = weights[part].scatter(1, order, _active_set(gram, 10 * k + 50).T)

    # As many rows at a time as possible: an iteration costs the same for few.
    step = tile_rows(points.device, 80 * k * k, _TILE_BYTES)
    with_tiles(fill, m, step, points.device)
    return weights


def _sorted_gram(points: Any, samples: Any, near: Any) -> tuple[Any, Any]:
    """Gram matrices (k, k, m) of the differences, nearest first, and the (m, k) order taken."""
    import torch

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
    import torch

    differences = samples[near].double() - points[:, None, :]
    sizes = differences.abs().amax(dim=2)
    # A power of two scales without rounding; even clipped, squares do not over- or underflow.
    exponents = torch.frexp(sizes.amax(dim=1))[1].clamp(-1000, 1000)
    differences *= torch.ldexp(torch.ones_like(sizes[:, 0]), -exponents)[:, None, None]
    gram = differences @ differences.transpose(1, 2)
    return gram, torch.where(sizes > 0, gram.diagonal(dim1=1, dim2=2), -1.0)


def _active_set(gram: Any, max_iter: int) -> Any:
    """Minimise ``z @ gram @ z`` over the simplex for each matrix of a (k, k, m) stack."""
    import torch

    k, m = gram.shape[1:]
    result = torch.zeros((k, m), dtype=gram.dtype, device=gram.device)
    z = result.clone()
    z[0] = 1.0
    rows = torch.arange(m, device=gram.device)
    settled = torch.ones(m, dtype=torch.bool, device=gram.device)
    for _ in range(max_iter):
        support = z > 0
        slack, tol = _slack(gram, z)
        improving = (slack < -tol) & ~support
        done = settled & ~improving.any(dim=0)
        result[:, rows[done]] = z[:, done]
        keep = torch.nonzero(~done).flatten()
        if not len(keep):
            rows = rows[:0]
            break
        if len(keep) < len(rows):
            rows, settled, gram = rows[keep], settled[keep], gram[:, :, keep]
            z, support, slack = z[:, keep], support[:, keep], slack[:, keep]
            improving = improving[:, keep]
        candidates = torch.where(improving & settled, slack, 0.0)
        least, joins = candidates.min(dim=0)
        joins = joins[None, :]
        support.scatter_(0, joins, support.gather(0, joins) | (least < 0)[None, :])
        z, settled = _move(z, support, _newton_step(gram, slack, support))
    for column, row in enumerate(rows.tolist()):
        solved = _fallback(gram[:, :, column].cpu().numpy(), z[:, column].cpu().numpy())
        result[:, row] = torch.as_tensor(solved, device=result.device)
    return result / result.sum(dim=0)


def _slack(gram: Any, z: Any) -> tuple[Any, Any]:
    """``gram @ z - z @ gram @ z``, and a bound on the rounding error of each of its entries."""
    gradient = (gram * z[:, None, :]).sum(dim=0)
    norms = gram.diagonal().T.sqrt()
    reach = (norms * z).sum(dim=0)
    tol = 16 * len(z) * _EPS * reach * (norms + reach)
    return gradient - (gradient * z).sum(dim=0), tol


def _newton_step(gram: Any, slack: Any, support: Any) -> Any:
    """Step to the minimiser over the affine hull of the support: zero off it, summing to zero."""
    import torch

    k, m = slack.shape
    # Pack the supports to the front, so that the cost follows their size, not k.
    counts = support.sum(dim=0)
    width = int(counts.max())
    index = torch.argsort((~support).to(torch.uint8), dim=0, stable=True)[:width]
    batch = torch.arange(m, device=gram.device)
    g = gram[index[:, None], index[None, :], batch]
    # Eliminate the constraint: a is the Gram matrix of the edges from the nearest member.
    a = g[1:, 1:] - g[1:, :1] - g[:1, 1:] + g[0, 0]
    packed = slack.gather(0, index)
    b = packed[0] - packed[1:]
    floor = 8 * k * _EPS * (g.diagonal().T[1:] + g[0, 0])
    unused = torch.arange(1, width, device=gram.device)[:, None] >= counts
    a.masked_fill_(unused[:, None] | unused, 0.0)
    b.masked_fill_(unused, 0.0)
    floor.masked_fill_(unused, 1.0)
    # Pivots are raised to the level of rounding error: the step still descends.
    for j in range(width - 1):
        a[j, j] = torch.maximum(a[j, j], floor[j])
        ratio = a[j + 1 :, j] / a[j, j]
        a[j + 1 :, j + 1 :] -= ratio[:, None] * a[j, None, j + 1 :]
        b[j + 1 :] -= ratio * b[j]
    for j in reversed(range(width - 1)):
        b[j] = (b[j] - (a[j, j + 1 :] * b[j + 1 :]).sum(dim=0)) / a[j, j]
    steps = torch.cat([-b.sum(dim=0, keepdim=True), b])
    return torch.zeros_like(slack).scatter(0, index, steps)


def _move(z: Any, support: Any, step: Any) -> tuple[Any, Any]:
    """Step as far as no weight turns negative; also say which rows took the whole step."""
    import torch

    target = z + step
    blocking = support & (target <= 0)
    fraction = torch.where(blocking, z / (z - target).clamp(min=_TINY), 1.0)
    least = fraction.amin(dim=0)
    moved = torch.where(blocking & (fraction <= least), 0.0, (z + least * step).clamp(min=0.0))
    settled = ~blocking.any(dim=0)
    return torch.where(settled, target, moved), settled
