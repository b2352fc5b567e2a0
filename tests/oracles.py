"""Slow, literal versions of every step, straight from their definitions.

Nothing here is shared with the library: loops over samples, dense matrices, a
plain inverse. The fast paths are compared with these.
"""

from types import SimpleNamespace

import mpmath
import numpy as np


def distance_matrix(X):
    X = np.asarray(X, dtype=np.float64)
    return np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def angle(a, b, metric):
    """1 - cos of two rows, in the correlation of centred ones, with fifty digits."""
    with mpmath.workdps(50):
        a, b = ([mpmath.mpf(float(v)) for v in row] for row in (a, b))
        if metric == "correlation":
            a, b = ([v - sum(row) / len(row) for v in row] for row in (a, b))
        dot = sum(x * y for x, y in zip(a, b))
        return 1 - dot / mpmath.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def nearest(X, k):
    """The k nearest others of each row, by (distance, index)."""
    return nearest_by(distance_matrix(X), k)


def nearest_by(D, k):
    """The same, by distances of all pairs."""
    lists = []
    for i in range(len(D)):
        others = sorted((j for j in range(len(D)) if j != i), key=lambda j: (D[i, j], j))
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


def third_rule(D, lists, graph, k, candidates=30):
    """Pairs that carry the third rule: all, the union's, or those of the pruned graph.

    These are mutual neighbours, 3 nearest, spanning tree, and the joining of parts.
    """
    n = len(D)
    everything = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if graph == "full":
        return set(everything)
    if graph == "union":
        return union_pairs(lists, k)
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
    for i, j in sorted(everything, key=lambda p: (D[p], p)):
        if parts.join(i, j):
            pairs.add((i, j))
    return pairs


def tree_pairs(lists, codes, k, depth):
    """Parents, children and levels in the strengthened trees of all labelled rows."""
    for root in range(len(lists)):
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
                    yield i, j, r
            earlier |= following
            level = following


def tree_factors(W, lists, codes, k, depth, theta):
    """Strongest factor of every pair over all trees and directions, as a matrix."""
    factor = np.ones((len(W), len(W)))
    for i, j, r in tree_pairs(lists, codes, k, depth):
        if W[i, j] > 0:
            t = theta * (1 if W[i, j] <= 0.5 else (1 - W[i, j]) / W[i, j])
            factor[i, j] = factor[j, i] = max(factor[i, j], 1 + t**r)
    return factor


def constrained_graph(X, codes, *, graph, k, sigma, depth, theta, must=(), cannot=()):
    """Table 1, pair by pair, and to linked pairs what it has for labelled ones."""
    n = len(X)
    lists = nearest(X, n - 1)
    D = distance_matrix(X)
    pairs = third_rule(D, lists, graph, k)
    must, cannot = ({tuple(sorted(pair)) for pair in links} for links in (must, cannot))
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            if tuple(sorted((i, j))) in must:
                W[i, j] = 1.0
            elif tuple(sorted((i, j))) in cannot:
                W[i, j] = 0.0
            elif codes[i] >= 0 and codes[j] >= 0:
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


EPSILON = 0.02


def alpha(n_labeled, n):
    """Share of strength kept: walkers live about as long as it takes to meet labels."""
    return 1 - min(max(0.3 * n_labeled / n, 3e-4), 0.5)


def inverse(M):
    """Gauss-Jordan without exchanges, for floats and for mpmath's numbers.

    D - αW has dominant diagonals and no positive entry beside them: nothing cancels.
    """
    n = len(M)
    M, out = [list(row) for row in M], [[int(i == j) for j in range(n)] for i in range(n)]
    for p in range(n):
        for i in range(n):
            if i != p and M[i][p] != 0:
                factor = M[i][p] / M[p][p]
                M[i] = [a - factor * b if b != 0 else a for a, b in zip(M[i], M[p])]
                out[i] = [a - factor * b if b != 0 else a for a, b in zip(out[i], out[p])]
    return np.array([[out[i][j] / M[i][i] for j in range(n)] for i in range(n)])


def walk_matrix(W, alpha):
    """K = (D - αW)⁻¹; a row without edges stays where it is."""
    n = len(W)
    M = [[-alpha * W[i][j] for j in range(n)] for i in range(n)]
    for i in range(n):
        degree = sum(W[i])
        M[i][i] += degree if degree > 0 else 1
    # LAPACK gets the smallest wrong where weights differ by many orders of magnitude.
    plain = isinstance(W, np.ndarray) and W[W > 0].min(initial=1) > 1e-8
    return np.linalg.inv(np.array(M)) if plain else inverse(M)


