"""Reconstruction of points as convex combinations of their neighbours."""

import contextlib
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.extend import single_simplex

__all__ = ["active_set", "simplex_weights"]


_CHUNK_ROWS = 2048  # problems solved together: long vectors, yet little memory
_CHUNK_VALUES = 2**20  # values of their Gram matrices: 8 MiB, of which a few copies are made
_BLOCK_VALUES = 2**18  # values of the differences held at a time: 2 MiB, to stay in cache
_PLAIN_ROWS, _PLAIN_NEIGHBORS = 4, 32  # up to here, plain numbers are quicker than arrays
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def simplex_weights(X: ArrayLike, neighbors: ArrayLike) -> Floats:
    r"""Weights writing each point as the nearest convex combination of its neighbours.

    Solves eq. (7) of [1]_ exactly, for every row :math:`x` of `X` and its block :math:`N` of
    `neighbors` separately:

    .. math:: \min_z \|x - N^T z\|^2 \quad \text{s.t.} \quad z \ge 0, \; \sum_i z_i = 1.

    Parameters
    ----------
    X : array-like of shape (m, d)
        The points to reconstruct; finite real numbers.
    neighbors : array-like of shape (m, k, d)
        The neighbours of each point, nearest first by convention (any order is correct).

    Returns
    -------
    ndarray of shape (m, k)
        Non-negative weights, each row summing to one. A point equal to one of its neighbours has
        weight one on the first such. Where several weightings reach the same closest point, one
        of them is returned, and which one does not depend on the other rows.

    Raises
    ------
    ValueError
        If the shapes do not match, or a value is not a finite real number.

    Notes
    -----
    With :math:`G` the Gram matrix of the differences :math:`n_i - x`, the objective is
    :math:`z^T G z`, and a feasible :math:`z` is optimal if and only if

    .. math:: (Gz)_i \ge z^T G z \text{ for all } i, \text{ with equality where } z_i > 0,

    which holds on return up to the rounding error of evaluating it. The method is a primal
    active-set one, after Wolfe [2]_: from the nearest neighbour on, let the neighbour that
    violates the condition most join the support, move towards the minimiser over the affine hull
    of the support, and drop the neighbours whose weights reach zero on the way. The objective
    decreases from each such minimiser to the next, so no support recurs and the method ends.

    A row costs :math:`O(k^2 d)` for :math:`G` and :math:`O(k^2 + s^3)` an iteration, often little
    more than :math:`s` of them, the size of the support. Temporary memory is bounded, whatever
    `m`. Should rounding make a row run out of iterations, non-negative least squares solves it.

    References
    ----------
    .. [1] E. Tu et al. A graph-based semi-supervised k nearest-neighbor method for nonlinear
       manifold distributed data classification. Information Sciences 367-368, 2016.
    .. [2] P. Wolfe. Finding the nearest point in a polytope. Mathematical Programming 11, 1976.

    Examples
    --------
    The first point lies beside the segment, the second beyond one of its ends:

    >>> segment = [[0.0, 0.0], [4.0, 0.0]]
    >>> simplex_weights([[1.0, 2.0], [-3.0, 1.0]], [segment, segment])
    array([[0.75, 0.25],
           [1.  , 0.  ]])
    """
    points, hulls = _validated(X, neighbors)
    m, k, _ = hulls.shape
    weights = np.empty((m, k))
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // (k * k)))
    for first in range(0, m, rows):
        chunk = slice(first, first + rows)
        gram, order = _sorted_gram(points[chunk], hulls[chunk])
        np.put_along_axis(weights[chunk], order, _solved(gram, 10 * k + 50).T, axis=1)
    return weights


def _validated(X: ArrayLike, neighbors: ArrayLike) -> tuple[Array, Array]:
    """Real arrays of matching shapes; `_differences` checks finiteness."""
    points, hulls = np.asarray(X), np.asarray(neighbors)
    for name, array, shape in (("X", points, "(m, d)"), ("neighbors", hulls, "(m, k, d)")):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers, got {array.dtype}; convert it first")
        if array.ndim != shape.count(",") + 1:
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}; reshape it")
    if points.shape != (len(hulls), hulls.shape[2]) or 0 in hulls.shape[1:]:
        shapes = f"neighbors has shape {hulls.shape} and X {points.shape}"
        raise ValueError(f"{shapes}; pass shapes (m, k, d) and (m, d), with k and d at least 1")
    return points, hulls


