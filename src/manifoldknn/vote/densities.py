"""Classes as densities over the data: the walk that answers by default.

With K = (D - αW)⁻¹, every label j is a density over all rows and a class the mean of its labels:

    q_j(i) = K_ij / s_j,   s_j = Σ_i K_ij,   f_c(i) = mean of q_j(i) over the labels j of c.

So a class does not gain by having more labels, nor a label by standing in a dense place. K is
symmetric, so all s_j are one column, K·1, and all f are C columns, however many labels there are.
With A = I - αS it is K = D^-½ A⁻¹ D^-½.

An outlier of degree 1e-120 has an entry of 1e120 in K·1, and its neighbours none the more of it.
What a walker from everywhere does in its first step is therefore taken out beforehand,

    K·1 = D⁻¹·1 + K·(αPᵀ·1):

after it, the walkers of outliers are among the others.

A vote compares powers f^β, and where classes stand far apart β is small: then e^-30 of the largest
density counts. So densities are accurate by themselves down to exp(-reach) of the largest of their
row, and beside that below; how far the vote looks is known once β is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.walk.levels import Columns, Solution
from manifoldknn.walk.reduction import solve_columns

if TYPE_CHECKING:
    from manifoldknn.vote.shared_graph import ReadyGraph

FIRST_REACH = 4.0  # before β is known
_SHARE_FOR_SUMS = 0.25  # of the tolerance, for s; the rest is for f


@dataclass(frozen=True)
class Densities:
    """The densities of all classes.

    Attributes
    ----------
    log_values : ndarray of shape (n_rows, n_classes)
        log f; -inf in rows that no label reaches.
    log_sums : ndarray of shape (n_labeled,)
        log s of every label.
    n_iter : int
        Products with the graph that were needed; 1 for each factorised solve.
    converged : bool
        Whether every row reached the accuracy asked for.
    reach : float
        How far below the largest of their row densities are accurate by themselves.
    """

    log_values: NDArray[np.float64]
    log_sums: NDArray[np.float64]
    n_iter: int
    converged: bool
    reach: float


def class_densities(
    graph: ReadyGraph,
    labeled: NDArray[np.intp],
    codes: NDArray[np.intp],
    n_classes: int,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    reach: float = FIRST_REACH,
    rows: NDArray[np.intp] | None = None,
    start: NDArray[np.float64] | None = None,
    settle: bool = False,
) -> Densities:
    """Return f_c(i) for every row and class.

    Parameters
    ----------
    graph : ReadyGraph
        The graph; it must not lack labelled rows, nor those that are wanted.
    labeled, codes : ndarray of int
        Labelled rows and their class numbers.
    n_classes : int
        Number of classes.
    alpha : float
        Share of strength kept per step.
    tol : float
        Error allowed in a density, relative to itself, or to ``exp(-reach)`` of the largest of
        its row where that is more.
    max_iter : int
        Limit on conjugate-gradient iterations per level.
    reach : float, default=4
        How far below the largest of its row a density still counts, as a logarithm.
    rows : ndarray of int, optional
        The rows wanted, if not all.
    start : ndarray of shape (n_samples, n_classes), optional
        log f on a graph that was much the same, to begin with.
    settle : bool, default=False
        Whether `tol` is an estimate, which takes half the iterations, and no bound. For s it
        always is.

    Returns
    -------
    Densities
        Of those rows.

    Notes
    -----
    C + 1 columns for any number of labels: O(iterations · edges · C).
    """
    walk = DensityWalk(graph, labeled, alpha, tol=tol, max_iter=max_iter, settle=settle)
    everyone = np.arange(len(labeled))
    found = walk.densities(everyone, codes, n_classes, reach=reach, rows=rows, start=start)
    return Densities(
        found.log_values,
        walk.sums.log_values,
        walk.sums.n_iter + found.n_iter,
        walk.sums.converged and found.converged,
        found.reach,
    )


class DensityWalk:
    """Densities of any classes made of some labels: s is computed once, f when asked for.

    Parameters
    ----------
    graph, labeled, alpha, tol, max_iter, settle
        As in `class_densities`.

    Attributes
    ----------
    sums : Solution
        log s of every label.
    """

    def __init__(
        self,
        graph: ReadyGraph,
        labeled: NDArray[np.intp],
        alpha: float,
        *,
        tol: float,
        max_iter: int,
        settle: bool = False,
    ) -> None:
        self._settle = settle
        self._labeled, self._tol = labeled, (1.0 - _SHARE_FOR_SUMS) * tol
        self._solve: dict[str, Any] = {"alpha": alpha, "max_iter": max_iter}
        self._ready, self._half = graph.ready, 0.5 * graph.ready.log_degrees
        self.sums = _column_sums(graph, labeled, tol=_SHARE_FOR_SUMS * tol, **self._solve)

    def densities(
        self,
        labels: NDArray[np.intp],
        codes: NDArray[np.intp],
        n_classes: int,
        *,
        reach: float = FIRST_REACH,
        rows: NDArray[np.intp] | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> Solution:
        """Return log f.

        Parameters
        ----------
        labels : ndarray of int
            Positions among the labelled rows.
        codes : ndarray of int
            Class numbers of these.
        n_classes : int
            Number of classes.
        reach, rows, start
            As in `class_densities`.

        Returns
        -------
        Solution
            A column per class; -inf everywhere for one without labels.
        """
        sources, half = self._labeled[labels], self._half
        counts = self._ready.together.sum(np.bincount(codes, minlength=n_classes))
        columns = Columns(
            rows=sources,
            cols=codes,
            log_values=-half[sources] - self.sums.log_values[labels] - np.log(counts[codes]),
            views=np.zeros((1, n_classes)),
            reach=reach,
            settle=self._settle,
        )
        if start is not None:
            start = start + half[:, None]
        found = solve_columns(
            self._ready, columns, tol=self._tol, rows=rows, start=start, **self._solve
        )
        found.log_values[:] -= (half if rows is None else half[rows])[:, None]
        return found


def _column_sums(
    graph: ReadyGraph, labeled: NDArray[np.intp], *, alpha: float, **solve: Any
) -> Solution:
    """Return log s of every label: D⁻¹·1 + K·(αPᵀ·1) there."""
    half, inflow = 0.5 * graph.ready.log_degrees, graph.log_inflow
    sources = np.flatnonzero(np.isfinite(inflow))
    columns = Columns(
        rows=sources,
        cols=np.zeros(len(sources), dtype=np.intp),
        log_values=np.log(alpha) + inflow[sources] - half[sources],
        views=np.zeros((1, 1)),
        settle=True,  # an estimate will do for what only weighs labels of a class beside each other
    )
    found = solve_columns(graph.ready, columns, rows=labeled, alpha=alpha, **solve)
    later = found.log_values[:, 0] - half[labeled]
    return replace(found, log_values=np.logaddexp(-graph.log_degrees[labeled], later))
