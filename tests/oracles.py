"""Slow, literal versions of every step, straight from their definitions.

Nothing here is shared with the library: loops over samples, dense matrices, a
plain inverse. The fast paths are compared with these.
"""

import numpy as np


def distance_matrix(X):
    X = np.asarray(X, dtype=np.float64)
    return np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def nearest(X, k):
    """The k nearest others of each row, by (distance, index)."""
    D = distance_matrix(X)
    lists = []
    for i in range(len(X)):
        others = sorted((j for j in range(len(X)) if j != i), key=lambda j: (D[i, j], j))
        lists.append(others[:k])
    return lists


def sigma(X, lists):
    D = distance_matrix(X)
    values = []
    for i, others in enumerate(lists):
        q = others[min(7, len(others)) - 1]
        values.append(D[i, q] ** 2 - D[i, others[0]] ** 2)
    return 0.75 * np.sqrt(np.median(values))


def union_pairs(lists, k):
    return {tuple(sorted((i, j))) for i, others in enumerate(lists) for j in others[:k]}


class Parts:
    """Union-find, for Kruskal's rule."""

    def __init__(self, n):
        self.parent = list(range(n))

    def root(self, i):
        while self.parent[i] != i:
            i = self.parent[i]
        return i

    def join(self, i, j):
        a, b = self.root(i), self.root(j)
        self.parent[a] = b
        return a != b


def pruned_pairs(X, lists, k, candidates=30):
    """Mutual neighbours, 3 nearest, spanning tree, and the joining of parts."""
    n = len(X)
    D = distance_matrix(X)
    pairs = set()
    for i in range(n):
        for j in lists[i][:k]:
            if i in lists[j][:k]:
                pairs.add(tuple(sorted((i, j))))
        for j in lists[i][:3]:
            pairs.add(tuple(sorted((i, j))))
    parts = Parts(n)
    candidate = union_pairs(lists, max(candidates, k))
    for i, j in sorted(candidate, key=lambda p: (D[p], p)):
        if parts.join(i, j):
            pairs.add((i, j))
    everything = [(i, j) for i in range(n) for j in range(i + 1, n)]
    for i, j in sorted(everything, key=lambda p: (D[p], p)):
        if parts.join(i, j):
            pairs.add((i, j))
    return pairs


def tree_factors(W, lists, codes, k, depth, theta):
    """Strongest factor of every pair over all trees and directions, as a matrix."""
    n = len(W)
    factor = np.ones((n, n))
    for root in range(n):
        if codes[root] < 0:
            continue
        earlier, level = {root}, {root}
        for r in range(1, depth + 1):
            following = set()
            for i in level:
                for j in lists[i][:k]:
                    if j in earlier:
                        continue
                    following.add(j)
                    if W[i, j] > 0:
                        t = theta * (1 if W[i, j] <= 0.5 else (1 - W[i, j]) / W[i, j])
                        best = max(factor[i, j], 1 + t**r)
                        factor[i, j] = factor[j, i] = best
            earlier |= following
            level = following
    return factor


def constrained_graph(X, codes, *, graph, k, sigma, depth, theta):
    """Table 1, pair by pair."""
    n = len(X)
    lists = nearest(X, n - 1)
    D = distance_matrix(X)
    if graph == "full":
        pairs = {(i, j) for i in range(n) for j in range(i + 1, n)}
    elif graph == "union":
        pairs = union_pairs(lists, k)
    else:
        pairs = pruned_pairs(X, lists, k)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            if codes[i] >= 0 and codes[j] >= 0:
                W[i, j] = 1.0 if codes[i] == codes[j] else 0.0
            elif tuple(sorted((i, j))) in pairs:
                W[i, j] = np.exp(-(D[i, j] ** 2) / (2 * sigma**2))
    return W * tree_factors(W, lists, codes, k, depth, theta)


def walk_weights(W, alpha):
    """½(P_TRW + P_TRWᵀ) from a plain inverse."""
    degrees = W.sum(axis=1)
    P = W / np.where(degrees > 0, degrees, 1)[:, None]
    T = np.linalg.inv(np.eye(len(W)) - alpha * P)
    return (T + T.T) / 2


def vote(weights, codes_of_labeled, k, n_classes):
    """Equation 6 row by row: shares and winners."""
    shares = np.zeros((len(weights), n_classes))
    for i, row in enumerate(weights):
        order = sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
        for j in order:
            shares[i, codes_of_labeled[j]] += row[j]
        if shares[i].sum() > 0:
            shares[i] /= shares[i].sum()
    return shares, shares.argmax(axis=1)
