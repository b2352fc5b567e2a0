"""Which pairs of samples carry an edge, chosen on the device.

The same pairs as in `manifoldknn.graph.edges`, from the same lists of neighbours. Whether
two samples list each other is seen by looking into the other's list, which costs
nothing to speak of on a graphics processor; no sorting of both directions is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from manifoldknn.device.graph.joining import joined_parts
from manifoldknn.device.graph.spanning import spanning_forest
from manifoldknn.graph.edges import ALWAYS_KEPT

_COMPARED = 1 << 27  # entries of lists that are looked into at a time


@dataclass(frozen=True)
class Pairs:
    """Undirected edges on the device, ``low < high``, sorted by ``(low, high)``."""

    low: torch.Tensor  # int32
    high: torch.Tensor  # int32
    length: torch.Tensor

    def chosen(self, which: torch.Tensor) -> Pairs:
        """Return some of the edges, by mask or places."""
        return Pairs(self.low[which], self.high[which], self.length[which])

    def to(self, device: torch.device) -> Pairs:
        """Return the same edges on another device."""
        return Pairs(self.low.to(device), self.high.to(device), self.length.to(device))


def union_pairs(indices: torch.Tensor, distances: torch.Tensor) -> Pairs:
    """Return the pairs of which one is among the other's neighbours."""
    return _candidates(indices, distances, 0)[0]


def pruned_pairs(
    indices: torch.Tensor,
    distances: torch.Tensor,
    n_neighbors: int,
    *,
    X: torch.Tensor,
    metric: Any,
) -> Pairs:
    """Return the pairs of the pruned graph: mutual neighbours plus a spanning tree.

    The edges that `manifoldknn.graph.edges.pruned_edges` selects among as many candidates of every
    sample (30, or `n_neighbors` if that is more); X is looked at to join separate parts. Cost
    O(n·k²) comparisons and two sorts of at most n·k edges; memory is about 60 bytes per candidate.
    """
    pairs, keep = _candidates(indices, distances, n_neighbors)
    # Sorted by (low, high) before: equal lengths stay in that order.
    order = torch.sort(pairs.length, stable=True)[1]
    in_forest, parts = spanning_forest(pairs.low[order], pairs.high[order], len(indices))
    keep[order[in_forest]] = True
    del order, in_forest
    pairs = pairs.chosen(torch.nonzero(keep).squeeze(1))
    if int(parts.max()) == 0:
        return pairs
    more = joined_parts(X, parts, metric)
    device, dtype = pairs.low.device, torch.float64
    low, high = (
        torch.cat([ours, torch.as_tensor(new, dtype=torch.int32, device=device)])
        for ours, new in ((pairs.low, more[0]), (pairs.high, more[1]))
    )
    length = torch.cat([pairs.length.to(dtype), torch.as_tensor(more[2], device=device)])
    return _sorted(Pairs(low, high, length), len(indices))[0]


def _candidates(
    indices: torch.Tensor, distances: torch.Tensor, n_neighbors: int
) -> tuple[Pairs, torch.Tensor]:
    """Return all pairs in which one lists the other, and which are kept whatever the tree says."""
    n, k = indices.shape
    lists = indices.to(torch.int32)
    rank = torch.arange(k, dtype=torch.int16, device=indices.device)
    found: list[tuple[torch.Tensor, ...]] = []
    step = max(1, _COMPARED // (k * k))
    for start in range(0, n, step):
        near = lists[start : start + step]
        row = torch.arange(start, start + len(near), dtype=torch.int32, device=near.device)
        listed = lists[near.reshape(-1)].reshape(len(near), k, k) == row[:, None, None]
        there = torch.where(listed, rank, k).amin(2)  # k if the other does not list this row
        here = rank.expand_as(there)
        # A pair in which each lists the other comes from its lower end.
        owned = (row[:, None] < near) | (there == k)
        r, c = torch.nonzero(owned, as_tuple=True)
        ends = row[r], near[r, c]
        here, there = here[r, c], there[r, c]
        keep = torch.maximum(here, there) < n_neighbors
        keep |= torch.minimum(here, there) < ALWAYS_KEPT
        length = distances[start : start + step][r, c]
        found.append((torch.minimum(*ends), torch.maximum(*ends), length, keep))
    low, high, length, keep = (torch.cat(pieces) for pieces in zip(*found))
    del found
    pairs, order = _sorted(Pairs(low, high, length), n)
    return pairs, keep[order]


def _sorted(pairs: Pairs, n: int) -> tuple[Pairs, torch.Tensor]:
    """Sort pairs by (low, high); return the order, too."""
    key = pairs.low.long()
    key <<= n.bit_length()
    key |= pairs.high
    order = torch.sort(key)[1]
    return pairs.chosen(order), order
