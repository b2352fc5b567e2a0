"""Conjugate gradients for many right-hand sides at once, to be continued where they stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress

import torch

_LOOK_EVERY = 6  # iterations; to look is to wait for the device
_AT_A_TIME = 3  # are recorded: recording one takes as long as telling the device to do it
_RECORDED = 1 << 23  # entries of a block below which launching takes longer than computing

_Map = Callable[[torch.Tensor], torch.Tensor]


class ConjugateGradients:
    """Solve ``A x = b`` for every column of `rhs`, A symmetric positive definite.

    All columns go on until each has what it was asked for: a column that has converged gets better
    still. Columns of zeros are answered by zeros. `apply` and `precondition` (about A⁻¹, symmetric
    and positive definite) return new tensors. Error in the A-norm falls by at least (√κ-1)/(√κ+1)
    per iteration; memory is five blocks.

    >>> import torch
    >>> from manifoldknn.device.walk.cg import ConjugateGradients
    >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    >>> solver = ConjugateGradients(A.__matmul__, torch.eye(2, dtype=torch.float64))
    >>> solver.advance(torch.full((2,), 1e-12), max_iter=10)
    True
    >>> bool(torch.allclose(A @ solver.x, torch.eye(2, dtype=torch.float64)))
    True
    """

    def __init__(self, apply: _Map, rhs: torch.Tensor, precondition: _Map | None = None) -> None:
        self._apply, self._precondition = apply, precondition
        self.x = torch.zeros_like(rhs)  # solutions so far
        self.n_iter = 0  # products with A so far
        self._scratch = torch.empty_like(rhs)
        self._r, self._p = torch.empty_like(rhs), torch.empty_like(rhs)
        self._rz = rhs.new_empty(rhs.shape[1])
        self._recorded: torch.cuda.CUDAGraph | None = None
        self._records = rhs.is_cuda and rhs.numel() < _RECORDED
        self.restart(rhs)

    def restart(self, residual: torch.Tensor) -> None:
        """Go on from ``rhs - A x`` as it is, not as rounding has left it."""
        self._r.copy_(residual)
        self._p.copy_(self._z())
        self._rz.copy_(self._dots(self._r, self._p))

    def residual_norms(self) -> torch.Tensor:
        """Return ‖rhs - A x‖ of every column as the iteration knows it."""
        return self._r.norm(dim=0)

    def advance(
        self, goals: torch.Tensor, max_iter: int, settled: Callable[[float], bool] | None = None
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
        for at in range(0, count, _AT_A_TIME):
            steps = min(_AT_A_TIME, count - at)
            # Not at first, when the device may still have to load its programs.
            if self._records and steps == _AT_A_TIME and self.n_iter >= _AT_A_TIME:
                self._recorded = self._recorded or self._record()
            if self._recorded is not None and steps == _AT_A_TIME:
                self._recorded.replay()
            else:
                for _ in range(steps):
                    self._step()
            self.n_iter += steps

    def _record(self) -> torch.cuda.CUDAGraph | None:
        """Record some iterations, without computing them; None where there is no room for that."""
        recorded, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream(self.x.device)
        aside.wait_stream(torch.cuda.current_stream(self.x.device))
        with torch.cuda.stream(aside):
            recorded.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(_AT_A_TIME):
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

    def _z(self) -> torch.Tensor:
        return self._r if self._precondition is None else self._precondition(self._r)

    def _dots(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mul(a, b, out=self._scratch).sum(0)


def _ratio(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a / b, 0 where a column has nothing left to do."""
    return torch.nan_to_num(a / b, nan=0.0, posinf=0.0, neginf=0.0)
