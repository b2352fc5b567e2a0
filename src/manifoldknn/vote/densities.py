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

if TYPE_CHECKING:
    from manifoldknn.vote.ties import ReadyGraph

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
        Whether `tol` is an estimate, which takes half the iterations, and no bound.

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
        self._graph, self._labeled, self._settle = graph, labeled, settle
        how: dict[str, Any] = {"alpha": alpha, "max_iter": max_iter}
        self._how = how | {"tol": (1.0 - _SHARE_FOR_SUMS) * tol}
        self.sums = _column_sums(graph, labeled, tol=_SHARE_FOR_SUMS * tol, **how)

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
            Class numbers of these. Graphs that were made into one have numbers of their own,
            which begin again for the columns every `n_classes`.
        n_classes : int
            Number of classes.
        reach, rows, start
            As in `class_densities`.

        Returns
        -------
        Solution
            A column per class; -inf everywhere for one without labels.
        """
        counts, kernels = np.bincount(codes, minlength=n_classes), self._graph.kernels
        columns = Columns(
            rows=kernels.array(self._labeled[labels]),
            cols=kernels.array(codes % n_classes),
            log_values=kernels.array(-self.sums.log_values[labels] - np.log(counts[codes])),
            views=kernels.full((1, n_classes), 0.0),
            reach=reach,
            settle=self._settle,
        )
        return self._graph.solve(columns, rows=rows, start=start, **self._how)


def _column_sums(
    graph: ReadyGraph, labeled: NDArray[np.intp], *, alpha: float, **solve: Any
) -> Solution:
    """Return log s of every label: D⁻¹·1 + K·(αPᵀ·1) there."""
    kernels, inflow = graph.kernels, graph.log_inflow
    sources = kernels.places(kernels.xp.isfinite(inflow))
    columns = Columns(
        rows=sources,
        cols=kernels.xp.zeros_like(sources),
        log_values=float(np.log(alpha)) + inflow[sources],
        views=kernels.full((1, 1), 0.0),
        settle=True,  # an estimate will do for what only weighs labels of a class beside each other
    )
    found = graph.solve_sums(columns, rows=labeled, alpha=alpha, **solve)
    own = -kernels.host(graph.log_degrees[kernels.array(labeled)])
    return replace(found, log_values=np.logaddexp(own, found.log_values[:, 0]))
