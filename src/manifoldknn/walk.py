"""The tired random walk: label columns of (I - αP)⁻¹ (equations 1 and 4).

With P = D⁻¹W and A = I - αD^-½WD^-½, the walk's matrix is
P_TRW = (I - αP)⁻¹ = D^-½ A⁻¹ D^½, and the weight between two samples is

    w̄_ij = (P_TRW,ij + P_TRW,ji) / 2 = (A⁻¹)_ij · (√(d_i/d_j) + √(d_j/d_i)) / 2.

Only labelled samples vote, so only their columns are computed: O(n·l) instead
of an n×n inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from manifoldknn.graph import ConstrainedGraph
from manifoldknn.peeling import Columns, Solution, solve_by_levels

_BLOCK_BYTES = 1 << 27  # of one block of label columns
# A new row's voters are found among those kept by its neighbours: keep more than vote.
_LEAST_KEPT = 32
_KEPT_PER_VOTER = 4


@dataclass(frozen=True)
class NearestLabeled:
    """The labelled samples nearest to every row by the walk, heaviest first.

    Attributes
    ----------
    weights : ndarray of shape (n_samples, n_kept)
        w̄ divided by ``exp(log_scale)``: 1 in the first column, 0 everywhere in
        rows that no labelled sample reaches.
    voters : ndarray of shape (n_samples, n_kept)
        Positions among the labelled samples.
    log_scale : ndarray of shape (n_samples,)
        Logarithm of the largest weight of the row, -inf if unreached.
    """

    weights: NDArray[np.float64]
    voters: NDArray[np.intp]
    log_scale: NDArray[np.float64]

    def rows(self, chosen: NDArray[Any]) -> NearestLabeled:
        """Return some of the rows, by mask or numbers."""
        return NearestLabeled(self.weights[chosen], self.voters[chosen], self.log_scale[chosen])

    def absolute_weights(self) -> NDArray[np.float64]:
        """Return w̄ itself; weights below about 1e-308 become 0."""
        return np.exp(self.log_scale)[:, None] * self.weights


@dataclass(frozen=True)
class LabelWalk:
    """What the walk says of every row, ready for the vote.

    Attributes
    ----------
    nearest : NearestLabeled
        Voters of every row: labelled samples, or whole classes if `by_class`.
    voter_classes : ndarray of int
        Class number of each voter.
    n_voting : int
        How many of the heaviest voters vote.
    by_class : bool
        Whether all labelled samples vote, so that only class sums were computed.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.
    """

    nearest: NearestLabeled
    voter_classes: NDArray[np.intp]
    n_voting: int
    by_class: bool
    n_iter: int
    converged: bool


def tired_random_walk(W: Any, alpha: float = 0.99) -> NDArray[np.float64]:
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
    inverse: NDArray[np.float64] = np.linalg.inv(np.eye(len(P)) - alpha * P)
    return inverse


def walk_weights(
    W: Any,
    labeled: ArrayLike,
    alpha: float = 0.99,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> NDArray[np.float64]:
    """Return w̄_ij between every sample i and every labelled sample j.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n, n)
        Nonnegative symmetric weights. Sparse: conjugate gradients; dense:
        Cholesky factorisation.
    labeled : array-like of int
        Labelled samples.
    alpha : float, default=0.99
        Share of strength kept per step, in (0, 1).
    tol : float, default=1e-4
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
    labeled = np.asarray(labeled, dtype=np.intp)
    if labeled.ndim != 1 or ((labeled < 0) | (labeled >= W.shape[0])).any():
        raise ValueError(f"labeled must hold row numbers from 0 to {W.shape[0] - 1}.")
    if sparse.issparse(W):
        log_weights = sparse.csr_array(W)
        log_weights.setdiag(0.0)
        log_weights.eliminate_zeros()
        log_weights.data = np.log(log_weights.data)
    else:
        with np.errstate(divide="ignore"):
            log_weights = np.log(W)
    graph = ConstrainedGraph(log_weights, np.full(W.shape[0], -1, dtype=np.intp))
    return np.exp(log_label_weights(graph, labeled, alpha, tol=tol, max_iter=max_iter).log_values)