def _sorted_gram(points: Array, hulls: Array) -> tuple[Floats, Ints]:
    """Gram matrices (k, k, m) of the differences, nearest first, and the (m, k) order taken."""
    m, k, d = hulls.shape
    gram, sizes = np.empty((m, k, k)), np.empty((m, k))
    rows = max(1, _BLOCK_VALUES // (k * d))
    for first in range(0, m, rows):
        block = slice(first, first + rows)
        diffs, sizes[block] = _differences(points[block], hulls[block])
        gram[block] = diffs @ diffs.transpose(0, 2, 1)
    # Only an exact match has size 0, while the square of a tiny difference may underflow to 0.
    distances = np.where(sizes > 0, np.einsum("mii->mi", gram), -1.0)
    order = np.argsort(distances, axis=1, kind="stable")
    if (order != np.arange(k)).any():
        gram = gram[np.arange(m)[:, None, None], order[:, :, None], order[:, None, :]]
    # With the batch last, arithmetic is elementwise over long runs, the same in every batch.
    return np.ascontiguousarray(gram.transpose(1, 2, 0)), order


def _differences(points: Array, hulls: Array) -> tuple[Floats, Floats]:
    """Scaled differences (m, k, d), the largest of a row near 1, and the (m, k) maxima before."""
    with np.errstate(over="ignore", invalid="ignore"):
        diffs = np.subtract(hulls, points[:, None, :], dtype=np.float64)
        sizes = np.maximum(diffs.max(axis=2), -diffs.min(axis=2))
        odd = np.flatnonzero(~np.isfinite(sizes).all(axis=1))
        if odd.size:
            far, near = hulls[odd].astype(np.float64), points[odd, None].astype(np.float64)
            for name, array in (("X", near), ("neighbors", far)):
                if not np.isfinite(array).all():
                    raise ValueError(f"{name} contains NaN or infinity; remove or impute them")
            # Finite, but so large that the differences overflow.
            diffs[odd] = far / 4 - near / 4
            sizes[odd] = np.abs(diffs[odd]).max(axis=2)
    # A power of two scales without rounding; even clipped, squares do not over- or underflow.
    exponents = np.clip(np.frexp(sizes.max(axis=1))[1], -1000, 1000)
    diffs *= np.ldexp(1.0, -exponents)[:, None, None]
    return diffs, sizes


def _solved(gram: Floats, max_iter: int) -> Any:
    """Minimise ``z @ gram @ z`` for each matrix of a (k, k, m) stack, one by one if few."""
    k, m = gram.shape[1:]
    if m > _PLAIN_ROWS or k > _PLAIN_NEIGHBORS:
        return active_set(gram, max_iter)
    with contextlib.suppress(ZeroDivisionError):  # arrays would go on with infinity
        solved = [single_simplex.active_set(gram[:, :, i].tolist(), max_iter) for i in range(m)]
        if None not in solved:
            return np.array(solved).T
    return active_set(gram, max_iter)


def active_set(gram: Any, max_iter: int, kernels: Kernels = NUMPY) -> Any:
    """Minimise ``z @ gram @ z`` over the simplex for each matrix of a (k, k, m) stack.

    The first row and column are of the nearest neighbour. Rows that are done leave the batch.
    """
    xp = kernels.xp
    result, z = xp.zeros_like(gram[0]), xp.zeros_like(gram[0])
    z[0] = 1.0
    rows = kernels.arange(gram.shape[2])
    settled = z[0] > 0  # the last step reached the minimiser over the support's hull
    for _ in range(max_iter):
        support = z > 0
        slack, tol = _slack(gram, z, kernels)
        improving = (slack < -tol) & ~support
        done = settled & ~improving.any(0)
        ended = kernels.places(done)
        if len(ended):
            result[:, rows[ended]] = z[:, ended]
            left = kernels.places(~done)
            rows, settled, gram = rows[left], settled[left], gram[:, :, left]
            z, support, slack = z[:, left], support[:, left], slack[:, left]
            improving = improving[:, left]
            if not len(rows):
                break
        candidates = xp.where(improving & settled, slack, 0.0)
        joins, batch = candidates.argmin(0), kernels.arange(len(rows))
        support[joins, batch] |= candidates[joins, batch] < 0
        z, settled = _move(z, support, _newton_step(gram, slack, support, kernels), kernels)
    for column, row in enumerate(rows.tolist()):
        solved = _fallback(*(kernels.host(part[..., column]) for part in (gram, z)))
        result[:, row] = kernels.array(solved)
    return result / kernels.total(result)


def _slack(gram: Any, z: Any, kernels: Kernels) -> tuple[Any, Any]:
    """``gram @ z - z @ gram @ z``, and a bound on the rounding error of each of its entries."""
    gradient = kernels.combined(gram, z)
    # Products of norms bound the terms summed (Cauchy-Schwarz), so a neighbour far nearer than
    # the others is still resolved at its own scale.
    norms = kernels.xp.sqrt(kernels.xp.einsum("iim->im", gram))
    reach = kernels.total(norms * z)
    return gradient - kernels.total(gradient * z), 16 * len(z) * _EPS * reach * (norms + reach)


def _newton_step(gram: Any, slack: Any, support: Any, kernels: Kernels) -> Any:
    """Step to the minimiser over the affine hull of the support: zero off it, summing to zero."""
    xp, k = kernels.xp, len(slack)
    # Pack the supports to the front, so that the cost follows their size, not k.
    index, counts, put_back = kernels.packed(support)
    width, batch = len(index), kernels.arange(slack.shape[1])
    g = gram[index[:, None], index[None, :], batch]
    # Eliminate the constraint: a is the Gram matrix of the edges from the nearest member.
    a = g[1:, 1:] - g[1:, :1] - g[:1, 1:] + g[0, 0]
    b = slack[index[0], batch] - slack[index[1:], batch]
    floor = 8 * k * _EPS * (xp.einsum("iim->im", g)[1:] + g[0, 0])
    unused = kernels.arange(width)[1:, None] >= counts
    a[unused[:, None] | unused] = 0.0
    b[unused], floor[unused] = 0.0, 1.0
    # Factorise as LDL^T with pivots raised to the level of rounding error. With a so enlarged
    # the step still descends, and along a near-dependence it is long enough to drop a member.
    for j in range(width - 1):
        a[j, j] = xp.maximum(a[j, j], floor[j])
        ratio = a[j + 1 :, j] / a[j, j]
        a[j + 1 :, j + 1 :] -= ratio[:, None] * a[j, None, j + 1 :]
        b[j + 1 :] -= ratio * b[j]
    for j in reversed(range(width - 1)):
        b[j] = (b[j] - kernels.total(a[j, j + 1 :] * b[j + 1 :])) / a[j, j]
    return put_back(xp.concatenate([-kernels.total(b)[None], b]))


def _move(z: Any, support: Any, step: Any, kernels: Kernels) -> tuple[Any, Any]:
    """Step as far as no weight turns negative; also say which rows took the whole step."""
    xp = kernels.xp
    target = z + step
    blocking = support & (target <= 0)
    # A zero denominator is that of a neighbour which entered but is not to move: fraction zero.
    fraction = xp.where(blocking, z / kernels.at_least(z - target, _TINY), 1.0)
    least = xp.amin(fraction, 0)
    whole = ~blocking.any(0)
    stays = kernels.at_least(z + least * step, 0.0)
    moved = xp.where(blocking & (fraction <= least), 0.0, stays)
    return xp.where(whole, target, moved), whole


def _fallback(gram: Floats, z: Floats) -> Floats:
    """Solve one problem by non-negative least squares; `z` is kept unless that is better."""
    # Minimising u'Gu + (sum(u) - 1)^2 over u >= 0 is the same problem exactly: at u = t z the
    # best t leaves f / (1 + f), which increases with f = z'Gz.
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    try:
        u, _ = scipy.optimize.nnls(np.vstack([root, np.ones_like(z)]), np.eye(len(z) + 1)[-1])
    except RuntimeError:  # it may cycle where rounding hides a dependence
        return z
    u /= u.sum()
    return u if u @ gram @ u < z @ gram @ z else z
