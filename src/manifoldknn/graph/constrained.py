"""Neighbours and labels make the constrained graph (Table 1 of the paper).

For samples i and j the weight of their edge is

- 1 where both are labelled with one class (must-link),
- 0 where both are labelled with different classes (cannot-link),
- exp(-‖x_i - x_j‖² / 2σ²) otherwise, for the pairs that `graph` selects,

and edges of the strengthened trees are multiplied by 1 + θ^r. Weights are kept
as logarithms: far samples have weights such as 1e-2000, which no float holds
but which still decide where their walk goes.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_consistent_length

from manifoldknn.base import Floats, Ints
from manifoldknn.base.csr import narrowest
from manifoldknn.base.distances import distance_blocks
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.base.labels import encode_labels
from manifoldknn.base.parameters import check_graph_parameters
from manifoldknn.base.samples import check_spread, check_unmasked
from manifoldknn.graph.edges import CANDIDATES, pruned_edges, union_edges
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.graph.links import NO_LINKS, HandLinks, hand_links
from manifoldknn.graph.spanning import Edges
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.graph.tree import tree_edges
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.search.engines import check_neighbors, open_index
from manifoldknn.search.neighbors import Neighbors, check_metric
from manifoldknn.search.user_searches import check_enough

FARTHEST = -1e12
SIGMA_NEIGHBOR = 7
SIGMA_FACTOR = 0.75


def automatic_sigma(
    neighbors: Neighbors, kernels: Kernels = NUMPY, together: Alone = ALONE
) -> float:
    """Return σ = 0.75·√(median_i(d_i,7² - d_i,1²)), d_i,q the q-th neighbour's distance.

    Samples whose first seven neighbours are equally far (duplicates, grids) say nothing about scale
    and are left out; if all are like that, the median of the positive distances serves.
    """
    distances = neighbors.distances
    seventh = distances[:, min(SIGMA_NEIGHBOR, distances.shape[1]) - 1]
    first = distances[:, 0]
    spread = (seventh - first) * (seventh + first)  # a² - b² would cancel
    median = kernels.median if together.size == 1 else together.median
    typical = median(spread)
    if not typical > 0:
        positive = spread[spread > 0]
        if not together.any(len(positive) > 0):
            positive = kernels.xp.square(distances[distances > 0])
        typical = median(positive) if together.any(len(positive) > 0) else 1.0
    return SIGMA_FACTOR * float(np.sqrt(typical))


def gaussian_log_weights(distances: Any, sigma: float, kernels: Kernels = NUMPY) -> Any:
    """Return log exp(-d²/2σ²), not below -1e12: beyond a million σ all is equally far.

    Larger numbers would leave no digits for the differences that the walk is made of.
    """
    with np.errstate(over="ignore"):
        return kernels.at_least(-0.5 * kernels.xp.square(distances / sigma), FARTHEST)


def log_strengthening(log_weight: Any, level: Any, theta: float, kernels: Kernels = NUMPY) -> Any:
    """Return log(1 + θ^r) with θ = `theta`·min((1 - W)/W, 1)."""
    with np.errstate(over="ignore"):
        bound = kernels.xp.clip(kernels.xp.expm1(-log_weight), None, 1.0)
    return kernels.xp.log1p((theta * bound) ** level)


@dataclass(frozen=True)
class GraphRecipe:
    """Everything a constrained graph is made of, but for the labels; as in `constrained_graph`.

    Class numbers `codes` are -1 where unlabelled.
    """

    X: Any  # looked at for graph="full" only
    nearest: Any  # neighbours of every sample, for the strengthened trees
    edges: Edges  # what `selected_edges` returns
    sigma: float
    graph: str
    tree_depth: int
    theta: float
    metric: Any
    links: HandLinks = NO_LINKS  # pairs that the user linked or cut apart

    def without_links_of(self, rows: Ints) -> "GraphRecipe":
        """Return the same but for links by hand that touch some rows."""
        return replace(self, links=self.links.without(rows))

    def touched(self, codes: Ints) -> Ints:
        """Return rows, ascending, such that labels and links by hand change pairs among them only.

        They are those with labels or links, and all in strengthened trees.
        """
        low, high, _ = self._tree(codes)
        links = np.concatenate([self.links.must, self.links.cannot]).ravel()
        return np.unique(np.concatenate([np.flatnonzero(codes >= 0), links, low, high]))

    def among(self, rows: Ints) -> "GraphRecipe":
        """Return the same but for pairs with an end elsewhere; links by hand stay."""
        inside = NUMPY.mask(rows, len(self.nearest))
        low, high, length = self.edges
        both = inside[low] & inside[high]
        return replace(self, edges=(low[both], high[both], length[both]))

    def constrained(self, codes: Ints) -> ConstrainedGraph:
        """Apply Table 1 to labels; must-links stay implicit unless every pair is written out."""
        if self.graph == "full":
            return ConstrainedGraph(self._all_pairs(codes), np.full(len(codes), -1, dtype=np.intp))
        n = len(codes)
        low, high, log_weight = self.weighted_edges(codes)
        narrow = narrowest(max(n, 2 * len(low)))
        low, high = low.astype(narrow), high.astype(narrow)
        matrix = sparse.csr_array(
            (
                np.concatenate([log_weight, log_weight]),
                (np.concatenate([low, high]), np.concatenate([high, low])),
            ),
            shape=(n, n),
        )
        matrix.sort_indices()
        return ConstrainedGraph(matrix, codes)

    def weighted_edges(self, codes: Ints, kernels: Kernels = NUMPY) -> tuple[Any, Any, Any]:
        """Return both ends and log weights of the edges that Table 1 leaves, without must-links.

        Those of the third rule, sorted, with strengthened trees; then links by hand.
        """
        n, xp = len(codes), kernels.xp
        labeled = kernels.array(codes >= 0)
        low, high = kernels.long(self.edges[0]), kernels.long(self.edges[1])
        free = ~(labeled[low] & labeled[high])
        if self.links:
            free &= ~self.links.names(low, high, kernels)
        kept = kernels.places(free)
        low, high = low[kept], high[kept]
        log_weight = gaussian_log_weights(self.edges[2][kept], self.sigma, kernels)
        if len(low):
            one, other, level = self._tree(codes, kernels)
            present, at = kernels.contains(low * n + high, one * n + other)
            present = kernels.places(present)
            at = at[present]
            log_weight[at] += log_strengthening(log_weight[at], level[present], self.theta, kernels)
        if self.links:  # weight 1, unless labels say so already
            one, other = (kernels.array(end) for end in self.links.linked_beside(codes))
            low, high = xp.concatenate([low, one]), xp.concatenate([high, other])
            log_weight = xp.concatenate([log_weight, kernels.full(len(one), 0.0)])
        return low, high, log_weight

    def _tree(self, codes: Ints, kernels: Kernels = NUMPY) -> tuple[Any, Any, Any]:
        roots = kernels.array(np.flatnonzero(codes >= 0))
        return tree_edges(self.nearest, roots, self.tree_depth, kernels)

    def _all_pairs(self, codes: Ints) -> Floats:
        """Return log weights of every pair by all rules, as the paper does: O(n²) memory."""
        n = len(codes)
        log_weights = np.empty((n, n))
        for part, distances in distance_blocks(
            self.X, np.arange(n), metric=self.metric, resolution=self.sigma
        ):
            log_weights[part] = gaussian_log_weights(distances, self.sigma)
        low, high, level = self._tree(codes)
        strengthened = log_weights[low, high]
        strengthened += log_strengthening(strengthened, level, self.theta)
        log_weights[low, high] = strengthened
        # Matrix products need not be symmetric to the last bit; the walk needs it.
        upper = np.triu_indices(n, 1)
        log_weights.T[upper] = log_weights[upper]
        labeled = np.flatnonzero(codes >= 0)
        same = codes[labeled][:, None] == codes[labeled][None, :]
        log_weights[np.ix_(labeled, labeled)] = np.where(same, 0.0, -np.inf)
        for (one, other), log_weight in ((self.links.must.T, 0.0), (self.links.cannot.T, -np.inf)):
            log_weights[one, other] = log_weights[other, one] = log_weight
        np.fill_diagonal(log_weights, -np.inf)
        return log_weights


def graph_recipe(
    X: Any, neighbors: Neighbors, *, sigma: float | str, graph: str, graph_neighbors: int,
    tree_depth: int, theta: float, metric: Any, links: HandLinks = NO_LINKS,
    edges: Edges | None = None, n_jobs: int | None = None, kernels: GraphKernels = GRAPH,
) -> GraphRecipe:  # fmt: skip
    """Return the recipe of samples and their neighbours; `edges` where they are known."""
    width = automatic_sigma(neighbors, kernels) if sigma == "auto" else float(sigma)
    pairs = {"graph": graph, "graph_neighbors": graph_neighbors, "metric": metric}
    edges = edges or selected_edges(X, neighbors, n_jobs=n_jobs, kernels=kernels, **pairs)
    nearest = neighbors.indices[:, :graph_neighbors]
    return GraphRecipe(X, nearest, edges, width, graph, tree_depth, theta, metric, links)


def selected_edges(
    X: Any, neighbors: Neighbors, *, graph: str, graph_neighbors: int, metric: Any,
    n_jobs: int | None = None, kernels: GraphKernels = GRAPH,
) -> Edges:  # fmt: skip
    """Return the pairs that carry the third rule, sorted, ``low < high``, and their lengths.

    Labels have no part in it. `neighbors` holds at least ``candidate_count(...)`` of every sample.
    Every pair of ``graph="full"`` carries the rule, none is named.
    """
    if graph == "full":
        nobody = np.empty(0, dtype=np.intp)
        return nobody, nobody, np.empty(0)
    if graph == "union":
        near, away = neighbors.indices, neighbors.distances
        few = Neighbors(near[:, :graph_neighbors], away[:, :graph_neighbors])
        return union_edges(few, kernels)
    return pruned_edges(
        X, neighbors, graph_neighbors, metric=metric, n_jobs=n_jobs, kernels=kernels
    )


def candidate_count(graph: str, graph_neighbors: int, n_samples: int) -> int:
    """Return how many neighbours per sample a graph needs to be searched."""
    wanted = max(graph_neighbors, SIGMA_NEIGHBOR)
    if graph == "pruned":
        wanted = max(wanted, CANDIDATES)
    return min(wanted, n_samples - 1)


def constrained_graph(
    X: Any,
    y: Any,
    *,
    must_link: Any = None,
    cannot_link: Any = None,
    graph: str = "pruned",
    graph_neighbors: int = 10,
    sigma: float | str = "auto",
    tree_depth: int = 2,
    theta: float = 0.1,
    metric: Any = "euclidean",
    neighbors: Any = "auto",
    unlabeled: Any = "auto",
    n_jobs: int | None = None,
) -> Any:
    """Return the constrained graph of samples and labels as a matrix to look at.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        All samples.
    y : array-like of shape (n_samples,)
        Labels, with unlabelled rows marked.
    must_link, cannot_link : array-like of shape (n_pairs, 2), optional
        As in ``ManifoldKNNClassifier.fit``.
    graph, graph_neighbors, sigma, tree_depth, theta, metric, neighbors, unlabeled, n_jobs
        As in `ManifoldKNNClassifier`.

    Returns
    -------
    csr_array or ndarray of shape (n_samples, n_samples)
        W of Table 1, symmetric with zero diagonal, must-links written out; dense
        for ``graph="full"``.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn import constrained_graph
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> W = constrained_graph(X, [0, -1, 1, 1], graph="union", graph_neighbors=1, sigma=1.0)
    >>> W.toarray().round(2)
    array([[0.  , 0.65, 0.  , 0.  ],
           [0.65, 0.  , 0.65, 0.  ],
           [0.  , 0.65, 0.  , 1.  ],
           [0.  , 0.  , 1.  , 0.  ]])
    """
    check_graph_parameters(graph, graph_neighbors, sigma, tree_depth, theta)
    check_unmasked(X)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2)
    check_spread(X)
    check_metric(metric, is_sparse=sparse.issparse(X))
    check_consistent_length(X, y)
    labels = encode_labels(y, unlabeled=unlabeled)
    codes, links = labels.codes, hand_links(must_link, cannot_link, labels.codes, labels.classes)
    n = X.shape[0]
    graph_neighbors = min(graph_neighbors, n - 1)
    check_neighbors(neighbors, X, metric=metric, graph_neighbors=graph_neighbors)
    index = open_index(X, neighbors, metric=metric, n_jobs=n_jobs, seed=0)
    found = index.among_samples(candidate_count(graph, graph_neighbors, n))
    check_enough(found, graph_neighbors)
    recipe = graph_recipe(
        X, found, sigma=sigma, graph=graph, graph_neighbors=graph_neighbors, metric=metric,
        tree_depth=tree_depth, theta=theta, links=links, n_jobs=n_jobs,
    )  # fmt: skip
    return recipe.constrained(codes).to_matrix()
