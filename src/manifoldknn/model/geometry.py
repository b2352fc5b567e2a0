"""Who is near whom: searched for a fit, or kept from the last one.

It does not depend on labels. Parameters, the device among them, decide whether it still holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from manifoldknn.base.tensors import named
from manifoldknn.graph.constrained import candidate_count
from manifoldknn.graph.spanning import Edges
from manifoldknn.search.growing import GrowingIndex
from manifoldknn.search.neighbors import NeighborIndex, Neighbors
from manifoldknn.search.user_searches import check_enough, is_searcher, searcher_for

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier
    from manifoldknn.device.steps import Steps


@dataclass(frozen=True)
class Geometry:
    """What need not be searched again when only labels change."""

    index: GrowingIndex  # search over all rows
    lists: Neighbors  # neighbours of every row
    edges: Edges | None  # pairs that the third rule links, if known
    as_new: bool  # whether the lists are what a new search would find


def searched(
    model: ManifoldKNNClassifier, steps: Steps, X: Any, search: Any, graph_neighbors: int
) -> Geometry:
    """Search the neighbours of every row."""
    index = GrowingIndex(opened(model, steps, X, search))
    lists = steps.lists(index, candidate_count(model.graph, graph_neighbors, X.shape[0]))
    if not np.isfinite(lists.distances).all():
        raise ValueError(
            f"metric={model.metric!r} gave distances that are not finite: check it, or rescale X."
        )
    check_enough(lists, graph_neighbors)
    return Geometry(index, lists, None, as_new=True)


def opened(model: ManifoldKNNClassifier, steps: Steps, X: Any, search: Any) -> NeighborIndex:
    """Return a search over rows, with the parameters of the model."""
    seed = 0
    if model.random_state is not None:
        seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    return steps.open_index(X, search, metric=model.metric, n_jobs=model.n_jobs, seed=seed)


def reopened(model: ManifoldKNNClassifier, X: Any) -> GrowingIndex:
    """Return a search over more rows than there were, with nothing beside it."""
    search = "auto" if lists_were_brought(model) else searcher_for(model.neighbors, X)
    return GrowingIndex(opened(model, model.fitted_.steps, X, search))


def known_geometry(model: ManifoldKNNClassifier, *, search: bool) -> Geometry | None:
    """Return index, neighbours and edges of all rows as far as they are known; None if not.

    With `search`, only what a new search would find as well.
    """
    index, lists = model.fitted_.index, model.fitted_.lists
    n, n_listed = index.n_samples, len(lists.indices)
    brought = lists_were_brought(model)
    if settings_changed(model):
        return None
    if n_listed == n and (model.fitted_.lists_as_new or brought or not search):
        return Geometry(index, lists, model.fitted_.edges, model.fitted_.lists_as_new)
    exact = index.first.is_exact and _searches_exactly(model)
    count = candidate_count(model.graph, model.graph_neighbors, n)
    known = min(count, n_listed - 1)
    short = not brought and lists.indices.shape[1] < known  # as model files have them
    if not brought and (
        (search and not exact)
        or index.first.n_samples > n_listed
        or (not exact and index.is_crowded)
        or (short and not (model.fitted_.lists_as_new and index.first.n_samples == n_listed))
    ):
        return None
    if short:
        lists = model.fitted_.steps.lists(index.first, known)
    lists = index.grown_lists(lists, count)
    return Geometry(reopened(model, index.X) if exact else index, lists, None, exact)


def list_settings(model: ManifoldKNNClassifier) -> tuple[Any, ...]:
    """Return the parameters that neighbour lists and linked pairs follow from, the device last."""
    search = model.neighbors if isinstance(model.neighbors, str) else "brought"
    return model.graph, model.graph_neighbors, model.metric, search, named(model.device)


def settings_changed(model: ManifoldKNNClassifier) -> bool:
    """Tell whether parameters that neighbours and edges follow from are others now."""
    return model.fitted_.settings != list_settings(model)


def lists_were_brought(model: ManifoldKNNClassifier) -> bool:
    """Tell whether the user brought neighbours, and nobody who could search more."""
    return not isinstance(model.neighbors, str) and not is_searcher(model.neighbors)


def _searches_exactly(model: ManifoldKNNClassifier) -> bool:
    """Tell whether a search over all rows would be exact."""
    if model.neighbors == "auto":
        template = model.fitted_.index.template
        shape = (model.fitted_.index.n_samples, template.shape[1])
        return model.fitted_.steps.searches_exactly(template, model.metric, shape)
    return bool(model.neighbors == "exact")
