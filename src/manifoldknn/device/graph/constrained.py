"""The constrained graph on a device, made by `manifoldknn.graph.constrained`.

The third rule is a sparse matrix of logarithms in double precision, must-links are class numbers.
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
from manifoldknn.device.graph.kernels import TorchGraphKernels
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.device.transfer import to_numpy
from manifoldknn.graph import weights
from manifoldknn.graph.constrained import automatic_sigma, selected_edges, weighted_edges
from manifoldknn.graph.links import NO_LINKS, HandLinks
from manifoldknn.graph.spanning import Edges
from manifoldknn.graph.tree import tree_edges
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.search.neighbors import Neighbors

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
        found: torch.Tensor = weights.log_degrees(
            self.offsets, self.log_weights, self.must_link, TorchKernels(self.device)
        )
        return found

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
    edges: tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # from `selected_edges`, int32 ends
    sigma: float
    tree_depth: int
    theta: float
    links: HandLinks

    def to(self, device: torch.device) -> TorchRecipe:
        """Return the same on another device."""
        low, high, length = (part.to(device) for part in self.edges)
        return replace(self, near=self.near.to(device), edges=(low, high, length))

    def edges_to_numpy(self) -> Edges:
        """Return what `selected_edges` returns."""
        low, high, length = self.edges
        return to_numpy(low.long()), to_numpy(high.long()), to_numpy(length)

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
        n, kernels, found = len(codes[0]), TorchKernels(self.near.device), []
        for number, some in enumerate(codes):
            roots = kernels.array(np.flatnonzero(some >= 0))
            one, other, log_weight = weighted_edges(
                self.edges,  # type: ignore[arg-type]  # tensors, with kernels that take them
                some,
                self.sigma,
                tree=tree_edges(self.near, roots, self.tree_depth, kernels),
                theta=self.theta,
                links=self.links if hidden is None else self.links.without(hidden[number]),
                kernels=kernels,
            )
            found.append((one + number * n, other + number * n, log_weight))
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
        near, away = indices.to(where), distances.to(where).double()
        kernels, found = TorchGraphKernels(where), Neighbors(near, away)  # type: ignore[arg-type]
        width = float(sigma) if sigma != "auto" else automatic_sigma(found, kernels)
        pairs = {"graph": graph, "graph_neighbors": graph_neighbors, "metric": metric}
        edges: Any = selected_edges(X.to(where), found, kernels=kernels, **pairs)
        nearest = near[:, :graph_neighbors].to(torch.int32).contiguous()
        recipe = TorchRecipe(nearest, edges, width, tree_depth, theta, links)
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
    found: torch.Tensor = weights.row_log_sums(offsets, logs, TorchKernels(logs.device))
    return found


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
