"""Conjugate gradients for many right-hand sides at once.

All columns share the products with the matrix, which is what costs; each has
its own step lengths, and leaves the block when it has converged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from manifoldknn.base import Array, Floats, Ints

Block = Array
Watch = Callable[[int, float, Callable[[Ints], Block]], bool]
Conditioned = Callable[[Block], tuple[Block, Floats]]

_ROWS_AT_ONCE = 64


def block_cg(
    apply: Callable[[Block], Block], rhs: Block, *, tol: float | Floats, max_iter: int,
    precondition: Conditioned | None = None, watch: Watch | None = None,
    total: Callable[[Any], Any] = lambda sums: sums,
) -> tuple[Block, int, bool]:  # fmt: skip
    """Solve ``A x = b`` for every column of `rhs`, A symmetric positive definite.

    `apply` returns the product of A with a block r. `precondition` returns z, about A⁻¹r, symmetric
    and positive definite, and what columns of r times those of r and of z are, two rows of sums
    over all machines. Both return new arrays. `rhs` is of the precision to work in. A column has
    converged when ``‖b - Ax‖ ≤ tol·‖b‖``; columns of zeros are answered by zeros. Where A or the
    preconditioner has lost its digits and is not definite, a column ends as it is, not converged.
    `watch` is handed, after each product, their number so far, the largest ``‖b - Ax‖/‖b‖``, and a
    function that returns some rows of x. If it returns True, x is good enough. `total` returns sums
    over rows as sums over those of all machines that share the system.

    Returns x, the products that were needed, at most `max_iter`, and whether every column reached
    `tol`. Error in the A-norm falls by at least (√κ-1)/(√κ+1) per iteration; memory is five blocks.

    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> x, n_iter, converged = block_cg(A.__matmul__, np.eye(2), tol=1e-12, max_iter=10)
    >>> np.allclose(A @ x, np.eye(2)), n_iter, converged
    (True, 2, True)
    """
    solution = np.zeros_like(rhs)
    squared = total(column_dots(rhs, rhs))
    active = np.flatnonzero(squared > 0)
    x, r = _columns(solution, active), _columns(rhs, active)
    rr = squared[active]
    z, (_, rz) = (r, (rr, rr)) if precondition is None else precondition(r)
    direction = z.copy()
    wanted = np.broadcast_to(tol, squared.shape)[active]
    goal = np.square(wanted) * rr
    scratch = np.empty_like(r)
    n_iter, lost = 0, False
    while active.size and n_iter < max_iter:
        product = apply(direction)
        n_iter += 1
        curvature = total(column_dots(direction, product))
        definite = (curvature > 0) & (rz > 0)
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=definite).astype(rhs.dtype)
        x += _scaled(direction, step, scratch)
        r -= _scaled(product, step, scratch)
        if precondition is None:
            z, rr = r, total(column_dots(r, r))
            new = rr
        else:
            z, (rr, new) = precondition(r)
        # Of a residual that has vanished nothing is left to be divided by.
        turn = np.divide(new, rz, out=np.zeros_like(rz), where=definite)
        _scaled(direction, turn.astype(rhs.dtype), direction)
        direction += z
        rz = new
        if watch is not None and watch(
            n_iter, float((wanted * np.sqrt(rr / goal)).max()), partial(_rows, solution, x, active)
        ):
            goal = np.full_like(goal, np.inf)
        going = (rr > goal) & definite
        lost = lost or bool((rr > goal)[~definite].any())
        if not going.all():
            # A converged column must go: soon its residual is 0, and 0/0 follows.
            solution[:, active[~going]] = x[:, ~going]
            active, goal, rz = active[going], goal[going], rz[going]
            wanted = wanted[going]
            left = np.flatnonzero(going)
            x, r, direction = _columns(x, left), _columns(r, left), _columns(direction, left)
            scratch = np.empty_like(r)
    solution[:, active] = x
    return solution, n_iter, not active.size and not lost


def _rows(solution: Block, x: Block, active: Ints, rows: Ints) -> Block:
    """Return rows of the solution, of which some columns are still going on."""
    out = solution[rows]
    out[:, active] = x[rows]
    return out


def _columns(block: Block, chosen: Ints) -> Block:
    # Unlike block[:, chosen], row by row in memory: products with the matrix want rows.
    return np.take(block, chosen, axis=1)


def _scaled(block: Block, factors: Block, out: Block) -> Block:
    """Multiply each column by its factor, many rows as one long one: numpy likes long rows."""
    n, width = block.shape
    whole = n // _ROWS_AT_ONCE * _ROWS_AT_ONCE
    shape = (-1, _ROWS_AT_ONCE * width)
    long = np.tile(factors, _ROWS_AT_ONCE)
    np.multiply(block[:whole].reshape(shape), long, out=out[:whole].reshape(shape))
    np.multiply(block[whole:], factors, out=out[whole:])
    return out


def column_dots(a: Block, b: Block) -> Floats:
    """Return what columns of one block times those of another are."""
    # Summed in the precision of the block: einsum is much slower when it has to convert.
    return np.einsum("ij,ij->j", a, b).astype(np.float64)