def log_label_weights(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    log_degrees: NDArray[np.float64] | None = None,
    reference: NDArray[np.float64] | None = None,
) -> Solution:
    """Return log w̄ between every sample and some labelled ones.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled : ndarray of int
        Labelled samples, the columns of the answer.
    alpha, tol, max_iter
        As in `walk_weights`.
    log_degrees : ndarray, optional
        If known already.
    reference : ndarray of shape (2, n_samples), optional
        Logarithms of values that x_ij √d_j and x_ij / √d_j are known to have for some
        *other* labelled j; errors small against them do no harm.

    Returns
    -------
    Solution
        Logarithms of the weights.
    """
    degrees = graph.log_degrees() if log_degrees is None else log_degrees
    half = 0.5 * degrees[labeled]
    columns = Columns(
        rows=labeled,
        cols=np.arange(len(labeled)),
        log_values=np.zeros(len(labeled)),
        views=np.stack([half, -half]),  # P_TRW,ij and P_TRW,ji, up to a factor of the row
    )
    found = solve_by_levels(
        graph, degrees, columns, alpha=alpha, tol=tol, max_iter=max_iter, reference=reference
    )
    for column, j in enumerate(labeled):
        difference = 0.5 * (degrees - degrees[j])
        cosh = np.logaddexp(difference, -difference) - np.log(2.0)
        found.log_values[:, column] += cosh
    return found


def log_class_weights(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    n_classes: int,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    log_degrees: NDArray[np.float64] | None = None,
) -> Solution:
    """Return log Σ_{j of class c} w̄_ij for every sample i and class c.

    The sum over *all* labelled samples of a class needs two columns however
    many samples it has:
    ½ (D^½ A⁻¹ D^-½ Y + D^-½ A⁻¹ D^½ Y), Y the class indicator.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled, codes : ndarray of int
        Labelled samples and their class numbers.
    n_classes : int
        Number of classes.
    alpha, tol, max_iter, log_degrees
        As in `log_label_weights`.

    Returns
    -------
    Solution
        Logarithms of the sums, one column per class.
    """
    degrees = graph.log_degrees() if log_degrees is None else log_degrees
    half = 0.5 * degrees
    both = _class_columns(graph, degrees, labeled, codes, n_classes, alpha, tol, max_iter)
    back = both.log_values[:, :n_classes] + half[:, None]
    there = both.log_values[:, n_classes:] - half[:, None]
    return Solution(np.logaddexp(there, back) - np.log(2.0), both.n_iter, both.converged)


