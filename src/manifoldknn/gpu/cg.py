"""Conjugate gradients for many right-hand sides at once, to be continued where they stopped."""

from __future__ import annotations

from collections.abc import Callable

import torch

_LOOK_EVERY = 4  # iterations; to look is to wait for the device


class ConjugateGradients:
    """Solve ``A x = b`` for every column of `rhs`, A symmetric positive definite.

    All columns go on until each has what it was asked for: a column that has converged
    gets better still.

    Parameters
    ----------
    apply : callable
        Returns the product of A with a block of shape (n, any), as a new tensor.
    rhs : Tensor of shape (n, n_columns)
        Right-hand sides; columns of zeros are answered by zeros.

    Attributes
    ----------
    x : Tensor of shape (n, n_columns)
        Solutions so far.
    n_iter : int
        Products with A so far.

    Notes
    -----
    Error in the A-norm falls by at least (√κ-1)/(√κ+1) per iteration; memory is five blocks.

    Examples
    --------
    >>> import torch
    >>> from manifoldknn.gpu.cg import ConjugateGradients
    >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    >>> solver = ConjugateGradients(A.__matmul__, torch.eye(2, dtype=torch.float64))
    >>> solver.advance(torch.full((2,), 1e-12), max_iter=10)
    True
    >>> bool(torch.allclose(A @ solver.x, torch.eye(2, dtype=torch.float64)))
    True
    """

    def __init__(self, apply: Callable[[torch.Tensor], torch.Tensor], rhs: torch.Tensor) -> None:
        self._apply = apply
        self.x = torch.zeros_like(rhs)
        self.n_iter = 0
        self._scratch = torch.empty_like(rhs)
        self.restart(rhs.clone())

    def restart(self, residual: torch.Tensor) -> None:
        """Go on from ``rhs - A x`` as it is, not as rounding has left it; takes the tensor over."""
        self._r, self._p = residual, residual.clone()
        self._rr = self._dots(residual, residual)

    def residual_norms(self) -> torch.Tensor:
        """Return ‖rhs - A x‖ of every column as the iteration knows it."""
        return self._rr.sqrt()

    def advance(self, goals: torch.Tensor, max_iter: int) -> bool:
        """Iterate until residuals have at most the given norms.

        Parameters
        ----------
        goals : Tensor of shape (n_columns,)
            Norms of residuals asked for.
        max_iter : int
            Limit on iterations of this call.

        Returns
        -------
        bool
            Whether every column got there.
        """
        squared = goals.square()
        done = bool((self._rr <= squared).all())
        for count in range(1, max_iter + 1):
            if done:
                break
            self._step()
            if count % _LOOK_EVERY == 0 or count == max_iter:
                done = bool((self._rr <= squared).all())
        return done

    def _step(self) -> None:
        product = self._apply(self._p)
        self.n_iter += 1
        step = _ratio(self._rr, self._dots(self._p, product))
        self.x.addcmul_(self._p, step)
        self._r.addcmul_(product, step, value=-1)
        new = self._dots(self._r, self._r)
        torch.addcmul(self._r, self._p, _ratio(new, self._rr), out=self._p)
        self._rr = new

    def _dots(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mul(a, b, out=self._scratch).sum(0)


def _ratio(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a / b, 0 where a column has nothing left to do."""
    return torch.where(b > 0, a / b, 0.0)
