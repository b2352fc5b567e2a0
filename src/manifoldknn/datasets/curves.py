"""Samples around curves: positions, noise, bridging points, the few labels, and order.

A curve maps shares of its length, in [0, 1], to points. Bridging points lie in the gap
between two curves, in short rows that reach from one to the other: whoever follows the
shortest path crosses the gap there.
"""

from collections.abc import Callable, Sequence
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from manifoldknn.base import Floats, Ints
from manifoldknn.base.parameters import check_integer

Curve = Callable[[Floats], Floats]

_STEPS = 4000  # points along a curve where it is measured
_PER_BRIDGE = 4  # points of one bridge: steps of a fifth of the gap, about those on a curve
_NARROW = 1.25  # bridges stand where the gap is at most so many times the narrowest


def at_constant_speed(curve: Curve) -> Curve:
    """Return the same curve, as 4,000 steps run through so that equal shares are equal lengths.

    >>> line = at_constant_speed(lambda u: np.column_stack([u**2, 0 * u]))
    >>> line(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]
    """
    points = curve(np.linspace(0, 1, _STEPS + 1))
    length = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))

    def even(u: Floats) -> Floats:
        return np.column_stack([np.interp(u * length[-1], length, axis) for axis in points.T])

    return even


def around_curves(
    curves: Sequence[Curve],
    sizes: Sequence[int],
    label_shares: Sequence[Sequence[float]],
    noise: float,
    random_state: int | np.random.RandomState | None,
    n_bridges: int = 0,
) -> tuple[Floats, Ints, Ints]:
    """Draw samples around one curve per class, mark the labelled ones and shuffle the rows.

    `label_shares` tell where the labelled samples stand on each curve, `noise` is the standard
    deviation in every coordinate. Bridges, across the gap of two curves, have 4 points each, two of
    either class, which count towards `sizes`. Returns samples, classes, and the rows of the
    labelled samples by class and share.
    """
    if not isinstance(noise, Real) or not 0 <= noise < np.inf:
        raise ValueError(
            f"noise is a standard deviation: pass a finite number of at least 0, not {noise!r}."
        )
    bridging = _PER_BRIDGE // 2 * _checked_bridges(n_bridges, sizes)  # of each class
    sizes = [size - bridging for size in sizes]
    rng = check_random_state(random_state)
    # In curve order, so that the sample at a share of the length is found by its rank. Unlike the
    # sample nearest to a fixed point, ranks of different shares are different rows.
    points = [curve(np.sort(rng.uniform(size=size))) for curve, size in zip(curves, sizes)]
    starts = np.cumsum([0, *sizes])
    ranks = [
        start + int(share * size)
        for start, size, shares in zip(starts, sizes, label_shares)
        for share in shares
    ]
    y = np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)
    if bridging:
        points.append(_bridges(curves[0], curves[1], n_bridges, rng))
        y = np.append(y, np.tile(np.repeat([0, 1], _PER_BRIDGE // 2), n_bridges))
    X = np.concatenate(points)
    X += noise * rng.standard_normal(X.shape)
    order = rng.permutation(len(X))
    labeled = np.argsort(order)[ranks]  # where the shuffle has put them
    return X[order], y[order], labeled


def _bridges(one: Curve, other: Curve, n_bridges: int, rng: np.random.RandomState) -> Floats:
    """Return rows of points across the narrow parts of the gap, spread over their length."""
    u = np.linspace(0, 1, _STEPS // 4)
    here, there = one(u), other(u)
    apart = np.linalg.norm(here[:, None] - there, axis=2)
    gap = apart.min(axis=1)
    narrow = np.flatnonzero(gap <= _NARROW * gap.min())
    # One bridge in each of so many equal pieces: two at one place would be one.
    places = (np.arange(n_bridges) + rng.uniform(0.2, 0.8, n_bridges)) / n_bridges
    feet = narrow[(places * len(narrow)).astype(np.intp)]
    across = (np.arange(_PER_BRIDGE) + 1) / (_PER_BRIDGE + 1)
    start, end = here[feet], there[apart[feet].argmin(axis=1)]
    rows = start[:, None] + across[:, None] * (end - start)[:, None]
    return np.asarray(rows.reshape(-1, rows.shape[2]))


def split_sizes(n_samples: int | tuple[int, int]) -> tuple[int, int]:
    """Turn a number of samples in all, or of each of two classes, into those of each.

    The first class gets the odd one, and each needs the three that are labelled.

    >>> split_sizes(7), split_sizes((5, 9))
    ((4, 3), (5, 9))
    """
    if isinstance(n_samples, Integral):
        total = int(n_samples)
        sizes: Sequence[int] = (total - total // 2, total // 2)
    elif isinstance(n_samples, Sequence) and len(n_samples) == 2:
        sizes = n_samples
    else:
        sizes = ()
    if len(sizes) != 2 or not all(isinstance(n, Integral) and n >= 3 for n in sizes):
        raise ValueError(
            "n_samples must be an int of at least 6 or a pair of ints of at least 3 each (three "
            f"samples per class are labelled), not {n_samples!r}."
        )
    return int(sizes[0]), int(sizes[1])


def _checked_bridges(n_bridges: int, sizes: Sequence[int]) -> int:
    check_integer("n_bridges", n_bridges, minimum=0)
    needed = 3 + _PER_BRIDGE // 2 * n_bridges
    if min(sizes) < needed:
        raise ValueError(
            f"n_samples leaves {min(sizes)} samples to a class, but n_bridges={n_bridges} takes "
            f"{needed - 3} of them and 3 are labelled: raise n_samples to {2 * needed} or lower "
            "n_bridges."
        )
    return int(n_bridges)
