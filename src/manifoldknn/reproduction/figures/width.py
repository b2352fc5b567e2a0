"""The kernel width σ of the method as published: tuned once per data set."""

import numpy as np

from manifoldknn.classifier import as_published
from manifoldknn.model_selection import SemiSupervisedSplit
from manifoldknn.reproduction.problems import Ints, Problem, drawn

FACTORS = (0.5, 0.3, 0.7, 0.2, 1.0)  # times the spacing; of equal ones the first wins
_PER_CLASS = 3
_TESTED = 50  # labels at least, over all draws
_ROWS = 1000  # of which a larger set is represented


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
