"""How sharp a vote of class densities should be, learned from labels that were hidden.

Densities say which class is likelier, and by far too much: walkers visit the same rows again and
again. So they are raised to a power β (see `vote`). β maximises

    Σ_i w_i log p_{y_i}(i) - ½ (log β - log(2/g))²

over labels i that were hidden and have the class y_i. Weights w are such that classes count
equally and sum to the number of labels. The second term is a log-normal prior around 2/g, g being
the median gap between the two largest log f of unlabelled rows.

Where a partner has a say s (see `partner`), the vote is p_c ∝ π_c f_c^β s_c^γ. β and γ ≥ 0 maximise
the same less γ, an exponential prior of mean 1. But weights w_i are in proportion to 1 / (n_c + 5)
for a class of n_c hidden labels: with 1 / n_c the two labels of a rare class, of which a partner
could learn from one, would outvote all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.vote.votes import DOUBT, ClassVote, two_largest

FOLDS = 5  # groups in which labels are hidden
_REACH = 8.0  # of log β around the centre of the prior: eight standard deviations
_STEPS = 41
_SEARCH: dict[str, Any] = {"method": "bounded", "options": {"xatol": 1e-5}}
_WEIGHTS = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8])  # γ to begin with
_EVEN = 5  # labels more of every class, where a partner has a say
_BY_SLOPES: dict[str, Any] = {"method": "L-BFGS-B", "options": {"ftol": 1e-13, "gtol": 1e-8}}
_SHOWS = 6.9  # -log of f^β that still shows in a share
_CLEAR = 1.6  # logarithm of how far below that an error has to be
_ROOM = 1.25  # as β and gaps may change
_ROUGHLY = 5.0  # beyond what is known to tol, as logarithm
_LEAST_GAP, _LARGEST_GAP = 1e-6, 1e12


def usual_sharpness(logs: Array, together: Alone = ALONE) -> float:
    """Return 2/g, the centre of the prior, from log f of unlabelled rows on any scale of the row.

    Rows that fewer than two classes reach say nothing; 1 where no row says anything.

    >>> usual_sharpness(np.array([[0.0, -4.0, -9.0], [-1.0, 0.0, -2.0], [-4.0, 0.0, -5.0]]))
    0.5
    """
    first, second = two_largest(logs)
    told = np.isfinite(second)
    if not together.any(told.any()):
        return 1.0
    gap = together.median(first[told].astype(np.float64) - second[told])
    return 2.0 / min(max(gap, _LEAST_GAP), _LARGEST_GAP)


def resolved_reach(logs: Array, reach: float, together: Alone = ALONE) -> float:
    """Return how far below the largest densities have to be known for their gaps to be.

    `logs` are log f of rows, the largest being 0, known down to -`reach`. Where the second class of
    every other row is farther, β would be a guess. What lies a little beyond is known roughly, and
    tells how far; what lies far beyond is noise, and everything is asked for.
    """
    _, second = two_largest(logs)
    second = second[np.isfinite(second)]  # islands of one class stay what they are
    far = -together.median(second) if together.any(len(second) > 0) else 0.0
    if far > reach:
        return _ROOM * far if far < reach + _ROUGHLY else np.inf
    return reach


def shown_reach(sharpness: float, reach: float, *, tol: float, also: float = 0.0) -> float:
    """Return how far below the largest a density shows in a share, if that is beyond `reach`.

    Densities have errors of `tol`: of themselves down to exp(-reach), of exp(-reach) below. So what
    is farther than log 1/tol beyond does not show, though little is known of it. `also` is the
    logarithm of what can raise it again beside the density, at most.

    >>> shown_reach(0.5, 4.0, tol=1e-9), round(shown_reach(0.5, 4.0, tol=1e-2), 2)
    (4.0, 13.49)
    """
    shows = (_SHOWS + also) / sharpness + min(0.0, float(np.log(tol)) + _CLEAR)
    return _ROOM * shows if reach < shows else reach


def _grid(usual: float) -> Floats:
    """Return log β at which hills are looked for."""
    return np.asarray(np.log(usual) + np.linspace(-_REACH, _REACH, _STEPS))


def best_sharpness(logs: Array, given: Ints, prior: Floats, usual: float) -> float:
    """Return the β that makes hidden labels likeliest; rows that nothing reaches say nothing.

    There may be several hills: a grid finds them, and a line search the top of each.
    """
    reached = ~np.isneginf(logs).all(axis=1)
    logs, given = logs[reached], given[reached]
    if not len(given):
        return usual
    counts = np.bincount(given, minlength=len(prior))
    weights = len(given) / np.count_nonzero(counts) / counts[given]
    at = np.arange(len(given))

    def loss(log_sharpness: float) -> float:
        shares = ClassVote(prior, float(np.exp(log_sharpness))).shares(logs)
        likely = float((weights * np.log(shares[at, given])).sum())
        return 0.5 * (log_sharpness - np.log(usual)) ** 2 - likely

    grid = _grid(usual)
    height = np.array([np.inf, *(loss(point) for point in grid), np.inf])
    step = grid[1] - grid[0]
    tops = [
        minimize_scalar(loss, bounds=(point - step, point + step), **_SEARCH)
        for point in grid[(height[1:-1] <= height[:-2]) & (height[1:-1] < height[2:])]
    ]
    return float(np.exp(min(tops, key=lambda top: float(top.fun)).x))


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

    grid = _grid(usual) if free else np.array([centre])
    height = np.full((len(grid) + 2, len(_WEIGHTS) + 2), np.inf)
    height[1:-1, 1:-1] = [[loss(np.array([b, g]))[0] for g in _WEIGHTS] for b in grid]
    here = height[1:-1, 1:-1]
    around = [height[1 + a : a + height.shape[0] - 1, 1 + b : b + height.shape[1] - 1]
              for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))]  # fmt: skip
    hills = np.argwhere(here <= np.min(around, axis=0))
    bounds = [(grid[0], grid[-1]), (0.0, None)]
    tops = [
        minimize(loss, (grid[b], _WEIGHTS[g]), jac=True, bounds=bounds, **_BY_SLOPES)
        for b, g in hills
    ]
    best = min(tops, key=lambda top: float(top.fun))
    return float(np.exp(best.x[0])) if free else usual, float(best.x[1])
