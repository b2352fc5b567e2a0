"""How much densities and a partner weigh, learned together from labels that were hidden.

The vote is p_c ∝ π_c f_c^β s_c^γ, s being what a `partner` says. β and γ ≥ 0 maximise

    Σ_i w_i log p_{y_i}(i) - ½ (log β - log(2/g))² - γ

over hidden labels i of class y_i: the terms of `sharpness`, and an exponential prior of mean 1. But
weights w_i are in proportion to 1 / (n_c + 5) for a class of n_c hidden labels: with 1 / n_c the
two labels of a rare class, of which a partner could learn from one, would outvote all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.vote.sharpness import sharpness_grid
from manifoldknn.vote.votes import DOUBT, ClassVote

_WEIGHTS = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8])  # γ to begin with
_EVEN = 5  # labels more of every class
_SEARCH: dict[str, Any] = {"method": "L-BFGS-B", "options": {"ftol": 1e-13, "gtol": 1e-8}}


def best_powers(
    logs: Array, said: Floats, given: Ints, prior: Floats, usual: float, *, free: bool = True
) -> tuple[float, float]:
    """Return β and γ that make hidden labels likeliest, from their log f and log s.

    Rows that nothing reaches say nothing. β stays `usual` unless it is `free`. There may be
    several hills: a grid finds them, and a search by slopes the top of each.
    """
    reached = ~np.isneginf(logs).all(axis=1)
    logs, said, given = logs[reached], said[reached], given[reached]
    if not len(given):
        return usual, 0.0
    at, weights = np.arange(len(given)), 1.0 / (np.bincount(given)[given] + _EVEN)
    weights *= len(given) / weights.sum()
    logs = logs - logs.max(axis=1, keepdims=True)
    finite = np.where(np.isneginf(logs), 0.0, logs)  # others have no share, and no part in slopes
    centre = np.log(usual)

    def loss(point: Floats) -> tuple[float, Floats]:
        sharpness, weight = float(np.exp(point[0])), float(point[1])
        shares = ClassVote(prior, sharpness, weight).shares(logs, said)
        own = shares[at, given]
        off = point[0] - centre
        value = 0.5 * off**2 + weight - weights @ np.log(own)
        shares -= DOUBT / len(prior)  # what is left is (1 - ε) times softmax
        pull = weights * shares[at, given] / own
        slopes = [off, 1.0]
        for place, term in enumerate((sharpness * finite, said)):
            mean = (shares * term).sum(axis=1) / (1.0 - DOUBT)
            slopes[place] -= float(pull @ (term[at, given] - mean))
        return float(value), np.array(slopes)

    grid = sharpness_grid(usual) if free else np.array([centre])
    height = np.full((len(grid) + 2, len(_WEIGHTS) + 2), np.inf)
    height[1:-1, 1:-1] = [[loss(np.array([b, g]))[0] for g in _WEIGHTS] for b in grid]
    here = height[1:-1, 1:-1]
    around = [height[1 + a : a + height.shape[0] - 1, 1 + b : b + height.shape[1] - 1]
              for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))]  # fmt: skip
    hills = np.argwhere(here <= np.min(around, axis=0))
    bounds = [(grid[0], grid[-1]), (0.0, None)]
    tops = [
        minimize(loss, (grid[b], _WEIGHTS[g]), jac=True, bounds=bounds, **_SEARCH) for b, g in hills
    ]
    best = min(tops, key=lambda top: float(top.fun))
    return float(np.exp(best.x[0])) if free else usual, float(best.x[1])
