"""A_UU = I - αS_UU for some rows U on a device, and iterations with it.

What `manifoldknn.walk.levels` asks of a graph. Conjugate gradients run in double precision, which
a graphics processor does not mind: the time goes into moving numbers. They go on until residuals
are nothing but rounding, and some vanish altogether. What rounding and underflow may hide is added
to them: in a row of tiny degree it is not small.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from manifoldknn.device.walk.products import WalkOperator
from manifoldknn.walk.restriction import ENVELOPE_ITERATIONS, ENVELOPE_TOL, Parts, log_error

_LOOK_EVERY = 8  # iterations; to look is to wait for the device
_RECORDED = 1 << 23  # entries of a block below which launching takes longer than computing

_Map = Callable[[Tensor], Tensor]
_DRIFT = 2.0  # how far the true residual may be from the iterated one
_ROUNDING = 8 * torch.finfo(torch.float64).eps
_UNDERFLOW = 1e-300


class ConjugateGradients:
    """Solve ``A x = b`` for every column of `rhs`, A symmetric positive definite.

    All columns go on until each has what it was asked for: a column that has converged gets better
    still. Columns of zeros are answered by zeros. `apply` and `precondition` (about A⁻¹, symmetric
    and positive definite) return new tensors. Error in the A-norm falls by at least (√κ-1)/(√κ+1)
    per iteration; memory is five blocks.

    >>> import torch
    >>> from manifoldknn.device.walk.restriction import ConjugateGradients
    >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    >>> solver = ConjugateGradients(A.__matmul__, torch.eye(2, dtype=torch.float64))
    >>> solver.advance(torch.full((2,), 1e-12), max_iter=10)
    True
    >>> bool(torch.allclose(A @ solver.x, torch.eye(2, dtype=torch.float64)))
    True
    """

    def __init__(self, apply: _Map, rhs: Tensor, precondition: _Map | None = None) -> None:
        self._apply, self._precondition = apply, precondition
        self.x = torch.zeros_like(rhs)  # solutions so far
        self.n_iter = 0  # products with A so far
        self._scratch = torch.empty_like(rhs)
        self._r, self._p = torch.empty_like(rhs), torch.empty_like(rhs)
        self._rz = rhs.new_empty(rhs.shape[1])
        self._recorded: torch.cuda.CUDAGraph | None = None
        self._records = rhs.is_cuda and rhs.numel() < _RECORDED
        self.restart(rhs)

    def restart(self, residual: Tensor) -> None:
        """Go on from ``rhs - A x`` as it is, not as rounding has left it."""
        self._r.copy_(residual)
        self._p.copy_(self._z())
        self._rz.copy_(self._dots(self._r, self._p))

    def residual_norms(self) -> Tensor:
        """Return ‖rhs - A x‖ of every column as the iteration knows it."""
        return self._r.norm(dim=0)

    def advance(
        self, goals: Tensor, max_iter: int, settled: Callable[[float], bool] | None = None
    ) -> bool:
        """Iterate until residuals have at most the norms in `goals`; tell whether all got there.

        Ends early once `settled` says so of the largest share of a residual that is left.
        """
        first = norms = self.residual_norms()
        left, done = max_iter, bool((norms <= goals).all())
        while left > 0 and not done:
            steps = min(_LOOK_EVERY, left)
            self._steps(steps)
            left -= steps
            norms = self.residual_norms()
            done = bool((norms <= goals).all())
            if settled is not None and settled(float(_ratio(norms, first).max())):
                return True
        return done

    def _steps(self, count: int) -> None:
        """Iterate, by a recording of what the device has to do where that is quicker."""
        # Not at first, when the device may still have to load its programs.
        if self._records and count == _LOOK_EVERY and self.n_iter >= _LOOK_EVERY:
            self._recorded = self._recorded or self._record()
        if self._recorded is not None and count == _LOOK_EVERY:
            self._recorded.replay()
        else:
            for _ in range(count):
                self._step()
        self.n_iter += count

    def _record(self) -> torch.cuda.CUDAGraph | None:
        """Record some iterations, without computing them; None where there is no room for that."""
        recorded, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream(self.x.device)
        aside.wait_stream(torch.cuda.current_stream(self.x.device))
        with torch.cuda.stream(aside):
            recorded.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(_LOOK_EVERY):
                    self._step()
            except RuntimeError:
                self._records = False
                with suppress(RuntimeError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # it may have ended before it began
                    recorded.capture_end()
                return None
            recorded.capture_end()
        torch.cuda.current_stream(self.x.device).wait_stream(aside)
        return recorded

    def _step(self) -> None:
        product = self._apply(self._p)
        step = _ratio(self._rz, self._dots(self._p, product))
        self.x.addcmul_(self._p, step)
        self._r.addcmul_(product, step, value=-1)
        z = self._z()
        new = self._dots(self._r, z)
        torch.addcmul(z, self._p, _ratio(new, self._rz), out=self._p)
        self._rz.copy_(new)

    def _z(self) -> Tensor:
        return self._r if self._precondition is None else self._precondition(self._r)

    def _dots(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.mul(a, b, out=self._scratch).sum(0)


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """Return a / b, 0 where a column has nothing left to do."""
    return torch.nan_to_num(a / b, nan=0.0, posinf=0.0, neginf=0.0)


class TorchRestriction:
    """A_UU, the product with it, log √d of its rows, and about its inverse where walks are long."""

    is_exact = False

    def __init__(self, apply: WalkOperator, half_log_degrees: Tensor, alpha: float) -> None:
        self.apply, self.half_log_degrees, self.alpha = apply, half_log_degrees, alpha
        self.precondition: _Map | None = None

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
