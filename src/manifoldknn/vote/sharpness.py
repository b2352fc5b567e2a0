"""How sharp a vote of class densities should be, learned from labels that were hidden.

Densities say which class is likelier, and by far too much: walkers visit the same rows again and
again. So they are raised to a power β (see `vote`). β maximises

    Σ_i w_i log p_{y_i}(i) - ½ (log β - log(2/g))²

over labels i that were hidden and have the class y_i. Weights w are such that classes count
equally and sum to the number of labels. The second term is a log-normal prior around 2/g, g being
the median gap between the two largest log f of unlabelled rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.graph.together import ALONE, Alone
from manifoldknn.vote.votes import ClassVote, two_largest

FOLDS = 5  # groups in which labels are hidden
_REACH = 8.0  # of log β around the centre of the prior: eight standard deviations
_STEPS = 41
_SEARCH: dict[str, Any] = {"method": "bounded", "options": {"xatol": 1e-5}}
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


def sharpness_grid(usual: float) -> Floats:
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

    grid = sharpness_grid(usual)
    height = np.array([np.inf, *(loss(point) for point in grid), np.inf])
    step = grid[1] - grid[0]
    tops = [
        minimize_scalar(loss, bounds=(point - step, point + step), **_SEARCH)
        for point in grid[(height[1:-1] <= height[:-2]) & (height[1:-1] < height[2:])]
    ]
    return float(np.exp(min(tops, key=lambda top: float(top.fun)).x))