def label_parts(K, codes):
    """What each label adds to its class: q_j(i) / n_c, a column per labelled row."""
    n = len(K)
    columns = []
    for j in range(n):
        if codes[j] >= 0:
            total = sum(K[i][j] for i in range(n))
            of_class = sum(1 for other in codes if other == codes[j])
            columns.append([K[i][j] / total / of_class for i in range(n)])
    return np.array(columns).T


def class_densities(K, codes, n_classes):
    """f_c(i), the mean of q_j(i) over the labels j of class c."""
    parts = label_parts(K, codes)
    given = [code for code in codes if code >= 0]
    f = np.zeros((len(K), n_classes), dtype=parts.dtype)
    for i in range(len(K)):
        for j, code in enumerate(given):
            f[i, code] += parts[i, j]
    return f


def folds(codes, n_folds=5, enough=1000):
    """Labelled rows in the groups in which they are hidden: shuffled in classes, then dealt out.

    A class with one label keeps it. Of very many labels only groups with a thousand are hidden.
    """
    rows = [i for i, code in enumerate(codes) if code >= 0]
    rows = [i for i in rows if sum(1 for j in rows if codes[j] == codes[i]) > 1]
    if not rows:
        return []
    shuffled = np.random.default_rng(0).permutation(len(rows))
    turn = sorted(range(len(rows)), key=lambda i: (codes[rows[i]], shuffled[i]))
    hands = [[] for _ in range(min(n_folds, len(rows)))]
    for number, i in enumerate(turn):
        hands[number % len(hands)].append(rows[i])
    kept, hidden = [], 0
    for hand in hands:
        if hidden < enough:
            kept.append(sorted(hand))
            hidden += len(hands[0])
    return kept


def prior(kind, codes, n_classes):
    if kind == "equal":
        return np.full(n_classes, 1 / n_classes)
    if kind != "labeled":
        return np.array(kind) / sum(kind)
    counts = [sum(1 for code in codes if code == c) for c in range(n_classes)]
    even = sum(counts) / n_classes
    chi = sum((count - even) ** 2 / even for count in counts)
    share = max(0, 1 - (n_classes - 1) / chi) if chi > 0 else 0
    return np.array([(1 - share) / n_classes + share * count / sum(counts) for count in counts])


def partner_shares(p):
    """s_c, a partner's probabilities with a little added."""
    return np.array([[(v + 0.02) / sum(w + 0.02 for w in row) for v in row] for row in p])


def probabilities(f, prior, sharpness, s=None, weight=0.0):
    """p_c(i), in a row that some class reaches; zeros elsewhere. A partner says s."""
    p = np.zeros(f.shape)
    s = np.ones(f.shape) if s is None else s
    for i, row in enumerate(f):
        if max(row) > 0:
            powers = [pi * float((v / max(row)) ** sharpness) for pi, v in zip(prior, row)]
            powers = [power * says**weight for power, says in zip(powers, s[i])]
            for c, power in enumerate(powers):
                p[i, c] = (1 - EPSILON) * power / sum(powers) + EPSILON / len(prior)
    return p


def doubted(p, f, usual, b):
    """t·p + (1 - t)/C of rows that some class reaches; `usual` is log f̂."""
    out = np.zeros(p.shape)
    for i, row in enumerate(p):
        if row.any():
            short = 0.0 if usual == -np.inf else min(0.0, float(_log(max(f[i])) - usual))
            t = max(1e-3, np.exp(short) * b[i])
            out[i] = [t * share + (1 - t) / len(row) for share in row]
    return out


