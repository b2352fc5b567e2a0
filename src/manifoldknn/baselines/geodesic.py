"""Geodesic k nearest neighbours: distance is the shortest path over the graph of all samples."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.labels import encode_labels
from manifoldknn.base.parameters import ON_UNREACHED, check_choice, check_integer
from manifoldknn.base.samples import check_new_samples, check_samples
from manifoldknn.model.answering import resolve_unreached
from manifoldknn.model.cautions import usable_graph_neighbors, warn_about_labels
from manifoldknn.model.fitted import all_or_nothing
from manifoldknn.search.neighbors import ExactIndex, Neighbors, check_metric, sorted_neighbors
from manifoldknn.vote.votes import class_shares, winners

_BLOCK = 64  # labelled rows whose paths are held at a time


class GeodesicKNNClassifier(ClassifierMixin, BaseEstimator):
    """Let the k labelled samples nearest along the graph vote.

    Samples are linked to their nearest neighbours, with the distance as length; the distance
    between two samples is the length of the shortest path [1]_. Paths start from the
    labelled rows only.

    Parameters
    ----------
    n_neighbors : int, default=5
        Labelled samples that vote for a row, each with one vote; all if there are fewer.
    graph_neighbors : int, default=10
        Neighbours that a sample is linked to: the parameter that the paper tunes.
    metric : str or callable, default="euclidean"
        Length of an edge. Features should have comparable scales.
    unlabeled, on_unreached, n_jobs
        As in `ManifoldKNNClassifier`; unreached is a row that no path joins to a labelled sample.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, labeled_indices_, unreached_
        As in `ManifoldKNNClassifier`; the distributions are class shares of the vote.

    Notes
    -----
    Where paths lead to fewer than k labelled samples, those vote. A new row reaches a labelled
    sample through whichever of its neighbours makes that shortest. Equal votes go to the class
    that comes first in `classes_`.

    Cost: one search of all neighbours, and O(m log n) per labelled row for m edges; memory
    O(n·k).

    References
    ----------
    .. [1] P. Turaga and R. Chellappa, "Nearest-neighbor search algorithms on non-Euclidean
       manifolds for computer vision applications", ICVGIP 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.baselines import GeodesicKNNClassifier
    >>> from manifoldknn.datasets import make_arch_and_s
    >>> X, truth, labeled = make_arch_and_s(random_state=0)
    >>> y = np.full(len(X), -1)
    >>> y[labeled] = truth[labeled]
    >>> clf = GeodesicKNNClassifier(n_neighbors=1).fit(X, y)
    >>> float(np.mean(clf.transduction_ == truth))
    1.0
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        graph_neighbors: int = 10,
        metric: Any = "euclidean",
        unlabeled: Any = "auto",
        on_unreached: str = "nearest",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.graph_neighbors = graph_neighbors
        self.metric = metric
        self.unlabeled = unlabeled
        self.on_unreached = on_unreached
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Find the shortest paths from the labelled rows of X and classify the others.

        y holds -1, None, NaN, NA or "" (or `unlabeled`) where there is no label; X may be sparse.
        """
        check_integer("n_neighbors", self.n_neighbors, minimum=1)
        check_integer("graph_neighbors", self.graph_neighbors, minimum=1)
        check_choice("on_unreached", self.on_unreached, ON_UNREACHED)
        with all_or_nothing(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        X = check_samples(self, X, y)
        check_metric(self.metric, is_sparse=not isinstance(X, np.ndarray))
        labels = encode_labels(y, unlabeled=self.unlabeled)
        linked = usable_graph_neighbors(self.graph_neighbors, X.shape[0])
        warn_about_labels(labels, everything=True)

        index = ExactIndex(X, metric=self.metric, n_jobs=self.n_jobs)
        near = index.among_samples(linked)
        nearest = nearest_by_path(near, labels.labeled, self.n_neighbors)
        self.classes_, self.labeled_indices_ = labels.classes, labels.labeled
        self._labels, self._index, self._linked = labels, index, linked
        self._nearest = nearest
        shares, codes, unreached = self._answer(nearest, X)
        codes[labels.labeled] = labels.codes[labels.labeled]
        self.label_distributions_ = shares
        self.transduction_ = labels.decode(codes)
        self.unreached_ = unreached
        return self

    def predict(self, X: Any) -> Array:
        """Classify new rows by the paths through their neighbours.

        The unlabelled marker is returned where the classifier abstains.
        """
        _, codes = self._asked(X)
        return self._labels.decode(codes)

    def predict_proba(self, X: Any) -> Floats:
        """Return the class shares of the vote for new rows, in the order of `classes_`."""
        return self._asked(X)[0]

    def kneighbors(self, X: Any = None) -> tuple[Floats, Ints]:
        """Tell which labelled samples vote for a row, and how far they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it, the fitted rows themselves.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Lengths of the shortest paths, ascending; inf where there is none.
        indices : ndarray of shape (n_queries, k)
            Rows of the fitted X; -1 where there is no path.
        """
        check_is_fitted(self)
        nearest = self._nearest if X is None else self._through_neighbors(self._checked(X))
        rows = np.where(nearest.indices < 0, -1, self.labeled_indices_[nearest.indices])
        return nearest.distances, rows

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_new_samples(self, X, self._index.template)

    def _asked(self, X: Any) -> tuple[Floats, Ints]:
        X = self._checked(X)
        return self._answer(self._through_neighbors(X), X)[:2]

    def _through_neighbors(self, X: Any) -> Neighbors:
        """Return the nearest labelled samples of new rows, by way of their neighbours.

        If a labelled sample is among the k nearest of a row by way of neighbour j, it is among
        the k nearest of j: any nearer to j would be nearer to the row.
        """
        near = self._index.query(X, self._linked)
        shape = (len(near.indices), -1)
        length = near.distances[:, :, None] + self._nearest.distances[near.indices]
        return _nearest_once(
            length.reshape(shape),
            self._nearest.indices[near.indices].reshape(shape),
            self._nearest.indices.shape[1],
        )

    def _answer(self, nearest: Neighbors, X: Any) -> tuple[Floats, Ints, Bools]:
        """Return shares, class numbers and the unreached rows."""
        classes_of = self._labels.codes[self.labeled_indices_][nearest.indices]
        votes = np.isfinite(nearest.distances).astype(np.float64)
        shares = class_shares(votes, classes_of, len(self.classes_))
        codes = winners(shares)
        unreached = np.isinf(nearest.distances[:, 0])
        if unreached.any():
            advice = "label a row near them, or raise graph_neighbors"
            answers = unreached, shares, codes
            resolve_unreached(self, self._index, self._labels, X, *answers, advice)
        return shares, codes, unreached

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def nearest_by_path(near: Neighbors, sources: Ints, k: int) -> Neighbors:
    """Return the `k` sources nearest to every row along the graph, where an edge leads both ways.

    As positions in `sources` and path lengths, nearest first, equal lengths by position; -1 and inf
    where no path leads.

    >>> from manifoldknn.search.neighbors import ExactIndex
    >>> near = ExactIndex(np.array([[0.0], [1.0], [3.0], [9.0], [9.5]])).among_samples(1)
    >>> found = nearest_by_path(near, np.array([0, 2]), 1)
    >>> found.indices.ravel(), found.distances.ravel()
    (array([ 0,  0,  1, -1, -1]), array([ 0.,  1.,  0., inf, inf]))
    """
    n, linked = near.indices.shape
    starts = np.arange(0, n * linked + 1, linked)
    # Stored zeros, between duplicates, are edges of length 0.
    graph = sparse.csr_array((near.distances.ravel(), near.indices.ravel(), starts), shape=(n, n))
    k = min(k, len(sources))
    found = np.full((n, k), -1, dtype=np.intp)
    length = np.full((n, k), np.inf)
    for start in range(0, len(sources), _BLOCK):
        block = sources[start : start + _BLOCK]
        further = csgraph.dijkstra(graph, directed=False, indices=block).T
        # An equal length comes too late: the sources before have smaller positions.
        nearer = np.flatnonzero(further.min(axis=1) < length[:, -1])
        lengths = np.hstack([length[nearer], further[nearer]])
        positions = np.tile(np.arange(start - k, start + len(block)), (len(nearer), 1))
        positions[:, :k] = found[nearer]
        found[nearer], length[nearer] = sorted_neighbors(positions, lengths, k)
    return Neighbors(np.where(np.isinf(length), -1, found), length)


def _nearest_once(length: Floats, found: Ints, k: int) -> Neighbors:
    """Return the k nearest of what was found for every row, each counted once."""
    order = np.lexsort((length, found), axis=1)
    length = np.take_along_axis(length, order, axis=1)
    found = np.take_along_axis(found, order, axis=1)
    length[:, 1:][found[:, 1:] == found[:, :-1]] = np.inf
    found, length = sorted_neighbors(found, length, k)
    return Neighbors(np.where(np.isinf(length), -1, found), length)
