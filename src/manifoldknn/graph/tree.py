"""The R-level nearest-neighbour strengthened tree (section 3 of the paper).

Every labelled sample is the root of a tree. The children of a node are its
nearest neighbours, less the nodes that already stand on an earlier level of the
same tree. An edge between level r-1 and level r is strengthened by 1 + θ^r,
so what counts of an edge is the smallest r at which any tree contains it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_PAIRS_PER_BATCH = 4_000_000


def tree_edges(
    neighbors: NDArray[np.intp], roots: NDArray[np.intp], depth: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the parent-child edges of all trees with their smallest level.

    `neighbors` are the nearest of every sample, without the sample itself. Edges have no direction,
    ``low < high``, and are sorted; their level is the smallest r ≥ 1 at which a tree holds them,
    either way. Cost O(l·k^R) for the l roots and R = `depth`; roots are taken in batches of bounded
    memory.

    Examples
    --------
    A chain 0 - 1 - 2, rooted at its first sample:

    >>> import numpy as np
    >>> from manifoldknn.graph.tree import tree_edges
    >>> low, high, level = tree_edges(np.array([[1], [2], [1]]), np.array([0]), depth=2)
    >>> list(zip(low.tolist(), high.tolist(), level.tolist()))
    [(0, 1, 1), (1, 2, 2)]
    """
    n, k = neighbors.shape
    keys: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
    levels: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
    is_root = np.zeros(n, dtype=bool)
    is_root[roots] = True
    batch = max(1, _PAIRS_PER_BATCH // max(1, min(k**depth, n * k)))
    for start in range(0, len(roots) if depth else 0, batch):
        for r, key in _levels(neighbors, roots[start : start + batch], depth, is_root):
            keys.append(key)
            levels.append(np.full(len(key), r, dtype=np.intp))
    key, level = np.concatenate(keys), np.concatenate(levels)
    order = np.lexsort((level, key))
    key, level = key[order], level[order]
    first = np.ones(len(key), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    key = key[first]
    return key // n, key % n, level[first]


def _levels(
    neighbors: NDArray[np.intp], roots: NDArray[np.intp], depth: int, is_root: NDArray[np.bool_]
) -> list[tuple[int, NDArray[np.intp]]]:
    """Edge keys ``low * n + high`` of each level, for one batch of roots."""
    n, k = neighbors.shape
    tree = np.arange(len(roots), dtype=np.intp)  # which tree each frontier node belongs to
    node = roots.astype(np.intp)
    standing = tree * n + node  # sorted (tree, node) pairs of all earlier levels
    found = []
    for r in range(1, depth + 1):
        if r == depth and r > 1:
            # Edges below another root are in that root's own tree, and nearer to its root.
            inner = ~is_root[node]
            tree, node = tree[inner], node[inner]
        child = neighbors[node].ravel()
        parent = np.repeat(node, k)
        pair = np.repeat(tree, k) * n + child
        new = ~_contains(standing, pair)
        child, parent, pair = child[new], parent[new], pair[new]
        key = np.minimum(parent, child) * n + np.maximum(parent, child)
        found.append((r, _distinct(key)))
        if r == depth:
            break
        level = _distinct(pair)
        standing = np.sort(np.concatenate([standing, level]))
        tree, node = level // n, level % n
    return found


def _distinct(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the distinct numbers, sorted; much quicker than np.unique on integers."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), dtype=bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


def _contains(ordered: NDArray[np.intp], numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell which numbers stand in an ordered array."""
    at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[at] == numbers
    return found
