"""The tuned kernel width against a literal cross-validation with dense inverses."""

import numpy as np
import pytest

from experiment_kit import blobs
from manifoldknn import constrained_graph, tired_random_walk
from manifoldknn.model_selection import SemiSupervisedSplit
from manifoldknn.reproduction import problems as width
from manifoldknn.reproduction.problems import FACTORS, drawn, synthetic, tuned_factor, tuned_sigma


def literal_error(problem, y, factor):
    wrong = 0
    for _, test in SemiSupervisedSplit(random_state=0).split(problem.X, y):
        hidden = np.where(np.isin(np.arange(len(y)), test), -1, y)
        W = constrained_graph(problem.X, hidden, graph="full", sigma=factor * problem.spacing)
        P = tired_random_walk(W)
        labeled = np.flatnonzero(hidden >= 0)
        for row in test:
            weights = (P + P.T)[row, labeled]
            top = np.argsort(-weights)[:3]
            votes = np.bincount(hidden[labeled[top]], weights[top])
            wrong += np.argmax(votes) != y[row]
    return wrong


@pytest.mark.parametrize("problem", [blobs(90, spread=2.5), synthetic("two circles", 0)])
def test_the_factor_has_the_lowest_error_over_draws(problem):
    n_classes = len(np.unique(problem.truth))
    n_draws = -(-50 // (3 * n_classes))
    labels = [drawn(problem.truth, 3, seed) for seed in range(n_draws)]
    errors = [sum(literal_error(problem, y, factor) for y in labels) for factor in FACTORS]
    assert tuned_factor(problem) == FACTORS[int(np.argmin(errors))]


def test_large_sets_are_represented_by_some_rows(monkeypatch):
    problem = blobs(300, spread=2.5)
    monkeypatch.setattr(width, "_ROWS", 60)
    asked = []
    monkeypatch.setattr(
        width, "_folds_error", lambda p, _, f: asked.append(len(p.X)) or float(f != 0.3)
    )
    assert tuned_factor(problem) == 0.3
    assert set(asked) == {60}


def test_of_equal_factors_the_first_wins(monkeypatch):
    monkeypatch.setattr(width, "_folds_error", lambda *_: 0.25)
    assert tuned_factor(blobs(60)) == FACTORS[0]


def test_sigma_is_chosen_once(monkeypatch):
    problem = blobs(60)
    monkeypatch.setattr(width, "tuned_factor", lambda _: 0.7)
    assert tuned_sigma(problem) == 0.7 * problem.spacing
    monkeypatch.setattr(width, "tuned_factor", lambda _: pytest.fail("chosen again"))
    assert tuned_sigma(problem) == 0.7 * problem.spacing
