"""Weighted k nearest neighbours: near samples vote more strongly than far ones."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from manifoldknn.base import Array, Floats
from manifoldknn.base.parameters import check_choice, check_integer
from manifoldknn.model.fitted import all_or_nothing
from manifoldknn.search.neighbors import ExactIndex, check_metric
from manifoldknn.vote.votes import class_shares, winners

# Shares of the (k+1)-th distance stay within these: at 0 the inverse has no value, and at 1 most
# kernels are 0, so that neighbours all equally far would have no vote at all.
_NEAREST, _FARTHEST = 1e-6, 1 - 1e-6


KERNELS: dict[str, Callable[[Floats, int], Floats]] = {
    "rectangular": lambda share, _: np.ones_like(share),
    "triangular": lambda share, _: 1 - share,
    "epanechnikov": lambda share, _: 1 - share**2,
    "biweight": lambda share, _: (1 - share**2) ** 2,
    "triweight": lambda share, _: (1 - share**2) ** 3,
    "cosine": lambda share, _: np.cos(np.pi / 2 * share),
    "inverse": lambda share, _: 1 / share,
    # The standard normal density, stretched so that share 1 is its quantile 1 - 1/(2(k+1)).
    "gaussian": lambda share, k: np.exp(-0.5 * (share * ndtri(1 - 0.5 / (k + 1))) ** 2),
}


class WeightedKNNClassifier(ClassifierMixin, BaseEstimator):
    """Let the k nearest samples vote with a kernel of their relative distance.

    The weight of neighbour i of x is K(d(x, xᵢ) / d(x, x₍ₖ₊₁₎)): distances are divided by that
    of the (k+1)-th neighbour, so that the kernel fits every density [1]_.

    Parameters
    ----------
    n_neighbors : int, default=5
        Samples that vote, k. With k samples or fewer, all but one: the farthest gives the scale.
    kernel : str, default="triangular"
        K: "rectangular" (plain kNN), "triangular", "epanechnikov", "biweight", "triweight",
        "cosine", "inverse" or "gaussian".
    metric : str or callable, default="euclidean"
        Distance between rows. Features should have comparable scales.
    n_jobs : int, optional
        Threads of the search; all cores by default.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.

    Notes
    -----
    Costs a search of k + 1 neighbours per row. Equal votes go to the class that comes first in
    `classes_`. The Gaussian is stretched with k as in the authors' own R package.

    References
    ----------
    .. [1] K. Hechenbichler and K. Schliep, "Weighted k-nearest-neighbor techniques and ordinal
       classification", SFB 386 discussion paper 399, LMU Munich, 2004.

    Examples
    --------
    >>> from manifoldknn.baselines import WeightedKNNClassifier
    >>> X, y = [[0.0], [2.0], [2.1], [9.0]], [0, 1, 1, 1]
    >>> WeightedKNNClassifier(n_neighbors=3).fit(X, y).predict([[0.3]])
    array([1])
    >>> WeightedKNNClassifier(n_neighbors=3, kernel="inverse").fit(X, y).predict([[0.3]])
    array([0])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        kernel: str = "triangular",
        metric: Any = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.metric = metric
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Remember labelled samples and their classes."""
        check_integer("n_neighbors", self.n_neighbors, minimum=1)
        check_choice("kernel", self.kernel, tuple(KERNELS))
        check_metric(self.metric, is_sparse=False)
        with all_or_nothing(self):
            X, y = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(y)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._index = ExactIndex(X, metric=self.metric, n_jobs=self.n_jobs)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return each class's share of the weighted vote, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        k = max(1, min(self.n_neighbors, len(self._codes) - 1))
        found = self._index.query(X, min(k + 1, len(self._codes)))
        scale = found.distances[:, -1:]
        share = np.divide(found.distances[:, :k], scale, out=np.zeros((len(X), k)), where=scale > 0)
        weights = KERNELS[self.kernel](np.clip(share, _NEAREST, _FARTHEST), k)
        return class_shares(weights, self._codes[found.indices[:, :k]], len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Classify rows."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[winners(shares)])
