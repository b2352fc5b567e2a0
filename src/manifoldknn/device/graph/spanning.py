"""The minimum spanning forest of very many edges, by parallel rounds (Borůvka).

In every round each part takes its shortest edge to another part; parts that took
edges to each other become one. Edges are given in their order of preference, so
that "shortest" is the smallest position: minima of integers come out the same in
whatever order a processor looks at them.
"""

import torch
from torch import Tensor

_AT_ONCE = 1 << 26  # edges whose numbers are widened to 64 bits at a time


def spanning_forest(one: Tensor, other: Tensor, n_samples: int) -> tuple[Tensor, Tensor]:
    """Return which edges are in the forest that takes earlier ones first, and each node's part.

    Parts are numbered in the order of their first nodes. Cost O(m) per round for the m edges still
    between different parts, and at most log₂ n rounds; memory is 40 bytes per edge.

    >>> import torch
    >>> from manifoldknn.device.graph.spanning import spanning_forest
    >>> one, other = torch.tensor([[0, 1, 0], [1, 2, 2]], dtype=torch.int32)
    >>> in_forest, part = spanning_forest(one, other, 4)
    >>> in_forest.tolist(), part.tolist()
    ([True, True, False], [0, 0, 0, 1])
    """
    m, device = len(one), one.device
    in_forest = torch.zeros(m, dtype=torch.bool, device=device)
    nodes = torch.arange(n_samples, device=device)
    part = nodes.to(torch.int32)
    a, b = one, other
    place = torch.arange(m, dtype=torch.int32, device=device)
    while len(a):
        best = _first_edges(a, b, place, n_samples, m)
        root = torch.nonzero(best < m).squeeze(1)
        edge = best[root].long()
        in_forest[edge] = True
        ends = part[one[edge].long()].long() + part[other[edge].long()].long()
        parent = _roots(nodes, root, ends - root)
        part = parent[part.long()]
        a, b, place = _between_parts(parent, a, b, place)
    return in_forest, _renumbered(part.long())


def connected_parts(one: Tensor, other: Tensor, n_samples: int) -> Tensor:
    """Return the number of the connected part of each node, in the order of their first nodes."""
    return spanning_forest(one, other, n_samples)[1]


def _first_edges(a: Tensor, b: Tensor, place: Tensor, n_samples: int, m: int) -> Tensor:
    """Return the first edge that leaves each part, m where there is none."""
    best = torch.full((n_samples,), m, dtype=torch.int32, device=a.device)
    for start in range(0, len(a), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        best.scatter_reduce_(0, a[here].long(), place[here], "amin")
        best.scatter_reduce_(0, b[here].long(), place[here], "amin")
    return best


def _roots(nodes: Tensor, root: Tensor, neighbor: Tensor) -> Tensor:
    """Return where each part ends up when every part follows the neighbour it has chosen."""
    parent = nodes.clone()
    parent[root] = neighbor
    # Chains end in two parts that have chosen the same edge: the smaller number stays.
    parent = torch.where((parent[parent] == nodes) & (nodes < parent), nodes, parent)
    while True:
        further = parent[parent]
        if torch.equal(further, parent):
            return parent.to(torch.int32)
        parent = further


def _between_parts(parent: Tensor, a: Tensor, b: Tensor, place: Tensor) -> tuple[Tensor, ...]:
    """Return the edges whose ends are in different parts, with the numbers of those parts."""
    kept: list[tuple[Tensor, ...]] = []
    for start in range(0, len(a), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        new_a, new_b = parent[a[here].long()], parent[b[here].long()]
        at = torch.nonzero(new_a != new_b).squeeze(1)
        kept.append((new_a[at], new_b[at], place[here][at]))
    if len(kept) == 1:
        return kept[0]
    return tuple(torch.cat(pieces) for pieces in zip(*kept))


def _renumbered(part: Tensor) -> Tensor:
    """Give parts the numbers 0, 1, … in the order of their first nodes."""
    nodes = torch.arange(len(part), device=part.device)
    first = torch.full_like(nodes, len(part)).scatter_reduce_(0, part, nodes, "amin")[part]
    return (torch.cumsum((first == nodes).long(), 0) - 1)[first]