def _class_columns(
    graph: ConstrainedGraph,
    degrees: NDArray[np.float64],
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    n_classes: int,
    alpha: float,
    tol: float,
    max_iter: int,
) -> Solution:
    """Return log A⁻¹D^-½Y and log A⁻¹D^½Y side by side."""
    half = 0.5 * degrees[labeled]
    columns = Columns(
        rows=np.concatenate([labeled, labeled]),
        cols=np.concatenate([codes, codes + n_classes]),
        log_values=np.concatenate([-half, half]),
        views=np.where(np.arange(2 * n_classes) // n_classes == [[0], [1]], 0.0, -np.inf),
    )
    return solve_by_levels(graph, degrees, columns, alpha=alpha, tol=tol, max_iter=max_iter)


def label_walk(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    *,
    n_neighbors: int,
    alpha: float,
    tol: float,
    max_iter: int,
    by_class: bool | None = None,
) -> LabelWalk:
    """Walk from all labelled samples and keep what the vote needs.

    If all labelled samples vote (``n_neighbors >= len(labeled)``) their sums per
    class suffice: 2C columns instead of l.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled, codes : ndarray of int
        Labelled samples and their class numbers.
    n_neighbors : int
        k of the vote.
    alpha, tol, max_iter
        As in `walk_weights`.
    by_class : bool, optional
        Force class sums or single samples; by default, what is cheaper.

    Returns
    -------
    LabelWalk
        Voters and their weights for every row.
    """
    n_labeled, n_classes = len(labeled), int(codes.max()) + 1
    if by_class is None:
        by_class = n_neighbors >= n_labeled > 2 * n_classes
    if by_class:
        sums = log_class_weights(
            graph, labeled, codes, n_classes, alpha, tol=tol, max_iter=max_iter
        )
        everyone = np.broadcast_to(np.arange(n_classes), sums.log_values.shape)
        nearest = _relative(*_heaviest(sums.log_values, everyone, n_classes))
        classes = np.arange(n_classes)
        return LabelWalk(nearest, classes, n_classes, True, sums.n_iter, sums.converged)
    n_kept = min(n_labeled, max(_LEAST_KEPT, _KEPT_PER_VOTER * n_neighbors))
    nearest, n_iter, converged = nearest_labeled(
        graph, labeled, alpha, n_kept, tol=tol, max_iter=max_iter
    )
    return LabelWalk(nearest, codes, min(n_neighbors, n_labeled), False, n_iter, converged)


def nearest_labeled(
    graph: ConstrainedGraph,
    labeled: NDArray[np.intp],
    alpha: float,
    n_kept: int,
    *,
    tol: float,
    max_iter: int,
) -> tuple[NearestLabeled, int, bool]:
    """Return the `n_kept` labelled samples with the largest w̄ for every row.

    Parameters
    ----------
    graph : ConstrainedGraph
        The graph.
    labeled : ndarray of int
        Labelled samples.
    alpha, tol, max_iter
        As in `walk_weights`.
    n_kept : int
        How many to keep per row, at most ``len(labeled)``.

    Returns
    -------
    nearest : NearestLabeled
        Weights and voters, heaviest first, equal weights by position.
    n_iter : int
        Products with the graph that were needed.
    converged : bool
        Whether every row reached the accuracy asked for.

    Notes
    -----
    Label columns are computed in blocks with a running selection, so memory is
    O(n·(n_kept + block)) for any number of labels.
    """
    n, n_labeled = graph.n_samples, len(labeled)
    degrees = graph.log_degrees()
    width = _block_width(graph, n_labeled)
    reference, n_iter, converged = None, 0, True
    if width < n_labeled:
        one_class = np.zeros(n_labeled, dtype=np.intp)
        total = _class_columns(graph, degrees, labeled, one_class, 1, alpha, tol, max_iter)
        # The largest entry of a row is no less than the mean; views in their order.
        reference = total.log_values.T[::-1] - np.log(n_labeled)
        n_iter, converged = total.n_iter, total.converged
    logs = np.empty((n, 0))
    voters = np.empty((n, 0), dtype=np.intp)
    for start in range(0, n_labeled, width):
        block = np.arange(start, min(start + width, n_labeled))
        found = log_label_weights(
            graph,
            labeled[block],
            alpha,
            tol=tol,
            max_iter=max_iter,
            log_degrees=degrees,
            reference=reference,
        )
        n_iter, converged = n_iter + found.n_iter, converged and found.converged
        logs = np.hstack([logs, found.log_values])
        voters = np.hstack([voters, np.broadcast_to(block, (n, len(block)))])
        logs, voters = _heaviest(logs, voters, n_kept)
    return _relative(logs, voters), n_iter, converged


def _block_width(graph: ConstrainedGraph, n_labeled: int) -> int:
    # One factorisation serves all columns of a dense graph.
    return max(8, _BLOCK_BYTES // (8 * graph.n_samples)) if graph.is_sparse else n_labeled


def _heaviest(
    logs: NDArray[np.float64], voters: NDArray[np.intp], n_kept: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    # Voters stand in ascending order among equals, so a stable sort is deterministic.
    order = np.argsort(-logs, axis=1, kind="stable")[:, :n_kept]
    return np.take_along_axis(logs, order, axis=1), np.take_along_axis(voters, order, axis=1)


def _relative(logs: NDArray[np.float64], voters: NDArray[np.intp]) -> NearestLabeled:
    log_scale = logs[:, 0].copy()
    shift = np.where(np.isneginf(log_scale), 0.0, log_scale)
    return NearestLabeled(np.exp(logs - shift[:, None]), voters, log_scale)


def _checked(W: Any, alpha: float) -> tuple[Any, float]:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie strictly between 0 and 1, such as 0.99.")
    if not sparse.issparse(W):
        W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"W must be a square matrix of weights, not of shape {W.shape}.")
    values = W.data if sparse.issparse(W) else W
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("W must hold finite, nonnegative weights.")
    if abs(W - W.T).max() > 1e-10 * max(abs(W).max(), np.finfo(float).tiny):
        raise ValueError("W must be symmetric; use (W + W.T) / 2 if it is nearly so.")
    return W, float(alpha)
