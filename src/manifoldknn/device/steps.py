"""What each step of the method needs from the machine it runs on.

The classifier is written once, in terms of these steps. `Steps` takes them with NumPy, its
subclass `manifoldknn.device.torch_steps.TorchSteps` on a device of PyTorch. Whatever the
machine, steps hand back NumPy arrays: a fitted model does not know where it was fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.samples import check_new_samples, check_samples
from manifoldknn.base.tensors import as_numpy, chosen_device
from manifoldknn.device.memory import check_memory
from manifoldknn.exceptions import DeviceWarning, warn_caller
from manifoldknn.extend.reconstruct import reconstruction
from manifoldknn.graph.constrained import GraphRecipe, graph_recipe
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.search.engines import automatic_engine, check_neighbors, open_index
from manifoldknn.search.neighbors import NeighborIndex, Neighbors, check_metric
from manifoldknn.vote.densities import Densities
from manifoldknn.vote.hidden import hidden_densities, hidden_tolerance, walks_at_once
from manifoldknn.vote.shared_graph import SharedGraph
from manifoldknn.vote.similarities import combined, row_chunks
from manifoldknn.vote.walks import Walked, walk_by_class, walk_by_label
from manifoldknn.walk.choose import chosen_way
from manifoldknn.walk.normalized import NormalizedGraph

__all__ = ["BuiltGraph", "Steps", "choose_steps", "usable_steps"]


@dataclass
class BuiltGraph:
    """The constrained graph, all it was made with but the labels, and what its walks share."""

    recipe: GraphRecipe
    graph: ConstrainedGraph
    shared: SharedGraph | None = field(default=None, kw_only=True)
    hidden: list[Densities] = field(default_factory=list, kw_only=True)  # walked ahead

    def shared_by(self, codes: Ints, n_classes: int, alpha: float) -> SharedGraph:
        """Return what walks by class share, whichever labels are visible: made once."""
        if self.shared is None:
            way = chosen_way(NormalizedGraph(self.graph), alpha, n_columns=n_classes + 1)
            self.shared = SharedGraph(self.recipe, self.graph, codes, alpha, way)
        return self.shared


class Steps:
    """The steps of a fit and of a prediction by NumPy, in the order in which they are taken.

    `check` comes before any heavy work; `walk` takes nearly known log f where there is some.
    """

    def samples(self, estimator: Any, X: Any, y: Any) -> Any:
        """Return the user's samples as float32 or float64, dense or CSR."""
        return check_samples(estimator, as_numpy(X), y)

    def check(
        self, X: Any, neighbors: Any, n_labeled: int, *, metric: Any, graph_neighbors: int,
        **settings: Any,
    ) -> None:  # fmt: skip
        """Raise an error if something is not offered, or will not fit into memory."""
        check_metric(metric, is_sparse=not isinstance(X, np.ndarray))
        if neighbors is not None:
            check_neighbors(neighbors, X, metric=metric, graph_neighbors=graph_neighbors)
        settings |= {"metric": metric, "graph_neighbors": graph_neighbors}
        check_memory(X, n_labeled, neighbors=neighbors, **settings)

    def open_index(
        self, X: Any, neighbors: Any, *, metric: Any, n_jobs: int | None, seed: int
    ) -> NeighborIndex:
        """Return a neighbour search over X."""
        return open_index(X, neighbors, metric=metric, n_jobs=n_jobs, seed=seed)

    def searches_exactly(self, X: Any, metric: Any, shape: tuple[int, int]) -> bool:
        """Tell whether ``neighbors="auto"`` is exact for samples like X in some number."""
        return automatic_engine(X, metric, shape) == "exact"

    def lists(self, index: NeighborIndex, n_neighbors: int) -> Neighbors:
        """Return the neighbours of every sample, in the smallest type that names them all."""
        found = index.among_samples(n_neighbors)
        # Kept with the model, so in the smallest type that names every row.
        numbers: Any = found.indices.astype(np.int32 if index.n_samples < 2**31 else np.int64)
        return Neighbors(numbers, found.distances)

    def graph(self, X: Any, neighbors: Neighbors, codes: Ints, **settings: Any) -> BuiltGraph:
        """Return the constrained graph; settings are those of `graph_recipe`."""
        recipe = graph_recipe(X, neighbors, **settings)
        return BuiltGraph(recipe, recipe.constrained(codes))

    def walk(
        self, built: BuiltGraph, codes: Ints, n_classes: int, alpha: float, *,
        by_class: bool, n_jobs: int | None, reach: float, start: Floats | None,
        groups: list[Ints], **accuracy: Any,
    ) -> Walked:  # fmt: skip
        """Walk from all labelled samples; meanwhile, from those that groups of them leave."""
        labeled = np.flatnonzero(codes >= 0)
        if not by_class:
            return walk_by_label(built.graph, labeled, alpha, n_jobs=n_jobs, **accuracy)
        shared = built.shared_by(codes, n_classes, alpha)

        def walk(threads: int | None) -> Walked:
            return walk_by_class(
                shared.ready(built.graph, n_jobs=threads), labeled, codes[labeled], n_classes,
                alpha, reach=reach, start=start, **accuracy,
            )  # fmt: skip

        roughly = accuracy | {"tol": hidden_tolerance(accuracy["tol"]), "reach": reach}
        found, *built.hidden = walks_at_once(
            codes, groups, n_classes, shared, n_jobs=n_jobs, also=walk, **roughly
        )
        return found

    def hidden(
        self, built: BuiltGraph, codes: Ints, groups: list[Ints],
        n_classes: int, alpha: float, walked: Walked, *, n_jobs: int | None, **accuracy: Any,
    ) -> list[Floats]:  # fmt: skip
        """Return log f of rows while their labels are hidden, group by group."""
        if built.hidden and all(found.reach >= walked.reach for found in built.hidden):
            return [found.log_values for found in built.hidden]
        return hidden_densities(
            codes, groups, n_classes, built.shared_by(codes, n_classes, alpha),
            n_jobs=n_jobs, reach=walked.reach, **accuracy,
        )  # fmt: skip

    def new_rows(self, estimator: Any, X: Any, template: Any) -> Any:
        """Return new rows in the form of the fitted ones."""
        return check_new_samples(estimator, as_numpy(X), template)

    def votes(self, model: Any, X: Any) -> Iterator[tuple[slice, Floats, Floats, Bools]]:
        """Yield chunks of new rows: their votes, the same with doubts, and who is unreached."""
        fitted, known = model.fitted_, model.fitted_.walk.similarities
        width = min(model.graph_neighbors, fitted.index.n_samples)
        for part in row_chunks(X.shape[0], X.shape[1], known.logs.shape[1], len(model.classes_)):
            made = reconstruction(X[part], fitted.index, n_neighbors=width, n_jobs=model.n_jobs)
            found = combined(made.z, made.indices, known, n_jobs=model.n_jobs)
            belonging = fitted.belonging.of_new(made.z, made.indices, made.spacings)
            yield part, *fitted.votes(found, X[part], belonging), found.unreached


def choose_steps(device: Any, X: Any) -> Steps:
    """Return the steps for the parameter `device` and the device of a user's samples."""
    place = chosen_device(device, X)
    if place is None:
        return Steps()
    from manifoldknn.device.torch_steps import TorchSteps

    return TorchSteps(place)


def usable_steps(device: str) -> Steps:
    """Return the steps for a model that was fitted on a device, on the CPU if that is not there."""
    try:
        return choose_steps(device, None)
    except (ImportError, ValueError):
        warn_caller(
            f"The model was fitted on {device}, which this machine does not have: it goes on with "
            "the CPU.",
            DeviceWarning,
        )
        return Steps()
