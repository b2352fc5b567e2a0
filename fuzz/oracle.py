"""The method in logarithms, pair by pair: slow, literal, and nothing of the library in it.

Pairs and trees come from `tests/oracles.py`; distances, weights and walks are its own.

Elimination of D - αW never subtracts: a row keeps what its walkers lose, (1 - α)d, beside the
weights of its edges, and its diagonal is their sum. So every number is right to rounding, for any
α below 1, and as logarithms numbers may have any size.
"""

import numpy as np
from scipy.spatial.distance import cdist

import oracles

NOTHING = -np.inf


def distances(X, metric):
    """All pairs; Euclidean ones for numbers of any size, angles from directions."""
    if callable(metric):  # which gets rows as they are
        return np.array([[metric(a, b) for b in X] for a in X], dtype=np.float64)
    X = np.asarray(X, dtype=np.float64)
    if metric in ("cosine", "correlation"):
        X = X - X.mean(axis=1, keepdims=True) if metric == "correlation" else X
        X = X / _power_of_two(np.abs(X).max(axis=1, keepdims=True))
        lengths = _norms(X)[:, None]
        X = X / np.where(lengths > 0, lengths, 1.0)
        D = 0.5 * _norms(X[:, None] - X[None]) ** 2
        return np.where((lengths > 0) & (lengths.T > 0), D, 1.0)  # no direction: 1 from all
    if metric == "braycurtis":  # 0 between rows of zeros
        sums = np.abs(X[:, None]) + np.abs(X[None])
        apart = np.abs(X[:, None] - X[None]).sum(axis=2)
        return apart / np.where(sums.any(axis=2), sums.sum(axis=2), 1.0)
    if metric != "euclidean":
        return cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    away = X[:, None] - X[None]
    unit = _power_of_two(np.abs(away).max())
    return unit * _norms(away / unit)


def _power_of_two(values):
    """Return one of the size of each: to divide by it changes no digit."""
    return 2.0 ** np.frexp(values)[1]


def _norms(X):
    return np.sqrt(np.einsum("...j,...j", X, X))  # rounded as the library does, for ties' sake


def width(D, graph, k):
    """Sigma, also where many rows are equally far from each other."""
    listed = min(max(k, 7, 30 if graph == "pruned" else 0), len(D) - 1)
    d = np.sort(D + np.diag(np.full(len(D), np.inf)), axis=1)[:, :listed]
    seventh, first = d[:, min(7, listed) - 1], d[:, 0]
    spread = (seventh - first) * (seventh + first)
    typical = np.median(spread)
    if not typical > 0:
        some = spread[spread > 0] if (spread > 0).any() else np.square(d[d > 0])
        typical = np.median(some) if len(some) else 1.0
    return 0.75 * np.sqrt(typical)


def log_weights(D, codes, *, graph, k, sigma, depth, theta, must=(), cannot=()):
    """Table 1 and the strengthened trees."""
    n = len(D)
    lists = oracles.nearest_by(D, n - 1)
    L = np.full((n, n), NOTHING)
    for i, j in oracles.third_rule(D, lists, graph, k):
        L[i, j] = L[j, i] = -0.5 * (D[i, j] / sigma) ** 2
    labeled = np.flatnonzero(codes >= 0)
    for i in labeled:
        for j in labeled:
            L[i, j] = 0.0 if codes[i] == codes[j] else NOTHING
    for links, value in ((must, 0.0), (cannot, NOTHING)):
        for i, j in links:
            L[i, j] = L[j, i] = value
    np.fill_diagonal(L, NOTHING)
    best = np.zeros((n, n))  # logarithms of factors
    for i, j, r in oracles.tree_pairs(lists, codes, k, depth):
        if L[i, j] > NOTHING:
            t = theta * min(np.expm1(min(-L[i, j], 1.0)), 1.0)
            best[i, j] = best[j, i] = max(best[i, j], np.log1p(t**r))
    return L + best


class Walk:
    """K = (D - αW)⁻¹ by elimination without a subtraction, in logarithms."""

    def __init__(self, L, alpha):
        n = len(L)
        degrees = np.logaddexp.reduce(L, axis=1)
        alone = np.isneginf(degrees)
        self.log_degrees = np.where(alone, 0.0, degrees)
        self.weights = L + np.log(alpha)
        lost = np.where(alone, 0.0, np.log1p(-alpha) + degrees)
        self.diagonal = np.empty(n)
        for p in range(n):
            later = slice(p + 1, n)
            row = self.weights[p, later].copy()
            self.diagonal[p] = np.logaddexp(lost[p], np.logaddexp.reduce(row, initial=NOTHING))
            share = self.weights[later, p] - self.diagonal[p]
            block = self.weights[later, later]
            np.logaddexp(block, share[:, None] + row, out=block)
            np.fill_diagonal(block, NOTHING)  # in the diagonal, as the sum of the others
            lost[later] = np.logaddexp(lost[later], share + lost[p])

    def solve(self, log_b):
        b, n = log_b.copy(), len(log_b)
        for p in range(n):
            share = self.weights[p + 1 :, p] - self.diagonal[p]
            b[p + 1 :] = np.logaddexp(b[p + 1 :], share[:, None] + b[p])
        for p in range(n - 1, -1, -1):
            terms = self.weights[p, p + 1 :, None] + b[p + 1 :]
            b[p] = np.logaddexp(b[p], np.logaddexp.reduce(terms, axis=0, initial=NOTHING))
            b[p] -= self.diagonal[p]
        return b

    def by_class(self, codes, n_classes):
        """log f of every row and class."""
        labeled, n = np.flatnonzero(codes >= 0), len(codes)
        sums = self.solve(np.zeros((n, 1)))[:, 0]
        b = np.full((n, n_classes), NOTHING)
        counts = np.bincount(codes[labeled], minlength=n_classes)
        b[labeled, codes[labeled]] = -sums[labeled] - np.log(counts[codes[labeled]])
        return self.solve(b)

    def by_label(self, labeled):
        """log w̄ of every row and label."""
        b = np.full((len(self.weights), len(labeled)), NOTHING)
        b[labeled, np.arange(len(labeled))] = 0.0
        d = self.log_degrees
        return self.solve(b) + np.logaddexp(d[:, None], d[labeled]) - np.log(2.0)
