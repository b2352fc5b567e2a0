"""All that a fit leaves, beside the arrays that users look at: one object, replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifoldknn.base import Floats
from manifoldknn.graph.constrained import GraphRecipe

if TYPE_CHECKING:
    from manifoldknn.base.labels import EncodedLabels
    from manifoldknn.device.steps import Steps
    from manifoldknn.extend.belonging import Belonging
    from manifoldknn.extend.offmanifold import OwnResiduals
    from manifoldknn.graph.links import HandLinks
    from manifoldknn.graph.spanning import Edges
    from manifoldknn.graph.weights import ConstrainedGraph
    from manifoldknn.model.arrivals import Arrivals
    from manifoldknn.search.growing import GrowingIndex
    from manifoldknn.search.neighbors import Neighbors
    from manifoldknn.vote.partner import Partner
    from manifoldknn.vote.similarities import Similarities
    from manifoldknn.vote.votes import Vote
    from manifoldknn.vote.walks import Walked


@dataclass(frozen=True)
class Fitted:
    """What predict, the stream, model files and reports know of a fit.

    Everything in it is an array or made of arrays, and is replaced, never changed:
    whoever fails can put back what there was.
    """

    steps: Steps  # of the method, on the machine of the fit
    index: GrowingIndex  # search over all rows
    labels: EncodedLabels  # of all rows
    lists: Neighbors  # neighbours of the rows that the graph has
    edges: Edges  # pairs of them that the third rule links, and their lengths
    lists_as_new: bool  # whether a new search would find the same
    settings: tuple[Any, ...]  # the parameters that lists and edges follow from
    links: HandLinks  # by hand
    graph: ConstrainedGraph  # W
    walk: Walked  # similarities of all rows
    vote: Vote  # from similarities to shares
    own: OwnResiduals  # of the rows that the graph has
    belonging: Belonging  # how well all rows lie among the others
    arrivals: Arrivals | None = None  # rows taken in since the walk
    row_index: Any = None  # the index of the fitted frame
    partner: Partner | None = None  # who has a say in the vote, if anybody

    def votes(self, found: Similarities, X: Any, belonging: Floats) -> tuple[Floats, Floats]:
        """Return the votes for rows X of some similarities, and the same less sure by doubts."""
        said = None if self.partner is None else self.partner.said(X)
        shares = self.vote.shares(found.logs, said)
        return shares, self.vote.doubted(shares, found.log_scale, belonging)


def fitted_recipe(classifier: Any) -> GraphRecipe:
    """Return what a fitted graph is made of, but for the labels; later rows are not in it."""
    fitted: Fitted = classifier.fitted_
    return recipe_of(classifier, fitted.index.X, fitted.lists, fitted.edges, fitted.links)


def recipe_of(
    classifier: Any, X: Any, lists: Neighbors, edges: Edges, links: HandLinks
) -> GraphRecipe:
    """Return the same where a classifier is not whole yet."""
    c, nearest = classifier, lists.indices[:, : classifier.graph_neighbors]
    how = c.sigma_, c.graph, c.tree_depth, c.theta, c.metric
    return GraphRecipe(X[: c.n_walked_], nearest, edges, *how, links)


@contextmanager
def all_or_nothing(model: Any) -> Iterator[None]:
    """Put a model's attributes, which are replaced and never changed, back if the block fails."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before  # nothing is half done
        raise
