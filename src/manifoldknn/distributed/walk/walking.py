"""Walk and vote on machines that share the rows: one long task each, over `shared`.

The rooms `walk` and `vote` do the numerics. Here is what `classifier.py` does on one machine: the
walk from all labels, the walks without those of each fold, and sharpness until densities are
accurate as far as the vote looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base import Ints
from manifoldknn.distributed.walk.recipe import SharedRecipe, shared_recipe
from manifoldknn.distributed.walk.shared import Counted, Links, Shared, on_lines
from manifoldknn.graph.constrained import automatic_sigma
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.densities import FIRST_REACH, class_densities
from manifoldknn.vote.doubt import usual_density
from manifoldknn.vote.hidden import hidden_groups, hidden_tolerance
from manifoldknn.vote.shared_graph import SharedGraph
from manifoldknn.vote.sharpness import (
    best_sharpness,
    resolved_reach,
    shown_reach,
    usual_sharpness,
)
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.walks import Walked, walk_by_class
from manifoldknn.walk.aggregates import aggregates
from manifoldknn.walk.choose import MANY_ROWS, Way, chosen_alpha
from manifoldknn.walk.iteration import LONG_WALK
from manifoldknn.walk.normalized import NormalizedGraph

_GROUPS = 1000  # of rows, on all machines, that a preconditioner solves exactly
_WAITING = 2  # walks, beside one per thread, that go on while others wait for machines,
_UNDER_WAY = 200_000  # and rows of a machine times walks at once, for their memory
_CLOSER = 0.3  # of the tolerance: machines that share rows then agree with one that has all


@dataclass(frozen=True)
class OwnRows:
    """What a machine knows of its own rows, which are those between two bounds of all.

    Attributes
    ----------
    bounds : ndarray of shape (n_machines + 1,)
        Where own rows of each machine begin.
    one, other, length : ndarray
        Edges at own rows: the own end, the other one, and how far it is.
    nearest : ndarray of shape (n_own, k)
        The nearest of every row.
    distances : callable
        Returns how far neighbours are, which is asked for once.
    codes : ndarray of shape (n_own,)
        Class numbers, -1 where unlabelled.
    order : ndarray of shape (n_own,)
        The number of a row in the input.
    """

    bounds: Ints
    one: Ints
    other: Ints
    length: NDArray[np.float64]
    nearest: NDArray[Any]
    distances: Callable[[], NDArray[np.float64]]
    codes: Ints
    order: Ints


@dataclass(frozen=True)
class WalkedRows:
    """What a walk says of own rows, and what it learned; as the attributes of the estimator."""

    similarities: Similarities
    sigma: float
    alpha: float
    sharpness: float
    calibrated: bool
    usual: float
    n_iter: int
    converged: bool
    halo_bytes: int
    halo_numbers: int


def walked_together(
    links: Links,
    rows: OwnRows,
    n_classes: int,
    prior: NDArray[np.float64],
    *,
    sigma: float | str,
    alpha: float | str,
    sharpness: float | str,
    theta: float,
    tree_depth: int,
    tol: float,
    max_iter: int,
    n_jobs: int = 1,
) -> WalkedRows:
    """Walk from all labels with the other machines, each of which calls this at the same time.

    Parameters
    ----------
    links : Links
        To the others.
    rows : OwnRows
        Of this machine.
    n_classes : int
        Number of classes.
    prior : ndarray of shape (n_classes,)
        Shares of classes, π.
    sigma, alpha, sharpness, theta, tree_depth, tol, max_iter
        As in `ManifoldKNNClassifier`.
    n_jobs : int, default=1
        Threads of this machine.

    Returns
    -------
    WalkedRows
        Of own rows.
    """
    everyone = Shared(
        links, 0, [np.empty(0, dtype=np.intp)] * links.size, [0] * links.size, Counted()
    )
    if isinstance(sigma, str):
        sigma = automatic_sigma(Neighbors(rows.nearest, rows.distances()), together=everyone)
    recipe, codes = shared_recipe(
        links, rows.bounds, rows.one, rows.other, rows.length, rows.nearest, rows.codes,
        sigma=sigma, theta=theta, tree_depth=tree_depth,
    )  # fmt: skip
    labels = _Labels(everyone, rows)
    alpha = chosen_alpha(alpha, "classes", len(labels.codes), int(rows.bounds[-1]))
    walk = _Walk(links, recipe, codes, rows.codes, n_classes, alpha, tol, max_iter, n_jobs)
    reach, start, n_iter, free = FIRST_REACH, None, 0, isinstance(sharpness, str)
    groups = labels.groups() if free and n_classes > 1 else []
    hiding = [labels.here(group) for group in groups]
    logs: NDArray[np.float64] = np.empty((0, n_classes))
    typical = -np.inf
    while True:  # until densities are accurate as far as the vote looks
        found = walk.from_labels(reach, start)
        n_iter, known = n_iter or found.n_iter, found.similarities
        unlabeled = known.logs[: len(rows.codes)][rows.codes < 0]
        reach = resolved_reach(unlabeled, found.reach, everyone)
        if reach <= found.reach:
            usual = usual_sharpness(unlabeled, everyone) if free else sharpness
            beta = float(usual)
            if groups:
                hidden = walk.hidden(hiding, found.reach)
                logs = np.concatenate([labels.in_order(*pair) for pair in zip(groups, hidden)])
                given = labels.codes[np.concatenate(groups)]
                beta = best_sharpness(logs, given, prior, float(usual))
                typical = usual_density(logs, given)
            reach = shown_reach(beta, found.reach, tol=hidden_tolerance(tol))
        if reach <= found.reach:
            break
        start = known.logarithms()
    counted = recipe.together.counted
    calibrated = free and bool((np.isfinite(logs).sum(axis=1) > 1).any())
    return WalkedRows(
        known.rows(slice(0, len(rows.codes))), sigma, alpha, beta, calibrated, typical, n_iter,
        found.converged, counted.halo_bytes, counted.halo_numbers,
    )  # fmt: skip


class _Labels:
    """All labels, in the order of the input, and where those of own rows are."""

    def __init__(self, everyone: Shared, rows: OwnRows) -> None:
        own = np.flatnonzero(rows.codes >= 0)
        told = np.column_stack([rows.order[own], rows.codes[own]]).astype(np.int64)
        every = everyone.gathered(told).reshape(-1, 2)
        every = every[np.argsort(every[:, 0])]
        self._everyone, self._own, self._order = everyone, own, rows.order[own]
        self._rows, self.codes = every[:, 0], every[:, 1].astype(np.intp)

    def groups(self) -> list[Ints]:
        """Return the places of labels in the groups in which they are hidden."""
        return hidden_groups(self.codes)

    def here(self, group: Ints) -> Ints:
        """Return the own rows of a group."""
        return self._own[np.isin(self._order, self._rows[group])]

    def in_order(self, group: Ints, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what all machines say of a group, in its order."""
        order = self._order[np.isin(self._order, self._rows[group])]
        every = self._everyone.gathered(np.column_stack([order, logs]))
        return np.asarray(every[np.argsort(every[:, 0]), 1:])


