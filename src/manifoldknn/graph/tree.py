"""The R-level nearest-neighbour strengthened tree (section 3 of the paper).

Every labelled sample is the root of a tree. The children of a node are its
nearest neighbours, less the nodes that already stand on an earlier level of the
same tree. An edge between level r-1 and level r is strengthened by 1 + θ^r,
so what counts of an edge is the smallest r at which any tree contains it.
"""

from typing import Any

from manifoldknn.base.kernels import NUMPY, Kernels

_PAIRS_PER_BATCH = 4_000_000
_DEEP = 30  # levels from which a tree is taken to hold all it can


def tree_edges(
    neighbors: Any, roots: Any, depth: int, kernels: Kernels = NUMPY
) -> tuple[Any, Any, Any]:
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
    keys, levels = [kernels.arange(0)], [kernels.arange(0)]
    is_root = kernels.mask(roots, n)
    batch = max(1, _PAIRS_PER_BATCH // max(1, min(k ** min(depth, _DEEP), n * k)))
    for start in range(0, len(roots) if depth else 0, batch):
        found = _levels(neighbors, roots[start : start + batch], depth, is_root, kernels)
        keys.extend(found)
        levels.extend(kernels.xp.full_like(key, r) for r, key in enumerate(found, 1))
    key, level = kernels.xp.concatenate(keys), kernels.xp.concatenate(levels)
    order = kernels.order(level, key)
    key, level = key[order], level[order]
    first = kernels.places(kernels.is_first(key))
    key = key[first]
    return key // n, key % n, level[first]


def _levels(neighbors: Any, roots: Any, depth: int, is_root: Any, kernels: Kernels) -> list[Any]:
    """Edge keys ``low * n + high`` of each level, for one batch of roots."""
    xp = kernels.xp
    n, k = neighbors.shape
    tree = kernels.arange(len(roots))  # which tree each frontier node belongs to
    node = kernels.long(roots)
    standing = tree * n + node  # sorted (tree, node) pairs of all earlier levels
    found = []
    for r in range(1, depth + 1):
        if r == depth and r > 1:
            # Edges below another root are in that root's own tree, and nearer to its root.
            inner = kernels.places(~is_root[node])
            tree, node = tree[inner], node[inner]
        child = kernels.long(neighbors[node].reshape(-1))
        parent = kernels.repeat(node, k)
        pair = kernels.repeat(tree, k) * n + child
        new = kernels.places(~kernels.contains(standing, pair)[0])
        child, parent, pair = child[new], parent[new], pair[new]
        found.append(kernels.distinct(xp.minimum(parent, child) * n + xp.maximum(parent, child)))
        if r == depth:
            break
        level = kernels.distinct(pair)
        if not len(level):
            break  # all that can be reached stands in its tree
        standing = kernels.distinct(xp.concatenate([standing, level]))
        tree, node = level // n, level % n
    return found
