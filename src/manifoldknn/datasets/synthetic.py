"""Toy sets drawn around curves in the plane.

A generator here returns ``(X, y, labeled)``: the samples, the true class of every sample, and the
indices of the few samples whose class a classifier may see.
"""

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.datasets.curves import Curve, around_curves, at_constant_speed, split_sizes

_LEG = 1.3  # length of each straight leg of the arch, whose round part has radius 1
_BOWL = 0.45  # radius of the two bowls of the S: the gap to the arch is as wide
_S_CENTRE = -0.35  # height of the S's centre: puts its bottom level with the arch's feet

# Where the labelled samples stand, as shares of each curve's length. All lie within their own
# class, but where one curve has no label close by, the other one often has: that misleads
# Euclidean distance.
_ARCH_LABELS = (0.06, 0.54, 0.96)
_S_LABELS = (0.08, 0.37, 0.95)

_INNER, _OUTER = 0.6, 1.0  # radii of the two circles
_CIRCLE_LABELS = ((0.05, 0.3, 0.6), (0.17, 0.45, 0.8))
_APART = 0.35  # between the circle of radius 1 and the strip
_WRAPPED = 0.75 * np.pi  # angle over which the strip follows the circle
_STRAIGHT = 1.2  # length of the strip's straight ends
_STRIP_LABELS = ((0.1, 0.4, 0.75), (0.08, 0.4, 0.92))
_TURNS = (0.5 * np.pi, 2.8 * np.pi)  # of each spiral arm of the knot
_WIDENING = 0.16  # growth of its radius per radian: arms are 0.16π apart
_KNOT_LABELS = ((0.1, 0.5, 0.9), (0.2, 0.6, 0.95))


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

    The places of the labels were picked from many so that the nearest labelled sample misleads, a
    little more than labels at random do.

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
    sizes, labels = split_sizes(n_samples), (_ARCH_LABELS, _S_LABELS)
    return around_curves((_arch, _mirrored_s), sizes, labels, noise, random_state)


def make_two_circles(
    n_samples: int | tuple[int, int] = 400,
    *,
    noise: float = 0.03,
    n_bridges: int = 3,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Floats, Ints, Ints]:
    r"""Make a circle within a circle, with bridging points in the gap.

    The first of the three synthetic sets of the paper (see `make_arch_and_s`): two
    one-dimensional manifolds with noise, three labelled samples each, and a few samples between
    them that lead shortest paths astray. The paper prints no equations; these are ours.

    Parameters
    ----------
    n_samples, noise, random_state
        As in `make_arch_and_s`, with the outer circle first. Bridging points are among the
        samples. The circles are 0.4 apart.
    n_bridges : int, default=3
        Bridges: rows of 4 samples across the gap, of which each class owns the nearer two.

    Returns
    -------
    X, y, labeled
        As there: class 0 is the outer circle, 1 the inner one.

    Notes
    -----
    With :math:`u` uniform on [0, 1] and :math:`r` being 1 or 0.6,
    :math:`(x, y) = (r \cos 2\pi u,\; r \sin 2\pi u)`. Bridges stand in equal sectors, at random
    within each. Labels stand at fixed shares of each curve, so that much of either circle is
    nearer to a label of the other.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.datasets import make_two_circles
    >>> X, y, labeled = make_two_circles(random_state=0)
    >>> X.shape, y[labeled]
    ((400, 2), array([0, 0, 0, 1, 1, 1]))
    >>> radius = np.linalg.norm(X, axis=1)  # bridging points lie between the two
    >>> int(np.sum((radius > 0.7) & (radius < 0.9)))
    8
    """
    sizes, curves = split_sizes(n_samples), (_circle(_OUTER), _circle(_INNER))
    return around_curves(curves, sizes, _CIRCLE_LABELS, noise, random_state, n_bridges)


