"""Rows where all densities are low: they keep their answer and lose confidence.

Shares compare classes with each other, and say nothing of a row that none of them is near: one of a
class without labels, or one that is far from all rows. So the shares p of a row become

    t·p_c + (1 - t)/C,   t = max( 10⁻³, min(1, f/f̂)·b ).

f is the largest density of the row, and f̂ what nine of ten labels reach of their own class while
they are hidden. b tells how well the row lies among others (see `manifoldknn.extend.belonging`).
The order of classes stays, and so does the answer.
"""

from __future__ import annotations

import numpy as np

from manifoldknn.base import Array, Floats, Ints

_BELOW = 0.1  # share of hidden labels that may be doubted
_LEAST = 1e-3  # trust that is left to anybody, so that the order of classes can be seen


def usual_density(logs: Array, given: Ints) -> float:
    """Return log f̂ from log f of hidden labels and their class numbers.

    Of m labels it is the ⌊(m + 1)/10⌋-th from below: another one is below it in at most one of ten
    cases. With fewer than nine labels nothing can be said, and it is -inf: nobody is doubted.

    >>> usual_density(np.log([[0.5, 0.1]] * 8 + [[0.2, 0.3]] * 2), np.zeros(10, dtype=int))
    -1.6094379124341003
    >>> usual_density(np.log([[0.5, 0.1]] * 8), np.zeros(8, dtype=int))
    -inf
    """
    own = np.sort(logs[np.arange(len(given)), given])
    place = int(_BELOW * (len(own) + 1) + 1e-9)
    return float(own[place - 1]) if place else -np.inf


def trust(log_scale: Floats, usual: float, belonging: Floats) -> Floats:
    """Return t from the logarithm of every row's largest density, log f̂ and b.

    >>> trust(np.log([0.2, 0.05]), np.log(0.1), np.array([0.8, 1.0]))
    array([0.8, 0.5])
    """
    short = np.zeros(len(log_scale)) if np.isneginf(usual) else np.minimum(log_scale - usual, 0.0)
    return np.asarray(np.maximum(np.exp(short) * belonging, _LEAST))


def doubted(shares: Floats, trusted: Floats) -> Floats:
    """Return shares with a doubt; rows of zeros, which nobody votes for, stay zeros.

    >>> doubted(np.array([[0.9, 0.1], [0.0, 0.0]]), np.array([0.5, 0.5]))
    array([[0.7, 0.3],
           [0. , 0. ]])
    """
    reached = shares.any(axis=1)
    return shares * trusted[:, None] + (reached * (1.0 - trusted) / shares.shape[1])[:, None]
