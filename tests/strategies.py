"""Random problems for property tests: islands, duplicates, every class size."""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from manifoldknn.device import steps
from manifoldknn.graph.constrained import GraphRecipe, candidate_count, selected_edges
from manifoldknn.graph.links import NO_LINKS
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.vote import deciders, hidden, walks
from manifoldknn.vote import shared_graph as sharing
from manifoldknn.vote.shared_graph import SharedGraph, ready_graph
from manifoldknn.walk import aggregates
from manifoldknn.walk.choose import Way


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray  # class numbers, -1 where unlabelled


@st.composite
def problems(draw, max_samples=60, ties=True, min_classes=1):
    """Samples in a few islands, some repeated, with labels for a few of them."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(6, max_samples))
    d = draw(st.integers(1, 4))
    n_islands = draw(st.integers(1, 3))
    gap = draw(st.sampled_from([0.5, 3.0, 6.0]))
    X = rng.normal(size=(n, d)) + gap * rng.integers(0, n_islands, n)[:, None]
    if ties and draw(st.booleans()):
        X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]
    if ties and draw(st.booleans()):
        X = np.round(X)
    if np.ptp(X) == 0:
        X[0] += 1.0
    n_classes = draw(st.integers(min_classes, 4))
    most = draw(st.sampled_from([12, 40]))  # more than a block of label columns
    n_labeled = draw(st.integers(n_classes, max(n_classes, min(n, most))))
    y = np.full(n, -1)
    rows = rng.choice(n, n_labeled, replace=False)
    # The first of each class, then classes of any size.
    y[rows] = np.concatenate(
        [np.arange(n_classes), rng.integers(0, n_classes, n_labeled - n_classes)]
    )
    return Problem(X, y)


def recipe_of(X, graph, k=5, depth=2, sigma=0.7, links=NO_LINKS):
    lists = ExactIndex(X).among_samples(candidate_count(graph, k, len(X)))
    pairs = {"graph": graph, "graph_neighbors": k, "metric": "euclidean"}
    edges = selected_edges(X, lists, **pairs)
    return GraphRecipe(X, lists.indices[:, :k], edges, sigma, graph, depth, 0.1, "euclidean", links)


def built_graph(problem, graph, depth=2, sigma=0.7):
    return recipe_of(problem.X, graph, depth=depth, sigma=sigma).constrained(problem.y)


def shared_graph(recipe, codes, alpha, way):
    """What walks share, whichever labels are visible, on a sparse graph."""
    return SharedGraph(recipe, recipe.constrained(codes), codes, alpha, Way(way))


def walk_by_class_factorised(graph, labeled, codes, n_classes, alpha, **accuracy):
    """Densities by the way that needs no tolerance."""
    ready = ready_graph(graph, labeled, alpha, Way("factorise"))
    return walks.walk_by_class(ready, labeled, codes, n_classes, alpha, **accuracy)


@st.composite
def links_for(draw, y, most=4):
    """Must-links and cannot-links that no label and no chain contradicts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    truth = np.where(y >= 0, y, rng.integers(0, y.max() + 1, len(y)))
    pairs = rng.choice(len(y), (3 * most, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    return pairs[same][:most], pairs[~same][:most]


WAYS = ("factorise", "iterate", "levels")


@contextmanager
def forced(way, coarsest=4, few=1.0):
    """Let every walk over a sparse graph go one way, with levels down to a few groups."""

    def chosen(graph, *_, **__):
        if not graph.is_sparse:
            return Way("dense")
        if way != "levels":
            return Way(way)
        return Way("iterate", aggregates.aggregates(graph.log_s))

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(aggregates, "_COARSEST", coarsest))
        patches.enter_context(mock.patch.object(aggregates, "_SLOWEST", 1.0))
        if way == "iterate":  # let one elimination serve all, however many rows labels touch
            patches.enter_context(mock.patch.object(sharing, "_FEW", few))
        for module in (deciders, hidden, steps, walks):
            patches.enter_context(mock.patch.object(module, "chosen_way", chosen))
        yield
