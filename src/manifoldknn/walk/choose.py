"""How long walkers live, and which way their columns are computed.

Three ways, each forced on the same problems in ``benchmarks/results/ways.md``:

- "dense": Cholesky factorisation, where every pair of rows has an edge;
- "factorise": sparse factorisation, where the graph is as flat as a map and its factor small;
- "iterate": conjugate gradients on what elimination leaves, with groups of rows that belong
  together as a preconditioner where walks are long.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifoldknn.walk.aggregates import Levels, aggregates
from manifoldknn.walk.factor_cost import factorization_pays
from manifoldknn.walk.iteration import LONG_WALK
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph, reduced_graph

logger = logging.getLogger(__name__)

PUBLISHED_ALPHA = 0.99
_DEATHS_PER_LABEL, _LEAST_DEATHS, _MOST_DEATHS = 0.3, 3e-4, 0.5
MANY_ROWS = 5000  # fewer are iterated sooner than their groups are found


def chosen_alpha(alpha: float | str, vote: str, n_labeled: int, n_samples: int) -> float:
    """Return α, the share of strength kept per step.

    Parameters
    ----------
    alpha : float or "auto"
        The parameter.
    vote : {"classes", "neighbors"}
        Who votes.
    n_labeled, n_samples : int
        Labels and rows, l and n.

    Returns
    -------
    float
        A number as it is. "auto" is 0.99 for neighbours, and for classes
        1 - clip(0.3·l/n, 3e-4, ½): walkers live about as long as it takes to meet labels.

    Examples
    --------
    >>> from manifoldknn.walk.choose import chosen_alpha
    >>> chosen_alpha("auto", "classes", 10, 1000)
    0.997
    """
    if not isinstance(alpha, str):
        return float(alpha)
    if vote == "neighbors":
        return PUBLISHED_ALPHA
    return 1.0 - min(max(_DEATHS_PER_LABEL * n_labeled / n_samples, _LEAST_DEATHS), _MOST_DEATHS)


@dataclass(frozen=True)
class Way:
    """How the columns of a walk are computed; graphs that are much alike go the same way.

    Attributes
    ----------
    name : {"dense", "factorise", "iterate"}
        Cholesky factorisation of a dense graph; sparse factorisation; conjugate gradients
        on what elimination leaves.
    levels : tuple of ndarray
        For the last: rows that belong together, where walks are long.
    reason : str
        Why it was taken, in words.
    """

    name: str
    levels: Levels = ()
    reason: str = "asked for"


def chosen_way(graph: NormalizedGraph, alpha: float, *, n_columns: int) -> Way:
    """Return the way in which `n_columns`, as many as will be wanted in all, are had soonest."""
    if not graph.is_sparse:
        return _told(Way("dense", reason="every pair has an edge"))
    if factorization_pays(graph, n_columns, alpha):
        return _told(Way("factorise", reason="the factor of this graph is small"))
    if alpha < LONG_WALK:
        return _told(Way("iterate", reason="the factor is large, and walks are short"))
    if graph.n_samples <= MANY_ROWS:
        return _told(Way("iterate", reason="rows are few"))
    levels = aggregates(graph.log_s)
    reason = "walks are long, so groups of rows help"
    if not levels:
        reason = "walks are long, but too many islands remain for groups of rows to help"
    return _told(Way("iterate", levels, reason))


def _told(way: Way) -> Way:
    """Say which way is taken, and why."""
    how = f"{way.name} with {len(way.levels)} levels of groups" if way.levels else way.name
    logger.info("way of the walk: %s (%s)", how, way.reason)
    return way


def prepared_graph(
    graph: NormalizedGraph,
    stay: NDArray[np.intp],
    alpha: float,
    way: Way,
    *,
    n_jobs: int | None = 1,
) -> NormalizedGraph | ReducedGraph:
    """Make a graph ready for a way, which is its own or that of a graph much like it.

    Samples that `stay` are not eliminated: walks may start there, or they are looked at. A reduced
    graph lacks rows that can be filled in later. Products take `n_jobs` threads, all cores if None.
    """
    if way.name != "iterate":
        return graph.going(factorize=way.name == "factorise")
    return reduced_graph(graph.going(levels=way.levels, n_jobs=n_jobs), stay, alpha)
