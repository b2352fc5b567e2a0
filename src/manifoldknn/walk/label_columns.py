"""The tired random walk: label columns of (I - αP)⁻¹ (equations 1 and 4).

With P = D⁻¹W and A = I - αD^-½WD^-½, the walk's matrix is
P_TRW = (I - αP)⁻¹ = D^-½ A⁻¹ D^½, and the weight between two samples is

    w̄_ij = (P_TRW,ij + P_TRW,ji) / 2 = (A⁻¹)_ij · (√(d_i/d_j) + √(d_j/d_i)) / 2.

Only labelled samples vote, so only their columns are computed: O(n·l) instead
of an n×n inverse.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from manifoldknn.base import Floats, Ints
from manifoldknn.base.parameters import check_alpha
from manifoldknn.exceptions import warn_caller
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.choose import chosen_way, prepared_graph
from manifoldknn.walk.levels import Columns, Solution
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph, solve_columns

_WIDEST = 32  # label columns at a time: two cache lines of single-precision numbers per row
_WIDE_UP_TO = 1 << 16  # beyond, fewer, so that blocks do not outgrow what else is in memory
_NARROWEST = 8


def tired_random_walk(W: Any, alpha: float = 0.99) -> Floats:
    """Return P_TRW = (I - αP)⁻¹ in full, by a plain dense inverse.

    This is equation 1 as it stands: the reference that everything faster is
    compared with, and the thing to look at on small graphs.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n, n)
        Nonnegative symmetric weights. A node without edges stays where it is.
    alpha : float, default=0.99
        Share of strength kept per step, in (0, 1).

    Returns
    -------
    ndarray of shape (n, n)
        Accumulated transition probabilities. O(n³) time, O(n²) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn import tired_random_walk
    >>> tired_random_walk(np.array([[0.0, 1.0], [1.0, 0.0]]), alpha=0.5).round(3)
    array([[1.333, 0.667],
           [0.667, 1.333]])
    """
    W, alpha = _checked(W, alpha)
    dense = W.toarray() if sparse.issparse(W) else W
    degrees = dense.sum(axis=1)
    P = dense / np.where(degrees > 0, degrees, 1.0)[:, None]
    inverse: Floats = np.linalg.inv(np.eye(len(P)) - alpha * P)
    return inverse


def walk_weights(
    W: Any, labeled: ArrayLike, alpha: float = 0.99, *, tol: float = 1e-3, max_iter: int = 1000
) -> Floats:
    """Return w̄_ij between every sample i and every labelled sample j.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n, n)
        Nonnegative symmetric weights. Sparse: conjugate gradients; dense:
        Cholesky factorisation.
    labeled : array-like of int or bool
        Labelled samples, as row numbers or as a mask.
    alpha : float, default=0.99
        Share of strength kept per step, in (0, 1).
    tol : float, default=1e-3
        Error allowed in a weight, relative to the largest weight of its row.
    max_iter : int, default=1000
        Limit on conjugate-gradient iterations.

    Returns
    -------
    ndarray of shape (n, n_labeled)
        Weights of equation 4.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn import walk_weights
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]])
    >>> walk_weights(W, labeled=[0, 2]).round(2)
    array([[33.83, 24.63],
           [41.46, 33.17],
           [24.63, 17.42]])
    """
    W, alpha = _checked(W, alpha)
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ValueError(f"tol={tol!r} must be a number strictly between 0 and 1, such as 1e-3.")
    rows = np.asarray(labeled)
    if rows.dtype == bool and rows.shape == (W.shape[0],):
        rows = np.flatnonzero(rows)
    whole = rows.ndim == 1 and rows.dtype.kind in "iu"
    if not whole or ((rows < 0) | (rows >= W.shape[0])).any():
        raise ValueError(
            f"labeled must hold row numbers from 0 to {W.shape[0] - 1}, or be a mask of all rows."
        )
    rows = rows.astype(np.intp)
    if sparse.issparse(W):
        log_weights = sparse.csr_array(W, copy=True)
        log_weights.eliminate_zeros()
        log_weights.data = np.log(log_weights.data)
    else:
        with np.errstate(divide="ignore"):
            log_weights = np.log(W)
    graph = ConstrainedGraph(log_weights, np.full(W.shape[0], -1, dtype=np.intp))
    normalized = NormalizedGraph(graph)
    way = chosen_way(normalized, alpha, n_columns=len(rows))
    ready = prepared_graph(normalized, rows, alpha, way)
    found = log_label_weights(ready, rows, alpha, tol=tol, max_iter=max_iter)
    if not found.converged:
        warn_caller(
            f"The walk did not reach tol={tol}: raise tol, raise max_iter={max_iter} or lower "
            "alpha.",
            ConvergenceWarning,
        )
    return np.exp(found.log_values)


def log_label_weights(
    graph: NormalizedGraph | ReducedGraph, labeled: Ints, alpha: float, *, tol: float,
    max_iter: int, reference: Floats | None = None, rows: Ints | None = None, each: bool = False,
) -> Solution:  # fmt: skip
    """Return log w̄ between every sample, or some `rows`, and some labelled ones, a column each.

    `alpha`, `tol` and `max_iter` are as in `walk_weights`. A `reference` of shape (2, n_samples)
    holds logarithms of values that x_ij √d_j and x_ij / √d_j are known to have for some *other*
    labelled j: errors small against them do no harm. If `each`, every entry is accurate by itself,
    and not beside others of its row.
    """
    degrees = graph.log_degrees
    half = 0.5 * degrees[labeled]
    alone = np.where(np.eye(len(labeled), dtype=bool), 0.0, -np.inf)
    columns = Columns(
        rows=labeled,
        cols=np.arange(len(labeled)),
        log_values=np.zeros(len(labeled)),
        # P_TRW,ij and P_TRW,ji, up to a factor of the row
        views=alone if each else np.stack([half, -half]),
    )
    found = solve_columns(
        graph, columns, alpha=alpha, tol=tol, max_iter=max_iter, reference=reference, rows=rows
    )
    of_rows = degrees if rows is None else degrees[rows]
    for column, j in enumerate(labeled):
        difference = 0.5 * (of_rows - degrees[j])
        cosh = np.logaddexp(difference, -difference) - np.log(2.0)
        found.log_values[:, column] += cosh
    return found


def block_width(n_samples: int) -> int:
    """Return how many label columns are walked at a time, by each thread.

    32; beyond 65,000 rows fewer, down to 8 from 104,000 rows on. Between these, time grows by a
    tenth, and memory falls to a half.
    """
    return int(np.clip(_WIDEST * (_WIDE_UP_TO / n_samples) ** 3, _NARROWEST, _WIDEST))


def _checked(W: Any, alpha: float) -> tuple[Any, float]:
    if not isinstance(alpha, Real) or not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie strictly between 0 and 1, such as 0.99.")
    check_alpha(alpha)
    if not sparse.issparse(W):
        W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.shape[0]:
        raise ValueError(f"W must be a square matrix of weights, not of shape {W.shape}.")
    values = W.data if sparse.issparse(W) else W
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("W must hold finite, nonnegative weights.")
    if abs(W - W.T).max() > 1e-10 * max(abs(W).max(), np.finfo(float).tiny):
        raise ValueError("W must be symmetric; use (W + W.T) / 2 if it is nearly so.")
    return W, float(alpha)
