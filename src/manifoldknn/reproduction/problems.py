"""Data sets ready for many methods: what several of them need is computed once."""

from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Floats, Ints
from manifoldknn.classifier import ManifoldKNNClassifier, as_published
from manifoldknn.datasets import load_paper, make_circle_and_strip, make_knot, make_two_circles
from manifoldknn.model_selection import SemiSupervisedSplit
from manifoldknn.search.neighbors import ExactIndex, Neighbors

SYNTHETIC = {
    "two circles": make_two_circles,
    "circle and strip": make_circle_and_strip,
    "knot": make_knot,
}
LINKS = 30  # neighbours that are searched of every sample, as many as our graph looks at
FACTORS = (0.5, 0.3, 0.7, 0.2, 1.0)  # times the spacing; of equal ones the first wins
_PER_CLASS = 3
_TESTED = 50  # labels at least, over all draws
_ROWS = 1000  # of which a larger set is represented


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


def tuned_sigma(problem: Problem) -> float:
    """Return σ for ``graph="full"``, found once for every problem: a factor times the spacing."""
    if problem.sigma is None:
        problem.sigma = tuned_factor(problem) * problem.spacing
    return problem.sigma


def tuned_factor(problem: Problem) -> float:
    """Choose σ, as a multiple of the samples' spacing, by 2-fold cross-validation.

    The lowest error wins, averaged over draws of three labels per class with the seeds 0, 1, ...,
    as many as it takes to test 50 labels. A set of more than 1000 rows is represented by so many,
    drawn at random: a factorisation costs O(n³), and the spacing follows the number of rows.
    """
    n = len(problem.X)
    if n > _ROWS:
        rows = np.sort(np.random.default_rng(0).choice(n, _ROWS, replace=False))
        problem = Problem(problem.X[rows], problem.truth[rows])
    n_draws = -(-_TESTED // (_PER_CLASS * (int(problem.truth.max()) + 1)))
    labels = [drawn(problem.truth, _PER_CLASS, seed) for seed in range(n_draws)]
    errors = [np.mean([_folds_error(problem, y, factor) for y in labels]) for factor in FACTORS]
    return FACTORS[int(np.argmin(np.round(errors, 12)))]


def _folds_error(problem: Problem, y: Ints, factor: float) -> float:
    """Return the share of labels that are not found again once hidden."""
    wrong = 0
    for _, test in SemiSupervisedSplit(random_state=0).split(problem.X, y):
        hidden = y.copy()
        hidden[test] = -1
        model = as_published(n_neighbors=_PER_CLASS, sigma=factor * problem.spacing)
        wrong += int(np.sum(problem.fitted(model, hidden).transduction_[test] != y[test]))
    return wrong / int(np.sum(y >= 0))
