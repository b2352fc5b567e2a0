"""Neighbours and labels make the constrained graph (Table 1 of the paper), on the device.

The graph of `manifoldknn.graph.constrained`, pair for pair: the third rule as a sparse matrix of
logarithms in double precision, must-links as class numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.base.csr import narrowest
from manifoldknn.base.tensors import doubles, is_out_of_memory, release
from manifoldknn.device.graph.edges import Pairs, pruned_pairs, union_pairs
from manifoldknn.device.graph.tree import tree_pairs
from manifoldknn.device.segments import Runs
from manifoldknn.device.transfer import to_numpy
from manifoldknn.graph.constrained import FARTHEST, SIGMA_FACTOR, SIGMA_NEIGHBOR
from manifoldknn.graph.links import NO_LINKS, HandLinks
from manifoldknn.graph.spanning import Edges
from manifoldknn.graph.weights import ConstrainedGraph

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TorchGraph:
    """The constrained graph on a device, or several as one."""

    offsets: torch.Tensor  # int64: where the entries of each row start, and the end
    columns: torch.Tensor  # int32, ascending in a row
    log_weights: torch.Tensor  # of the third rule, float64; symmetric, without diagonal
    must_link: NDArray[np.intp]  # class numbers, -1 where unlabelled; see `ConstrainedGraph`

    @property
    def n_samples(self) -> int:
        """Number of nodes."""
        return len(self.must_link)

    @property
    def device(self) -> torch.device:
        """Where the graph is."""
        return self.columns.device

    def log_degrees(self) -> torch.Tensor:
        """Return log Σ_j W_ij; 0 for a node without edges, which nobody then divides by."""
        degrees = row_log_sums(self.offsets, self.log_weights)
        linked = np.flatnonzero(self.must_link >= 0)
        counts = np.bincount(self.must_link[linked], minlength=1)[self.must_link[linked]] - 1
        linked, counts = linked[counts > 0], counts[counts > 0]
        at = torch.as_tensor(linked, device=self.device)
        links = torch.log(torch.as_tensor(counts, dtype=torch.float64, device=self.device))
        degrees[at] = torch.logaddexp(degrees[at], links)
        return torch.where(torch.isneginf(degrees), 0.0, degrees)

    def to_numpy(self) -> ConstrainedGraph:
        """Return the graph of the CPU."""
        n = self.n_samples
        narrow = narrowest(max(n, len(self.columns)))
        places = (to_numpy(part).astype(narrow) for part in (self.columns, self.offsets))
        matrix = sparse.csr_array((to_numpy(self.log_weights), *places), shape=(n, n))
        matrix.has_sorted_indices = True
        return ConstrainedGraph(matrix, self.must_link)


@dataclass(frozen=True)
class TorchRecipe:
    """Everything a constrained graph is made of, but for the labels, on a device."""

    near: torch.Tensor  # int32, (n_samples, graph_neighbors), for the strengthened trees
    pairs: Pairs  # that carry the third rule
    sigma: float
    tree_depth: int
    theta: float
    links: HandLinks

    def to(self, device: torch.device) -> TorchRecipe:
        """Return the same on another device."""
        return replace(self, near=self.near.to(device), pairs=self.pairs.to(device))

    def edges_to_numpy(self) -> Edges:
        """Return what `selected_edges` returns."""
        low, high = (to_numpy(end.long()) for end in (self.pairs.low, self.pairs.high))
        return low, high, to_numpy(self.pairs.length.double())

    def constrained(
        self,
        *codes: NDArray[np.intp],
        n_classes: int = 0,
        hidden: Sequence[NDArray[np.intp]] | None = None,
    ) -> TorchGraph:
        """Apply Table 1 to class numbers, -1 where unlabelled.

        More than one array of these makes as many graphs one after the other, without an edge
        between them; `n_classes` is added to class numbers from one to the next. Links by hand that
        touch `hidden` rows, an array for every graph, are left out.
        """
        n = len(codes[0])
        low, high, length = self.pairs.low.long(), self.pairs.high.long(), self.pairs.length
        gaussian = (-0.5 * (length.double() / self.sigma).square()).clamp_(min=FARTHEST)
        key = low * n + high
        found = []
        for number, some in enumerate(codes):
            links = self.links if hidden is None else self.links.without(hidden[number])
            named = np.concatenate([links.must, links.cannot])
            names = torch.as_tensor(named[:, 0] * n + named[:, 1], device=key.device)
            by_hand = torch.isin(key, names)
            labeled = torch.as_tensor(some >= 0, device=key.device)
            log_weight = gaussian.clone()
            if len(key):
                roots = torch.nonzero(labeled).squeeze(1)
                tree, level = tree_pairs(self.near, roots, self.tree_depth)
                at = torch.searchsorted(key, tree).clamp_(max=len(key) - 1)
                present = key[at] == tree
                at, level = at[present], level[present]
                bound = torch.expm1(-log_weight[at]).clamp_(max=1.0)
                log_weight[at] += torch.log1p((self.theta * bound) ** level)
            free = torch.nonzero(~(by_hand | (labeled[low] & labeled[high]))).squeeze(1)
            found.append((low[free] + number * n, high[free] + number * n, log_weight[free]))
            # Weight 1, unless labels say so already.
            ends = (torch.as_tensor(e, device=key.device) for e in links.linked_beside(some))
            one, other = (end + number * n for end in ends)
            found.append((one, other, gaussian.new_zeros(len(one))))
        one, other, log_weight = (torch.cat(parts) for parts in zip(*found))
        every = [np.where(c >= 0, c + i * n_classes, -1) for i, c in enumerate(codes)]
        matrix = _both_ways(one, other, log_weight, n * len(codes))
        return TorchGraph(*matrix, np.concatenate(every))


def torch_graph(
    indices: torch.Tensor,
    distances: torch.Tensor,
    codes: NDArray[np.intp],
    *,
    X: torch.Tensor,
    graph: str,
    graph_neighbors: int,
    sigma: float | str,
    tree_depth: int,
    theta: float,
    metric: Any,
    links: HandLinks = NO_LINKS,
) -> tuple[TorchRecipe, TorchGraph]:
    """Build the constrained graph from neighbours that were found before, nearest first.

    At least ``candidate_count(...)`` of every sample; X is looked at only where separate parts have
    to be joined. Both results are on the device of the neighbours, or on the CPU if that has no
    double precision. About 60 bytes per candidate neighbour while edges are chosen, 50 per edge
    after: where the device has no such room, the same steps run on the CPU.
    """
    if graph == "full":
        raise ValueError(
            "graph='full' holds a weight for every pair of rows, which the GPU's steps do not: "
            "use graph='pruned' or 'union', or device='cpu'."
        )
    place = doubles(indices.device)

    def built(where: torch.device) -> tuple[TorchRecipe, TorchGraph]:
        near, away = indices.to(where), distances.to(where)
        width = float(sigma) if sigma != "auto" else torch_sigma(away)
        nearest = near[:, :graph_neighbors].to(torch.int32).contiguous()
        if graph == "union":
            pairs = union_pairs(nearest, away[:, :graph_neighbors])
        else:
            pairs = pruned_pairs(near, away, graph_neighbors, X=X.to(where), metric=metric)
        recipe = TorchRecipe(nearest, pairs, width, tree_depth, theta, links)
        return recipe, recipe.constrained(codes)

    try:
        return built(place)
    except RuntimeError as error:
        if not is_out_of_memory(error) or place.type == "cpu":
            raise
    # Outside the handler, which would keep what has filled the memory.
    logger.info("out of memory on %s: building the graph on the CPU", place)
    release(place)
    recipe, found = built(torch.device("cpu"))
    try:
        return recipe.to(place), replace(
            found,
            offsets=found.offsets.to(place),
            columns=found.columns.to(place),
            log_weights=found.log_weights.to(place),
        )
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return recipe, found


def row_log_sums(offsets: torch.Tensor, logs: torch.Tensor) -> torch.Tensor:
    """Return log Σ exp over the entries of every row, -inf where a row has none."""
    out = torch.full((len(offsets) - 1,), -torch.inf, dtype=torch.float64, device=logs.device)
    filled = torch.nonzero(offsets.diff()).squeeze(1)
    if len(filled):
        runs = Runs(torch.cat([offsets[filled], offsets[-1:]]))
        out[filled] = runs.log_sum(logs[:, None])[:, 0]
    return out


def torch_sigma(distances: torch.Tensor) -> float:
    """Return σ = 0.75·√(median_i(d_i,7² - d_i,1²)), as `automatic_sigma` does."""
    seventh = distances[:, min(SIGMA_NEIGHBOR, distances.shape[1]) - 1].double()
    first = distances[:, 0].double()
    spread = (seventh - first) * (seventh + first)  # a² - b² would cancel
    typical = _median(spread)
    if not typical > 0:
        positive = spread[spread > 0]
        if not len(positive):
            positive = distances[distances > 0].double().square()
        typical = _median(positive) if len(positive) else 1.0
    return SIGMA_FACTOR * float(np.sqrt(typical))


def _median(values: torch.Tensor) -> float:
    """Return the median; unlike PyTorch's, the mean of both middle values."""
    ordered = torch.sort(values)[0]
    n = len(ordered)
    return float(ordered[[(n - 1) // 2, n // 2]].mean())


def _both_ways(
    low: torch.Tensor, high: torch.Tensor, log_weight: torch.Tensor, n: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return offsets, columns and weights of a symmetric matrix, row by row."""
    bits = n.bit_length()
    key, order = torch.sort(torch.cat([(low << bits) | high, (high << bits) | low]))
    log_weight = log_weight[order % max(1, len(low))]
    del order
    columns = (key & ((1 << bits) - 1)).to(torch.int32)
    offsets = torch.searchsorted(key >> bits, torch.arange(n + 1, device=key.device))
    return offsets, columns, log_weight
