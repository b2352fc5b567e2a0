"""How wrong a solution of A_UU x = b can be, row by row.

With the residual r, all of these hold (see `manifoldknn.restriction`):

    |x_i - x̂_i| ≤ ‖r‖₂ / (1 - α),
    |x_i - x̂_i| ≤ √d_i · max_m (|r_m| / √d_m) / (1 - α),
    |x_i - x̂_i| ≤ (A⁻¹|r|)_i.

The third is the sharp one. One rough solve serves all columns, with the largest |r|
of each row; what is wrong with it is bounded by the first two.
"""

from __future__ import annotations

import math

import torch

from manifoldknn.gpu.cg import ConjugateGradients
from manifoldknn.gpu.normalized import Parts
from manifoldknn.gpu.products import WalkOperator

_ENVELOPE_TOL = 1e-3
_ENVELOPE_ITERATIONS = 200


def log_error(
    matrix: WalkOperator,
    residual: torch.Tensor,
    parts: Parts,
    half_log_degrees: torch.Tensor,
    alpha: float,
) -> torch.Tensor:
    """Return the logarithm of a bound on the error of every entry.

    Parameters
    ----------
    matrix : WalkOperator
        A_UU.
    residual : Tensor of shape (n_rows, n_columns)
        ``rhs - A_UU x``.
    parts : Parts
        Connected parts of the rows; errors are bounded part by part.
    half_log_degrees : Tensor of shape (n_rows,)
        log √d of the rows.
    alpha : float
        Share of strength kept per step.

    Returns
    -------
    Tensor of shape (n_rows, n_columns)
        The smallest of the three bounds in the text of this module.
    """
    size = residual.abs()
    half = half_log_degrees[:, None]
    plain = _log_norm_bound(size, parts, half, alpha)
    scale = size.amax(0)
    if not bool(scale.any()):
        return plain
    size /= torch.where(scale > 0, scale, 1.0)
    envelope = size.amax(1, keepdim=True)
    del size
    solver = ConjugateGradients(matrix, envelope)
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
