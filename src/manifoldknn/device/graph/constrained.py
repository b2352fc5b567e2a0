"""The constrained graph on a device, made by `manifoldknn.graph.constrained`.

The third rule is a sparse matrix of logarithms in double precision, must-links are class numbers.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from manifoldknn.base import Ints
from manifoldknn.base.csr import narrowest
from manifoldknn.base.tensors import doubles, is_out_of_memory, release
from manifoldknn.device.graph.kernels import TorchGraphKernels
from manifoldknn.device.kernels import TorchKernels, to_numpy
from manifoldknn.graph import weights
from manifoldknn.graph.constrained import GraphRecipe, graph_recipe
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.search.neighbors import Neighbors

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TorchGraph:
    """The constrained graph on a device, or several as one."""

    offsets: Tensor  # int64: where the entries of each row start, and the end
    columns: Tensor  # int32, ascending in a row
    log_weights: Tensor  # of the third rule, float64; symmetric, without diagonal
    must_link: Ints  # class numbers, -1 where unlabelled; see `ConstrainedGraph`

    @property
    def n_samples(self) -> int:
        """Number of nodes."""
        return len(self.must_link)

    @property
    def device(self) -> torch.device:
        """Where the graph is."""
        return self.columns.device

    def log_degrees(self) -> Tensor:
        """Return log Σ_j W_ij; 0 for a node without edges, which nobody then divides by."""
        return weights.log_degrees(
            self.offsets, self.log_weights, self.must_link, TorchKernels(self.device)
        )

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
    """A recipe of tensors on a device, without X; numbers of rows are in 32 bits."""

    recipe: GraphRecipe

    def to(self, device: torch.device) -> "TorchRecipe":
        """Return the same on another device."""
        edges: Any = tuple(part.to(device) for part in self.recipe.edges)
        nearest = self.recipe.nearest.to(device)
        return TorchRecipe(replace(self.recipe, nearest=nearest, edges=edges))

    def to_numpy(self, X: Any, nearest: Any) -> GraphRecipe:
        """Return the recipe of the CPU, which has samples and their neighbours already."""
        low, high, length = self.recipe.edges
        edges = to_numpy(low.long()), to_numpy(high.long()), to_numpy(length)
        return replace(self.recipe, X=X, nearest=nearest, edges=edges)

    def constrained(
        self, *codes: Ints, n_classes: int = 0, hidden: Sequence[Ints] | None = None
    ) -> TorchGraph:
        """Apply Table 1 to class numbers, -1 where unlabelled.

        More than one array of these makes as many graphs one after the other, without an edge
        between them; `n_classes` is added to class numbers from one to the next. Links by hand that
        touch `hidden` rows, an array for every graph, are left out.
        """
        n, kernels, found = len(codes[0]), TorchKernels(self.recipe.nearest.device), []
        for number, some in enumerate(codes):
            recipe = self.recipe if hidden is None else self.recipe.without_links_of(hidden[number])
            one, other, log_weight = recipe.weighted_edges(some, kernels)
            found.append((one + number * n, other + number * n, log_weight))
        one, other, log_weight = (torch.cat(parts) for parts in zip(*found))
        every = [np.where(c >= 0, c + i * n_classes, -1) for i, c in enumerate(codes)]
        matrix = _both_ways(one, other, log_weight, n * len(codes))
        return TorchGraph(*matrix, np.concatenate(every))


def torch_graph(
    indices: Tensor, distances: Tensor, codes: Ints, *, X: Tensor, graph: str, **settings: Any
) -> tuple[TorchRecipe, TorchGraph]:
    """Build the constrained graph from neighbours that were found before, nearest first.

    Settings are those of `graph_recipe`. X is looked at only where separate parts have to be
    joined. Both results are on the device of the neighbours, or on the CPU if that has no double
    precision. About 60 bytes per candidate neighbour while edges are chosen, 50 per edge after:
    where the device has no such room, the same steps run on the CPU.
    """
    if graph == "full":
        raise ValueError(
            "graph='full' holds a weight for every pair of rows, which the GPU's steps do not: "
            "use graph='pruned' or 'union', or device='cpu'."
        )
    place = doubles(indices.device)

    def built(where: torch.device) -> tuple[TorchRecipe, TorchGraph]:
        near, away = indices.to(where), distances.to(where).double()
        found = Neighbors(near, away)  # type: ignore[arg-type]  # tensors, for kernels of theirs
        kernels = TorchGraphKernels(where)
        made = graph_recipe(X.to(where), found, graph=graph, kernels=kernels, **settings)
        nearest = made.nearest.to(torch.int32).contiguous()
        recipe = TorchRecipe(replace(made, X=None, nearest=nearest))
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


def _both_ways(
    low: Tensor, high: Tensor, log_weight: Tensor, n: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return offsets, columns and weights of a symmetric matrix, row by row."""
    bits = n.bit_length()
    key, order = torch.sort(torch.cat([(low << bits) | high, (high << bits) | low]))
    log_weight = log_weight[order % max(1, len(low))]
    del order
    columns = (key & ((1 << bits) - 1)).to(torch.int32)
    offsets = torch.searchsorted(key >> bits, torch.arange(n + 1, device=key.device))
    return offsets, columns, log_weight
