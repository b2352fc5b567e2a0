"""The strengthened tree on the device: `manifoldknn.graph.tree` word for word, on tensors."""

from __future__ import annotations

import torch

_PAIRS_PER_BATCH = 4_000_000


def tree_pairs(
    neighbors: torch.Tensor, roots: torch.Tensor, depth: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the parent-child edges of all trees of R = `depth` levels with their smallest level.

    Neighbours do not include the sample itself. Edges are sorted keys ``low * n_samples + high``;
    the level is the smallest r ≥ 1 at which a tree holds the edge, in either direction. Cost
    O(l·k^R) time; roots are taken in batches of bounded memory.

    >>> import torch
    >>> from manifoldknn.device.graph.tree import tree_pairs
    >>> key, level = tree_pairs(torch.tensor([[1], [2], [1]]), torch.tensor([0]), depth=2)
    >>> [(int(k) // 3, int(k) % 3, int(r)) for k, r in zip(key, level)]
    [(0, 1, 1), (1, 2, 2)]
    """
    n, k = neighbors.shape
    keys = [torch.empty(0, dtype=torch.int64, device=neighbors.device)]
    levels = list(keys)
    batch = max(1, _PAIRS_PER_BATCH // max(1, min(k**depth, n * k)))
    for start in range(0, len(roots) if depth else 0, batch):
        for r, key in enumerate(_levels(neighbors, roots[start : start + batch], depth), 1):
            keys.append(key)
            levels.append(torch.full_like(key, r))
    # Sorted by level as they come within a batch, but not over batches.
    level, order = torch.sort(torch.cat(levels), stable=True)
    key, by_key = torch.sort(torch.cat(keys)[order], stable=True)
    first = torch.ones(len(key), dtype=torch.bool, device=key.device)
    first[1:] = key[1:] != key[:-1]
    return key[first], level[by_key][first]


def _levels(neighbors: torch.Tensor, roots: torch.Tensor, depth: int) -> list[torch.Tensor]:
    """Edge keys ``low * n + high`` of each level, for one batch of roots."""
    n, k = neighbors.shape
    tree = torch.arange(len(roots), device=roots.device)
    node = roots
    standing = tree * n + node  # sorted (tree, node) pairs of all earlier levels
    found = []
    for _ in range(depth):
        child = neighbors[node].reshape(-1).long()
        parent = node.repeat_interleave(k)
        pair = tree.repeat_interleave(k) * n + child
        new = ~torch.isin(pair, standing)
        child, parent, pair = child[new], parent[new], pair[new]
        key = torch.minimum(parent, child) * n + torch.maximum(parent, child)
        found.append(torch.unique(key))
        level = torch.unique(pair)
        standing = torch.cat([standing, level])
        tree, node = level // n, level % n
    return found
