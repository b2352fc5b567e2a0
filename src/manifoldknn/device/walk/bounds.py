"""How wrong a solution of A_UU x = b can be, row by row.

With the residual r, all of these hold (see `manifoldknn.walk.restriction`):

    |x_i - x̂_i| ≤ ‖r‖₂ / (1 - α),
    |x_i - x̂_i| ≤ √d_i · max_m (|r_m| / √d_m) / (1 - α),
    |x_i - x̂_i| ≤ (A⁻¹|r|)_i.

The third is the sharp one. One rough solve serves all columns, with the largest |r|
of each row; what is wrong with it is bounded by the first two.

Iterations in double precision go on until residuals are nothing but rounding, and some
vanish altogether. What rounding and underflow may hide is added to them: in a row of tiny
degree it is not small.
"""

from __future__ import annotations

import math

import torch

from manifoldknn.device.walk.cg import ConjugateGradients
from manifoldknn.device.walk.normalized import Parts
from manifoldknn.device.walk.products import WalkOperator

_ENVELOPE_TOL = 1e-3
_ENVELOPE_ITERATIONS = 200
_ROUNDING = 8 * torch.finfo(torch.float64).eps
_UNDERFLOW = 1e-300


def log_error(
    matrix: WalkOperator,
    x: torch.Tensor,
    residual: torch.Tensor,
    parts: Parts,
    half_log_degrees: torch.Tensor,
    alpha: float,
    *,
    sharp: bool = True,
) -> torch.Tensor:
    """Return the logarithm of the smallest of this module's bounds on the error of every entry.

    `x` solves A_UU x = b and is about 1 at most in every part and column that has a source;
    `residual` is b - A_UU x as computed, and errors are bounded part by part. Only a `sharp` bound
    solves for the third: as long as some 200 iterations.
    """
    size = residual.abs().add_(x.abs(), alpha=_ROUNDING)
    # Where a column has no source, zeros are exact.
    size += parts.spread(torch.where(parts.runs.max(size) > 0, _UNDERFLOW, 0.0).to(size.dtype))
    half = half_log_degrees[:, None]
    plain = _log_norm_bound(size, parts, half, alpha)
    scale = size.amax(0)
    if not sharp or not bool(scale.any()):
        return plain
    size /= torch.where(scale > 0, scale, 1.0)
    envelope = size.amax(1, keepdim=True)
    del size
    solver = ConjugateGradients(matrix, envelope, matrix.precondition)
    solver.advance(_ENVELOPE_TOL * envelope.norm(dim=0), _ENVELOPE_ITERATIONS)
    rest = (envelope - matrix(solver.x)).abs()
    walked = torch.logaddexp(
        solver.x.clamp(min=0.0).log(), _log_norm_bound(rest, parts, half, alpha)
    )
    return torch.minimum(plain, walked + scale.log(), out=plain)


def _log_norm_bound(
    size: torch.Tensor, parts: Parts, half: torch.Tensor, alpha: float
) -> torch.Tensor:
    """Return the smaller of the first two bounds, for absolute residuals."""
    largest = parts.runs.max(size)
    # Squares of residuals below 1e-162 would vanish: scale them first.
    scaled = (size / parts.spread(torch.where(largest > 0, largest, 1.0))).square_()
    norm = largest.log() + 0.5 * parts.runs.sum(scaled).log()
    walk = parts.runs.max(torch.sub(size.log(), half, out=scaled))
    bound = torch.add(half, parts.spread(walk), out=scaled)
    torch.minimum(bound, parts.spread(norm), out=bound)
    return bound.sub_(math.log1p(-alpha))
