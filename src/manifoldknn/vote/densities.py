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

from manifoldknn.base import Floats, Ints
from manifoldknn.walk.levels import Columns, Solution
from manifoldknn.walk.reduction import solve_columns

if TYPE_CHECKING:
    from manifoldknn.vote.shared_graph import ReadyGraph

FIRST_REACH = 4.0  # before β is known
_SHARE_FOR_SUMS = 0.25  # of the tolerance, for s; the rest is for f


@dataclass(frozen=True)
class Densities(Solution):
    """log f, a column for each class; -inf in rows that no label reaches."""

    log_sums: Floats  # log s of every label


def class_densities(
    graph: ReadyGraph, labeled: Ints, codes: Ints, n_classes: int, alpha: float, *, tol: float,
    max_iter: int, reach: float = FIRST_REACH, rows: Ints | None = None,
    start: Floats | None = None, settle: bool = False,
) -> Densities:  # fmt: skip
    """Return f_c(i) for every class and row, or the `rows` wanted.

    `codes` are class numbers of the labelled rows; the graph must not lack these, nor those that
    are wanted. `tol` is the error allowed in a density, relative to itself, or to ``exp(-reach)``
    of the largest of its row where that is more; `max_iter` as in `solve_by_levels`. `start` is
    log f of all rows on a graph that was much the same. To `settle` means that `tol` is an
    estimate, which takes half the iterations, and no bound; for s it always is. C + 1 columns for
    any number of labels: O(iterations · edges · C).
    """
    walk = DensityWalk(graph, labeled, alpha, tol=tol, max_iter=max_iter, settle=settle)
    everyone, sums = np.arange(len(labeled)), walk.sums
    found = walk.densities(everyone, codes, n_classes, reach=reach, rows=rows, start=start)
    n_iter, converged = sums.n_iter + found.n_iter, sums.converged and found.converged
    return Densities(found.log_values, n_iter, converged, found.reach, sums.log_values)


class DensityWalk:
    """Densities of any classes made of some labels: s is computed once, f when asked for.

    Parameters are as in `class_densities`; `sums` are log s of every label.
    """

    def __init__(
        self, graph: ReadyGraph, labeled: Ints, alpha: float, *, tol: float, max_iter: int,
        settle: bool = False,
    ) -> None:  # fmt: skip
        self._settle = settle
        self._labeled, self._tol = labeled, (1.0 - _SHARE_FOR_SUMS) * tol
        self._solve: dict[str, Any] = {"alpha": alpha, "max_iter": max_iter}
        self._ready, self._half = graph.ready, 0.5 * graph.ready.log_degrees
        self.sums = _column_sums(graph, labeled, tol=_SHARE_FOR_SUMS * tol, **self._solve)

    def densities(
        self, labels: Ints, codes: Ints, n_classes: int, *, reach: float = FIRST_REACH,
        rows: Ints | None = None, start: Floats | None = None,
    ) -> Solution:  # fmt: skip
        """Return log f of classes by the labels at some positions, and their class numbers.

        A column per class, -inf everywhere for one without labels. Others as in `class_densities`.
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


def _column_sums(graph: ReadyGraph, labeled: Ints, *, alpha: float, **solve: Any) -> Solution:
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
