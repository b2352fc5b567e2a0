"""A_UU = I - αS_UU for some rows U on a device, and iterations with it.

What `manifoldknn.walk.levels` asks of a graph. Conjugate gradients run in double precision, which
a graphics processor does not mind: the time goes into moving numbers. They go on until residuals
are nothing but rounding, and some vanish altogether. What rounding and underflow may hide is added
to them: in a row of tiny degree it is not small.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from manifoldknn.device.walk.cg import ConjugateGradients
from manifoldknn.device.walk.products import WalkOperator
from manifoldknn.walk.iteration import ENVELOPE_ITERATIONS, ENVELOPE_TOL, Parts, log_error

_DRIFT = 2.0  # how far the true residual may be from the iterated one
_ROUNDING = 8 * torch.finfo(torch.float64).eps
_UNDERFLOW = 1e-300


class TorchRestriction:
    """A_UU, the product with it, log √d of its rows, and about its inverse where walks are long."""

    is_exact = False

    def __init__(self, apply: WalkOperator, half_log_degrees: Tensor, alpha: float) -> None:
        self.apply, self.half_log_degrees, self.alpha = apply, half_log_degrees, alpha
        self.precondition: Callable[[Tensor], Tensor] | None = None

    def residual(self, rhs: Tensor, x: Tensor) -> Tensor:
        """Return rhs - A_UU x."""
        return rhs - self.apply(x)

    def iteration(
        self, rhs: Tensor, x: Tensor | None = None, residual: Any = None
    ) -> "TorchIteration":
        """Return what goes from x, or from nothing, towards the solution of A_UU x = rhs."""
        return TorchIteration(self, rhs, x, residual)


class TorchIteration:
    """A_UU x = rhs on its way to a solution; see `manifoldknn.walk.levels.Iteration`."""

    plain_looks = 4  # the solve of a sharp bound takes as long as one for all columns

    def __init__(
        self, matrix: TorchRestriction, rhs: Tensor, x: Tensor | None, residual: Any
    ) -> None:
        self._matrix, self._rhs, self.residual = matrix, rhs, rhs
        self._solver = ConjugateGradients(matrix.apply, rhs, matrix.precondition)
        if x is not None:
            self._solver.x.copy_(x)
            self._solver.restart(residual)
            self.residual = residual

    @property
    def x(self) -> Tensor:
        """The solution so far."""
        return self._solver.x

    @property
    def n_iter(self) -> int:
        """Products with the matrix so far."""
        return self._solver.n_iter

    def advance(
        self,
        ahead: Tensor,
        going: Tensor,
        max_iter: int,
        settled: Callable[..., bool] | None = None,
    ) -> bool:
        """Make residuals of some columns smaller by the factors `ahead`, and tell if they are.

        The others get better as well. `settled` is asked whenever the device is waited for.
        """
        norms = self.residual.norm(dim=0)
        if bool((norms > _DRIFT * self._solver.residual_norms()).any()):
            self._solver.restart(self.residual)
        del self.residual  # nobody needs it while iterations go on, and memory is short
        goals = torch.where(going, ahead * norms, torch.inf)
        asked = settled and (lambda share: settled(share, lambda rows: self.x[rows][:, going]))
        done = self._solver.advance(goals, max_iter, asked)
        self.residual = self._matrix.residual(self._rhs, self.x)
        return done

    def log_error(self, parts: Parts, *, sharp: bool) -> Any:
        """Return the logarithm of a bound on the error of every entry.

        x is about 1 at most in every part and column that has a source.
        """
        size = self.residual.abs().add_(self.x.abs(), alpha=_ROUNDING)
        # Where a column has no source, zeros are exact.
        size += parts.spread(torch.where(parts.runs.max(size) > 0, _UNDERFLOW, 0.0).to(size.dtype))
        how = self._matrix.half_log_degrees, self._matrix.alpha, self._spread if sharp else None
        return log_error(size, parts, *how)

    def _spread(self, envelope: Tensor) -> tuple[Tensor, Tensor]:
        """Return about A_UU⁻¹ times a column, and what is left of it."""
        solver = ConjugateGradients(self._matrix.apply, envelope, self._matrix.precondition)
        solver.advance(ENVELOPE_TOL * envelope.norm(dim=0), ENVELOPE_ITERATIONS)
        return solver.x, self._matrix.residual(envelope, solver.x)