def make_circle_and_strip(
    n_samples: int | tuple[int, int] = 400,
    *,
    noise: float = 0.03,
    n_bridges: int = 3,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Floats, Ints, Ints]:
    r"""Make a circle and a strip that rubs along it, with bridging points in the gap.

    The second of the three synthetic sets of the paper (see `make_arch_and_s`), which prints no
    equations; these are ours.

    Parameters
    ----------
    n_samples, noise, n_bridges, random_state
        As in `make_two_circles`, the circle in the place of the outer one and the strip in that of
        the inner one. Where the strip follows the circle they are 0.35 apart.

    Returns
    -------
    X, y, labeled
        As there: class 0 is the circle, 1 the strip.

    Notes
    -----
    The circle has radius 1. The strip follows it from below at radius 1.35 over a part of its
    round, from left to right, and leaves it straight, along the tangent, at both ends for a length
    of 1.2 each.

    Examples
    --------
    >>> from manifoldknn.datasets import make_circle_and_strip
    >>> X, y, labeled = make_circle_and_strip((250, 200), random_state=0)
    >>> X.shape, y[labeled]
    ((450, 2), array([0, 0, 0, 1, 1, 1]))
    """
    sizes, curves = split_sizes(n_samples), (_circle(1.0), _strip)
    return around_curves(curves, sizes, _STRIP_LABELS, noise, random_state, n_bridges)


def make_knot(
    n_samples: int | tuple[int, int] = 400,
    *,
    noise: float = 0.03,
    n_bridges: int = 3,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Floats, Ints, Ints]:
    r"""Make two strands wound into each other, with bridging points in the gap.

    The third of the three synthetic sets of the paper (see `make_arch_and_s`), a knot. The paper
    prints no equations; these are ours.

    Parameters
    ----------
    n_samples, noise, n_bridges, random_state
        As in `make_two_circles`, with two strands in the place of the circles. They are 0.47 to
        0.5 apart.

    Returns
    -------
    X, y, labeled
        As there; the labelled rows of each strand come from the middle of the knot outwards.

    Notes
    -----
    A strand is the spiral of radius :math:`0.16\,t` at the angle :math:`t`, run through at
    constant speed from :math:`0.5\pi` to :math:`2.8\pi`; the other one is the same, turned by
    half a round.

    Examples
    --------
    >>> from manifoldknn.datasets import make_knot
    >>> X, y, labeled = make_knot(random_state=0)
    >>> X.shape, y[labeled]
    ((400, 2), array([0, 0, 0, 1, 1, 1]))
    """
    sizes, curves = split_sizes(n_samples), (_strand(0.0), _strand(np.pi))
    return around_curves(curves, sizes, _KNOT_LABELS, noise, random_state, n_bridges)


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


def _circle(radius: float) -> Curve:
    """Return a circle, run through from its rightmost point, counterclockwise."""
    return lambda u: radius * np.column_stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u)])


def _strip(u: Floats) -> Floats:
    """Map shares of the length, from the left end on, to points of the strip."""
    radius = 1 + _APART
    s = (2 * _STRAIGHT + radius * _WRAPPED) * u - _STRAIGHT
    turned = np.clip(s / radius, 0.0, _WRAPPED)
    beyond = s - radius * turned  # along the tangent: below 0 before the bend, above 0 after
    angle = turned - np.pi / 2 - _WRAPPED / 2
    outward = np.column_stack([np.cos(angle), np.sin(angle)])
    along = np.column_stack([-np.sin(angle), np.cos(angle)])
    return np.asarray(radius * outward + beyond[:, None] * along)


def _strand(turn: float) -> Curve:
    """Return a spiral arm that begins at an angle, run through at constant speed outwards."""

    def spiral(u: Floats) -> Floats:
        t = _TURNS[0] + (_TURNS[1] - _TURNS[0]) * u
        return _WIDENING * t[:, None] * np.column_stack([np.cos(t + turn), np.sin(t + turn)])

    return at_constant_speed(spiral)
