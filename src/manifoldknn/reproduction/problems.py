"""Data sets ready for many methods: what several of them need is computed once."""

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.datasets import load_paper, make_circle_and_strip, make_knot, make_two_circles
from manifoldknn.search.neighbors import ExactIndex, Neighbors

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

SYNTHETIC = {
    "two circles": make_two_circles,
    "circle and strip": make_circle_and_strip,
    "knot": make_knot,
}
LINKS = 30  # neighbours that are searched of every sample, as many as our graph looks at


class Problem:
    """Samples, their true classes numbered from 0, and what methods share.

    Nothing but `truth` knows the classes: what is shared does not depend on them.
    """

    def __init__(self, X: Floats, truth: Ints) -> None:
        self.X, self.truth = X, truth
        self.sigma: float | None = None  # as tuned for the full graph, once somebody asks

    @cached_property
    def near(self) -> Neighbors:
        """The 30 nearest neighbours of every sample, by an exact search."""
        return ExactIndex(self.X, n_jobs=1).among_samples(min(LINKS, len(self.X) - 1))

    def linked(self, n_links: int) -> Neighbors:
        """Return the nearest few neighbours of every sample."""
        return Neighbors(self.near.indices[:, :n_links], self.near.distances[:, :n_links])

    @cached_property
    def spacing(self) -> float:
        """Median distance to the seventh neighbour, the unit of σ."""
        return float(np.median(self.near.distances[:, min(7, self.near.distances.shape[1]) - 1]))

    def spreading_graph(self, n_neighbors: int) -> Any:
        """Return the graph of LabelSpreading with kernel "knn": the sample itself is one."""
        n, others = len(self.X), min(n_neighbors, len(self.X)) - 1
        columns = np.column_stack([np.arange(n), self.near.indices[:, :others]])
        starts = np.arange(0, columns.size + 1, others + 1)
        return sparse.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=(n, n))

    def fitted(self, model: ManifoldKNNClassifier, y: Ints) -> ManifoldKNNClassifier:
        """Fit a model with the neighbours known already, which it would find itself."""
        near = (self.near.indices, self.near.distances)
        return model.set_params(neighbors=near, n_jobs=1).fit(self.X, y)


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


def drawn(truth: Ints, protocol: int | str, seed: int) -> Ints:
    """Draw labels; -1 where there is none.

    The protocol 3 or "b3" draws three of every class, as the paper does. "r3" draws one of every
    class and the others at random from all rows, three times as many as there are classes in all,
    so that classes get unequal numbers, as people label. From
    ``rng = np.random.default_rng(seed)`` these are, per class in order,
    ``rng.choice(rows_of_class, 3, replace=False)``; for "r" ``rng.choice(rows_of_class)``, and at
    last ``rng.choice(other_rows, 2 * n_classes, replace=False)``.

    >>> drawn(np.array([0, 0, 0, 1, 1, 1]), 1, seed=0)
    array([-1, -1,  0, -1,  1, -1])
    >>> np.bincount(drawn(np.arange(100) % 2, "r10", seed=0) + 1)
    array([80,  8, 12])
    """
    kind, count = ("b", protocol) if isinstance(protocol, int) else (protocol[0], int(protocol[1:]))
    rng, y = np.random.default_rng(seed), np.full(len(truth), -1, dtype=np.intp)
    classes = np.unique(truth)
    for c in classes:
        rows = np.flatnonzero(truth == c)
        y[rng.choice(rows) if kind == "r" else rng.choice(rows, count, replace=False)] = c
    if kind == "r":
        more = rng.choice(np.flatnonzero(y < 0), (count - 1) * len(classes), replace=False)
        y[more] = truth[more]
    return y