def usual_density(f_hidden, given):
    """log f̂: of m own densities the ⌊(m + 1)/10⌋-th from below."""
    own = sorted(float(_log(row[c])) if row[c] > 0 else -np.inf for row, c in zip(f_hidden, given))
    return own[(len(own) + 1) // 10 - 1] if len(own) >= 9 else -np.inf


def usual_sharpness(f, codes):
    """2/g; 1 where no unlabelled row is reached by two classes."""
    gaps = []
    for row, code in zip(f, codes):
        second, first = sorted(row)[-2:] if len(row) > 1 else (0, 0)
        if code < 0 and second > 0:
            gaps.append(float(_log(first) - _log(second)))
    return 2 / min(max(np.median(gaps), 1e-6), 1e12) if gaps else 1.0


def _log(value):
    return np.log(value) if isinstance(value, float) else mpmath.log(value)


def posterior(f_hidden, given, prior, usual, log_sharpness):
    """What the sharpness maximises: hidden labels, classes weighted equally, and its prior."""
    p = probabilities(f_hidden, prior, np.exp(log_sharpness))
    reached = [i for i in range(len(p)) if p[i].any()]
    present = {given[i] for i in reached}
    total = -0.5 * (log_sharpness - np.log(usual)) ** 2
    for i in reached:
        alike = sum(1 for other in reached if given[other] == given[i])
        total += len(reached) / len(present) / alike * np.log(p[i, given[i]])
    return total


def sharpness(f_hidden, given, prior, usual):
    """The best of a grid over log β that becomes finer around it, to a thousandth."""
    best = np.log(usual)
    for reach, step in ((8, 0.1), (0.3, 0.01), (0.03, 0.001)):
        grid = best + np.arange(-reach, reach + step / 2, step)
        best = max(grid, key=lambda point: posterior(f_hidden, given, prior, usual, point))
    return float(np.exp(best))


def joint_posterior(f_hidden, s_hidden, given, prior, usual, log_sharpness, weight):
    """The same with a partner, whose weight has a prior; classes as if with five labels more."""
    p = probabilities(f_hidden, prior, np.exp(log_sharpness), s_hidden, weight)
    reached = [i for i in range(len(p)) if p[i].any()]
    counts = {c: sum(1 for i in reached if given[i] == c) for c in {given[i] for i in reached}}
    total = sum(1 / (counts[given[i]] + 5) for i in reached)
    height = -0.5 * (log_sharpness - np.log(usual)) ** 2 - weight
    for i in reached:
        height += len(reached) / (counts[given[i]] + 5) / total * np.log(p[i, given[i]])
    return height


def powers(f_hidden, s_hidden, given, prior, usual):
    """Sharpness and weight: the best of a grid that becomes finer around it, to a thousandth."""
    best = np.log(usual), 4.0
    for reach, steps in ((8, 17), (1, 7), (0.3, 7), (0.1, 5), (0.02, 5)):
        grid = [
            (best[0] + a, max(0.0, best[1] + b))
            for a in np.linspace(-reach, reach, steps)
            for b in np.linspace(-min(reach, 4), min(reach, 4), steps)
        ]
        best = max(
            grid, key=lambda at: joint_posterior(f_hidden, s_hidden, given, prior, usual, *at)
        )
    return float(np.exp(best[0])), best[1]


def densities_vote(weights, codes, groups, *, class_prior="equal", alpha_=None, partner=None):
    """Section 2.5 from beginning to end.

    `partner` returns probabilities of rows from the class numbers of labels it may see, -1 where
    there is none.

    `weights` returns W for some labels and hidden rows, whose links by hand are hidden as well;
    `groups` holds the rows that are hidden together.
    """
    n_classes = max(codes) + 1
    pi = prior(class_prior, codes, n_classes)
    kept = alpha(sum(1 for code in codes if code >= 0), len(codes)) if alpha_ is None else alpha_
    K = walk_matrix(weights(codes), kept)
    f = class_densities(K, codes, n_classes)
    usual = usual_sharpness(f, codes)
    rows, hidden_f, hidden_s = [], [], []
    for group in groups:
        visible = np.array(codes)
        visible[group] = -1
        K_visible = walk_matrix(weights(visible, group), kept)
        rows += list(group)
        hidden_f += list(class_densities(K_visible, visible, n_classes)[group])
        if partner is not None:
            hidden_s += list(partner_shares(partner(visible, group)))
    given = [codes[i] for i in rows]
    beta, gamma, s = usual, 0.0, None
    if partner is not None:
        s = partner_shares(partner(codes, np.arange(len(codes))))
        if rows:
            beta, gamma = powers(np.array(hidden_f), hidden_s, given, pi, usual)
    elif rows:
        beta = sharpness(np.array(hidden_f), given, pi, usual)
    order = np.argsort(rows)
    return SimpleNamespace(
        alpha=kept, f=f, prior=pi, usual=usual, sharpness=beta, weight=gamma, s=s,
        p=probabilities(f, pi, beta, s, gamma),
        hidden_s=np.array(hidden_s).reshape(-1, n_classes)[order] if hidden_s else None,
        parts=label_parts(K, codes), hidden_rows=np.array(rows, dtype=int)[order],
        hidden_f=np.array(hidden_f).reshape(-1, n_classes)[order],
    )  # fmt: skip
