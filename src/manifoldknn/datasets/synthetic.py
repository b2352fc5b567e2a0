"""Toy sets drawn around curves in the plane.

A generator here returns ``(X, y, labeled)``: the samples, the true class of every sample, and the
indices of the few samples whose class a classifier may see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["make_arch_and_s"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Curve = Callable[[Floats], Floats]

_LEG = 1.3  # length of each straight leg of the arch, whose round part has radius 1
_BOWL = 0.45  # radius of the two bowls of the S: the gap to the arch is as wide
_S_CENTRE = -0.35  # height of the S's centre: puts its bottom level with the arch's feet

# Where the labelled samples stand, as shares of each curve's length. All lie within their own
# class, but where one curve has no label close by, the other one often has: that misleads
# Euclidean distance.
_ARCH_LABELS = (0.06, 0.54, 0.96)
_S_LABELS = (0.08, 0.37, 0.95)


def make_arch_and_s(
    n_samples: int | tuple[int, int] = 400,
    *,
    noise: float = 0.03,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Floats, Ints, Ints]:
    r"""Make an arch with a mirrored letter S inside it.

    Two one-dimensional manifolds in the plane with three labelled samples each: the first example
    of Tu et al. [1]_, which shows how Euclidean nearest neighbours go wrong when few labels must
    speak for long, winding classes. The paper prints no equations; these are ours.

    Parameters
    ----------
    n_samples : int or (int, int), default=400
        Number of samples in all, of which the arch gets the odd one; or the numbers on the arch
        and on the S. Each curve needs at least 3.
    noise : float, default=0.03
        Standard deviation of the Gaussian noise added to both coordinates. The curves are 0.45
        apart, so that the classes begin to touch at about 0.1.
    random_state : int, RandomState instance or None, default=None
        Seeds positions, noise and order. Pass an int for the same set at every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 2), float64
        The samples, in random order.
    y : ndarray of shape (n_samples,), int
        True classes: 0 on the arch, 1 on the S.
    labeled : ndarray of shape (6,), int
        Rows of the labelled samples: three of class 0, then three of class 1, each in the order in
        which they lie on their curve. They stand near both ends and near the middle.

    Notes
    -----
    With :math:`u` uniform on [0, 1], the arch (an inverted U) is run through from its left foot.
    With :math:`s = (2h + \pi) u` and legs of length :math:`h = 1.3`,

    .. math::

        (x, y) = \begin{cases}
            (-1,\; s - h) & s < h, \\
            (-\cos(s - h),\; \sin(s - h)) & h \le s \le h + \pi, \\
            (1,\; h + \pi - s) & s > h + \pi.
        \end{cases}

    The S consists of two three-quarter circles of radius :math:`r = 0.45` that meet in its centre
    :math:`(0, c)`, :math:`c = -0.35`. It is run through from its upper end, which points left
    because the letter is mirrored. With :math:`s = 3 \pi u`,

    .. math::

        x = -r \cos s, \qquad y = \begin{cases}
            c + r (1 + \sin s) & s \le 3\pi/2, \\
            c - r (1 + \sin s) & s > 3\pi/2.
        \end{cases}

    Both are run through at constant speed, so that the samples are spread evenly.

    The places of the labels were picked from many so that the nearest labelled sample misleads: it
    is wrong for 30 % of the others on average (100 seeds), and for 27 % if the labels are drawn at
    random instead.

    References
    ----------
    .. [1] E. Tu, Y. Zhang, L. Zhu, J. Yang and N. Kasabov, "A graph-based semi-supervised k
       nearest-neighbor method for nonlinear manifold distributed data classification",
       Information Sciences 367-368, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from manifoldknn.datasets import make_arch_and_s
    >>> X, y, labeled = make_arch_and_s(random_state=0)
    >>> X.shape
    (400, 2)
    >>> y[labeled]
    array([0, 0, 0, 1, 1, 1])

    The nearest labelled sample is a poor guide to the class:

    >>> nearest = KNeighborsClassifier(n_neighbors=1).fit(X[labeled], y[labeled])
    >>> bool(np.mean(nearest.predict(X) != y) > 0.25)
    True
    """
    sizes = _split(n_samples)
    return _around_curves(
        (_arch, _mirrored_s), sizes, (_ARCH_LABELS, _S_LABELS), noise, random_state
    )


def _arch(u: Floats) -> Floats:
    """Map shares of the length, from the left foot on, to points of the arch."""
    s = (2 * _LEG + np.pi) * u
    turned = np.clip(s - _LEG, 0.0, np.pi)
    below = np.maximum(_LEG - s, 0.0) + np.maximum(s - _LEG - np.pi, 0.0)
    return np.column_stack([-np.cos(turned), np.sin(turned) - below])


def _mirrored_s(u: Floats) -> Floats:
    """Map shares of the length, from the upper end on, to points of the mirrored S."""
    s = 3 * np.pi * u
    side = np.where(s <= 1.5 * np.pi, 1.0, -1.0)  # the upper bowl, then the lower one
    return np.column_stack([-_BOWL * np.cos(s), _S_CENTRE + side * _BOWL * (1 + np.sin(s))])


def _around_curves(
    curves: Sequence[Curve],
    sizes: Sequence[int],
    label_shares: Sequence[Sequence[float]],
    noise: float,
    random_state: int | np.random.RandomState | None,
) -> tuple[Floats, Ints, Ints]:
    """Draw samples around one curve per class, mark the labelled ones and shuffle the rows."""
    if not isinstance(noise, Real) or not 0 <= noise < np.inf:
        msg = f"noise is a standard deviation: pass a finite number of at least 0, not {noise!r}."
        raise ValueError(msg)
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
    X = np.concatenate(points)
    X += noise * rng.standard_normal(X.shape)
    y = np.repeat(np.arange(len(sizes), dtype=np.intp), sizes)
    order = rng.permutation(len(X))
    labeled = np.argsort(order)[ranks]  # where the shuffle has put them
    return X[order], y[order], labeled


def _split(n_samples: int | tuple[int, int]) -> tuple[int, int]:
    """Turn ``n_samples`` into the sizes of the two classes."""
    if isinstance(n_samples, Integral):
        total = int(n_samples)
        sizes: Sequence[int] = (total - total // 2, total // 2)
    elif isinstance(n_samples, Sequence) and len(n_samples) == 2:
        sizes = n_samples
    else:
        sizes = ()
    if len(sizes) != 2 or not all(isinstance(n, Integral) and n >= 3 for n in sizes):
        msg = (
            "n_samples must be an int of at least 6 or a pair of ints of at least 3 each (three "
            f"samples per class are labelled), not {n_samples!r}."
        )
        raise ValueError(msg)
    return int(sizes[0]), int(sizes[1])