class _Walk:
    """Walks over one graph, with all labels or without some."""

    def __init__(
        self,
        links: Links,
        recipe: SharedRecipe,
        codes: Ints,
        own_codes: Ints,
        n_classes: int,
        alpha: float,
        tol: float,
        max_iter: int,
        n_jobs: int,
    ) -> None:
        self._links, self._n_jobs = links, n_jobs
        self._together, self._own, self._n_classes = recipe.together, own_codes, n_classes
        self._alpha, self._tol, self._max_iter = alpha, tol, max_iter
        self._graph = recipe.constrained(codes)
        self._shared = SharedGraph(recipe, self._graph, codes, alpha, self._way())
        self._ready = self._shared.ready(self._graph, n_jobs=n_jobs)

    def _way(self) -> Way:
        """Return the way of `chosen_way` where a graph is iterated; groups are of own rows."""
        n, together = len(self._own), self._together
        if self._alpha < LONG_WALK or together.sum(n) <= MANY_ROWS:
            return Way("iterate")
        log_s, coarsest = NormalizedGraph(self._graph).log_s[:n, :n], _GROUPS // together.size
        levels = aggregates(log_s, coarsest=coarsest) if n > coarsest else (np.arange(n),)
        return Way("iterate", levels if together.all(bool(levels)) else ())

    def from_labels(self, reach: float, start: Any) -> Walked:
        """Walk from all labels."""
        labeled = np.flatnonzero(self._own >= 0)
        return walk_by_class(
            self._ready, labeled, self._own[labeled], self._n_classes, self._alpha,
            tol=_CLOSER * self._tol, max_iter=self._max_iter, reach=reach, start=start,
        )  # fmt: skip

    def hidden(self, hiding: list[Ints], reach: float) -> list[NDArray[np.float64]]:
        """Return log f of groups of own rows, each while their labels are hidden everywhere."""
        most = self._n_jobs + (_WAITING if self._links.size > 1 else 0)
        at_once = max(1, min(most, len(hiding), _UNDER_WAY // max(1, len(self._own))))
        inner = max(1, self._n_jobs // at_once)
        return on_lines(self._links, lambda rows: self._hidden(rows, reach, inner), hiding, at_once)

    def _hidden(self, rows: Ints, reach: float, n_jobs: int) -> NDArray[np.float64]:
        """Return that of one group."""
        visible = self._own.copy()
        visible[rows] = -1
        labeled = np.flatnonzero(visible >= 0)
        graph = self._shared.recipe.constrained(self._together.halo(visible))
        found = class_densities(
            self._shared.ready(graph, n_jobs=n_jobs), labeled, visible[labeled],
            self._n_classes, self._alpha, tol=_CLOSER * hidden_tolerance(self._tol),
            max_iter=self._max_iter, reach=reach, rows=rows, settle=True,
        )  # fmt: skip
        return found.log_values
