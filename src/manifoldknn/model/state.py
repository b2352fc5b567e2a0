"""What a fitted model consists of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.labels import EncodedLabels
from manifoldknn.base.tensors import named
from manifoldknn.graph.constrained import GraphRecipe
from manifoldknn.graph.links import HandLinks
from manifoldknn.graph.spanning import Edges
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.model.arrivals import Arrivals
from manifoldknn.search.growing import GrowingIndex
from manifoldknn.search.neighbors import Neighbors

if TYPE_CHECKING:
    from manifoldknn.device.steps import Steps
    from manifoldknn.extend.offmanifold import OwnResiduals
    from manifoldknn.vote.hidden import HiddenLabels
    from manifoldknn.vote.votes import Vote
    from manifoldknn.vote.walked import Walked


class FittedState:
    """Parameters and fitted attributes that the parts of the classifier share.

    Everything fitted is an array or made of arrays, and is replaced, never changed:
    whoever fails can put back what there was.
    """

    n_neighbors: int
    vote: str
    graph: str
    graph_neighbors: int
    alpha: Any
    tree_depth: int
    theta: float
    metric: Any
    tol: float
    max_iter: int
    neighbors: Any
    unlabeled: Any
    on_unreached: str
    n_jobs: int | None
    device: Any
    verbose: int

    classes_: NDArray[Any]
    transduction_: NDArray[Any]
    label_distributions_: NDArray[np.float64]
    labeled_indices_: NDArray[np.intp]
    unreached_: NDArray[np.bool_]
    n_walked_: int
    sigma_: float
    alpha_: float
    sharpness_: float | None
    class_prior_: NDArray[np.float64]
    calibrated_: bool
    hidden_labels_: HiddenLabels | None

    _steps: Steps  # on the machine it was fitted on
    _index: GrowingIndex  # search over all rows
    _labels: EncodedLabels  # of all rows
    _lists: Neighbors  # neighbours of the rows that the graph has
    _edges: Edges  # pairs of them that the third rule links
    _lists_as_new: bool  # whether a new search would find the same
    _settings: tuple[Any, ...]  # the parameters that lists and edges follow from
    _links: HandLinks  # by hand
    _graph: ConstrainedGraph
    _walk: Walked  # similarities of all rows
    _vote: Vote  # from similarities to shares
    _arrivals: Arrivals | None  # rows taken in since the walk
    _own: OwnResiduals  # of the rows that the graph has

    def _list_settings(self) -> tuple[Any, ...]:
        """Return the parameters that neighbour lists and linked pairs follow from."""
        search = self.neighbors if isinstance(self.neighbors, str) else "brought"
        return self.graph, self.graph_neighbors, self.metric, search, named(self.device)

    def _recipe(self) -> GraphRecipe:
        """Return what the graph is made of, but for the labels; later rows are not in it."""
        width = min(self.graph_neighbors, self._lists.indices.shape[1])
        return GraphRecipe(
            self._index.X[: self.n_walked_],
            self._lists.indices[:, :width],
            self._edges,
            self.sigma_,
            self.graph,
            self.tree_depth,
            self.theta,
            self.metric,
            self._links,
        )

    def _all_or_nothing(self) -> AbstractContextManager[None]:
        """Put everything back if the block fails."""
        return all_or_nothing(self)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Put a model's attributes, which are replaced and never changed, back if the block fails."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before  # nothing is half done
        raise
