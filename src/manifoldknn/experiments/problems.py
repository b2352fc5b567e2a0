"""Data sets ready for many methods: what several of them need is computed once."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.datasets import (
    load_paper,
    make_circle_and_strip,
    make_knot,
    make_two_circles,
)
from manifoldknn.neighbors import ExactIndex, Neighbors

__all__ = ["LINKS", "SYNTHETIC", "Problem", "drawn", "real", "synthetic"]

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

SYNTHETIC = {
    "two circles": make_two_circles,
    "circle and strip": make_circle_and_strip,
    "knot": make_knot,
}
LINKS = 20  # neighbours that are searched of every sample
_SPREADING = 7  # neighbours of LabelSpreading's graph, its default: the sample itself is one


class Problem:
    """Samples, their true classes, and what methods share.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    truth : ndarray of int of shape (n_samples,)
        Class numbers from 0.

    Notes
    -----
    Nothing but `truth` knows the classes: what is shared does not depend on them.
    """

    def __init__(self, X: Floats, truth: Ints) -> None:
        self.X, self.truth = X, truth
        self.sigma: float | None = None  # as tuned for the full graph, once somebody asks
        self._model: ManifoldKNNClassifier | None = None

    @cached_property
    def near(self) -> Neighbors:
        """The 20 nearest neighbours of every sample, by an exact search."""
        return ExactIndex(self.X, n_jobs=1).among_samples(min(LINKS, len(self.X) - 1))

    def linked(self, n_links: int) -> Neighbors:
        """Return the nearest few neighbours of every sample."""
        return Neighbors(self.near.indices[:, :n_links], self.near.distances[:, :n_links])

    @cached_property
    def spacing(self) -> float:
        """Median distance to the seventh neighbour, the unit of σ."""
        return float(np.median(self.near.distances[:, min(7, self.near.distances.shape[1]) - 1]))

    @cached_property
    def spreading_graph(self) -> Any:
        """The graph of LabelSpreading with its kernel "knn"."""
        n, others = len(self.X), min(_SPREADING, len(self.X)) - 1
        columns = np.column_stack([np.arange(n), self.near.indices[:, :others]])
        starts = np.arange(0, columns.size + 1, others + 1)
        return sparse.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=(n, n))

    def by_default(self, y: Ints) -> Ints:
        """Return the answers of `ManifoldKNNClassifier` with its defaults.

        Parameters
        ----------
        y : ndarray of int
            Labels, -1 where there is none.

        Returns
        -------
        ndarray of int
            A class for every sample.

        Notes
        -----
        Neighbours and edges do not depend on labels: after the first time the model is given
        other labels, which costs the walk only and answers as a new fit does.
        """
        if self._model is None:
            self._model = ManifoldKNNClassifier(n_jobs=1).fit(self.X, y)
        elif not np.array_equal(self._model._labels.codes, y):
            rows = np.union1d(self._model.labeled_indices_, np.flatnonzero(y >= 0))
            self._model.set_labels(rows, y[rows])
        return np.asarray(self._model.transduction_, dtype=np.intp)


@cache
def real(name: str, scaled: bool = True) -> Problem:
    """Return a real data set of the paper, its features scaled to [0, 1]."""
    data = load_paper(name, scale=scaled)
    return Problem(data.X, data.y)


@cache
def synthetic(name: str, seed: int) -> Problem:
    """Return a synthetic set of the paper."""
    X, truth, _ = SYNTHETIC[name](random_state=seed)
    return Problem(X, truth)


def drawn(truth: Ints, per_class: int, seed: int) -> Ints:
    """Draw labels at random, as many of every class.

    Parameters
    ----------
    truth : ndarray of int
        Class numbers.
    per_class : int
        Labels of each class.
    seed : int
        ``rng = np.random.default_rng(seed)``, then per class in order
        ``rng.choice(rows_of_class, per_class, replace=False)``.

    Returns
    -------
    ndarray of int
        Labels, -1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.experiments.problems import drawn
    >>> drawn(np.array([0, 0, 0, 1, 1, 1]), 1, seed=0)
    array([-1, -1,  0, -1,  1, -1])
    """
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1, dtype=np.intp)
    for c in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == c), per_class, replace=False)] = c
    return y
