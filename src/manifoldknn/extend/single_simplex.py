"""The active-set method for a single point, in plain numbers.

`simplex_weights` works on many points at once, which for one point means hundreds
of calls for arrays of ten numbers. Here the same steps are taken number by number,
in the same order, so that the answer is the same to the last bit; for one
point that is several times as fast.
"""

from math import sqrt

Numbers = list[float]
Matrix = list[Numbers]

_EPS, _TINY = 2.0**-52, 2.0**-1022


def active_set(gram: Matrix, max_iter: int) -> Numbers | None:
    """Minimise ``z @ gram @ z`` over the simplex; None if iterations did not suffice.

    `gram` is the Gram matrix of the differences, the smallest first.

    Examples
    --------
    >>> from manifoldknn.extend.single_simplex import active_set
    >>> active_set([[1.0, 0.0], [0.0, 3.0]], 10)
    [0.75, 0.25]
    """
    k = len(gram)
    norms = [sqrt(gram[i][i]) for i in range(k)]
    z, settled = [1.0] + [0.0] * (k - 1), True
    for _ in range(max_iter):
        support = [i for i in range(k) if z[i] > 0]
        slack, enters = _slack(gram, norms, z, support)
        if settled:
            if enters is None:
                total = _total([z[i] for i in support])
                return [value / total for value in z]
            support = sorted([*support, enters])
        step = _newton_step(gram, slack, support, k)
        settled = _move(z, support, step)
    return None


def _slack(
    gram: Matrix, norms: Numbers, z: Numbers, support: list[int]
) -> tuple[Numbers, int | None]:
    """``gram @ z - z @ gram @ z``, and the entry that violates optimality most."""
    k = len(z)
    gradient = [0.0] * k
    for i in support:
        column, weight = gram[i], z[i]
        gradient = [g + c * weight for g, c in zip(gradient, column)]
    value = _total([gradient[i] * z[i] for i in support])
    reach = _total([norms[i] * z[i] for i in support])
    slack = [g - value for g in gradient]
    unit = 16 * k * _EPS * reach
    enters, least = None, 0.0
    for i in range(k):
        if slack[i] < least and z[i] <= 0 and slack[i] < -(unit * (norms[i] + reach)):
            enters, least = i, slack[i]
    return slack, enters


def _newton_step(gram: Matrix, slack: Numbers, support: list[int], k: int) -> Numbers:
    """Step to the minimiser over the affine hull of the support, member by member."""
    first, others = support[0], support[1:]
    width = len(others)
    head, corner = gram[first], gram[first][first]
    a = [[gram[i][j] - gram[i][first] - head[j] + corner for j in others] for i in others]
    b = [slack[first] - slack[i] for i in others]
    unit = 8 * k * _EPS
    for j in range(width):
        pivot = max(a[j][j], unit * (gram[others[j]][others[j]] + corner))
        row = a[j]
        row[j] = pivot
        for i in range(j + 1, width):
            ratio = a[i][j] / pivot
            below = a[i]
            for c in range(j + 1, width):
                below[c] -= ratio * row[c]
            b[i] -= ratio * b[j]
    for j in reversed(range(width)):
        row = a[j]
        b[j] = (b[j] - _total([row[c] * b[c] for c in range(j + 1, width)])) / row[j]
    return [-_total(b), *b]


def _move(z: Numbers, support: list[int], step: Numbers) -> bool:
    """Step as far as no weight turns negative, in place; tell whether that was all the way."""
    target = [z[i] + s for i, s in zip(support, step)]
    fractions = [z[i] / max(z[i] - t, _TINY) if t <= 0 else 1.0 for i, t in zip(support, target)]
    settled = all(t > 0 for t in target)
    least = min(fractions)
    for i, t, s, fraction in zip(support, target, step, fractions):
        if settled:
            z[i] = t
        else:
            dropped = t <= 0 and fraction <= least
            z[i] = 0.0 if dropped else max(z[i] + least * s, 0.0)
    return settled


def _total(terms: Numbers) -> float:
    """Sum in order; since Python 3.12 `sum` compensates for rounding."""
    total = 0.0
    for term in terms:
        total += term
    return total
