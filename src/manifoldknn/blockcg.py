"""Conjugate gradients for many right-hand sides at once.

All columns share the products with the matrix, which is what costs; each has
its own step lengths, and leaves the block when it has converged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.floating]


def block_cg(
    apply: Callable[[Block], Block],
    rhs: Block,
    *,
    tol: float,
    max_iter: int,
) -> tuple[Block, int, bool]:
    """Solve ``A x = b`` for every column of `rhs`, A symmetric positive definite.

    Parameters
    ----------
    apply : callable
        Returns the product of A with a block of shape (n, any).
    rhs : ndarray of shape (n, n_columns)
        Right-hand sides; columns of zeros are answered by zeros.
    tol : float
        A column has converged when ``‖b - Ax‖ ≤ tol·‖b‖``.
    max_iter : int
        Limit on the number of products.

    Returns
    -------
    x : ndarray of shape (n, n_columns)
        Solutions.
    n_iter : int
        Products with A that were needed.
    converged : bool
        Whether every column reached `tol`.

    Notes
    -----
    Error in the A-norm falls by at least (√κ-1)/(√κ+1) per iteration; memory is
    four blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.blockcg import block_cg
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> x, n_iter, converged = block_cg(A.__matmul__, np.eye(2), tol=1e-12, max_iter=10)
    >>> np.allclose(A @ x, np.eye(2)), n_iter, converged
    (True, 2, True)
    """
    solution = np.zeros_like(rhs)
    residual = rhs.copy()
    squared = _column_dots(residual, residual)
    goal = (tol**2) * squared
    active = np.flatnonzero(squared > goal)
    x, r = solution[:, active], residual[:, active]
    direction, rr, goal = r.copy(), squared[active], goal[active]
    n_iter = 0
    while active.size and n_iter < max_iter:
        product = apply(direction)
        n_iter += 1
        curvature = _column_dots(direction, product)
        step = rr / curvature
        x += step * direction
        r -= step * product
        new = _column_dots(r, r)
        direction *= new / rr
        direction += r
        rr = new
        going = rr > goal
        if not going.all():
            # A converged column must go: soon its residual is 0, and 0/0 follows.
            solution[:, active[~going]] = x[:, ~going]
            active, goal, rr = active[going], goal[going], rr[going]
            x, r, direction = x[:, going], r[:, going], direction[:, going]
    solution[:, active] = x
    return solution, n_iter, not active.size


def _column_dots(a: Block, b: Block) -> NDArray[np.float64]:
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)
