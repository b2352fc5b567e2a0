"""Neighbours and labels make the constrained graph (Table 1 of the paper), on the device.

The graph of `manifoldknn.graph`, pair for pair: the third rule as a sparse matrix of
logarithms in double precision, must-links as class numbers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from manifoldknn.gpu.edges import Pairs, pruned_pairs, union_pairs
from manifoldknn.gpu.segments import Runs
from manifoldknn.gpu.tensors import doubles, is_out_of_memory, release
from manifoldknn.gpu.transfer import to_numpy
from manifoldknn.gpu.tree import tree_pairs
from manifoldknn.graph import FARTHEST, SIGMA_FACTOR, SIGMA_NEIGHBOR, ConstrainedGraph
from manifoldknn.spanning import Edges

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TorchGraph:
    """The constrained graph on a device.

    Attributes
    ----------
    offsets : Tensor of int64, shape (n_samples + 1,)
        Where the entries of each row start.
    columns : Tensor of int32, shape (n_entries,)
        Column of each entry, ascending in a row.
    log_weights : Tensor of float64, shape (n_entries,)
        Logarithm of each weight of the third rule; symmetric, without diagonal.
    must_link : ndarray of shape (n_samples,)
        Class number of labelled samples, -1 elsewhere; see `ConstrainedGraph`.
    pairs : Pairs
        The pairs that were selected, those between labelled samples included.
    sigma : float
        The kernel width.
    """

    offsets: torch.Tensor
    columns: torch.Tensor
    log_weights: torch.Tensor
    must_link: NDArray[np.intp]
    pairs: Pairs
    sigma: float

    @property
    def n_samples(self) -> int:
        """Number of nodes."""
        return len(self.must_link)

    @property
    def device(self) -> torch.device:
        """Where the graph is."""
        return self.columns.device

    @property
    def rows(self) -> torch.Tensor:
        """Row of each entry."""
        return torch.repeat_interleave(self.offsets.diff())

    def log_degrees(self) -> torch.Tensor:
        """Return log Σ_j W_ij; 0 for a node without edges, which nobody then divides by."""
        degrees = torch.full((self.n_samples,), -torch.inf, dtype=torch.float64)
        degrees = degrees.to(self.device)
        filled = torch.nonzero(self.offsets.diff()).squeeze(1)
        if len(filled):
            runs = Runs(torch.cat([self.offsets[filled], self.offsets[-1:]]))
            largest = runs.max(self.log_weights[:, None])[:, 0]
            place = torch.repeat_interleave(runs.offsets.diff())
            sums = runs.sum(torch.exp(self.log_weights - largest[place])[:, None])[:, 0]
            degrees[filled] = largest + torch.log(sums)
        linked = np.flatnonzero(self.must_link >= 0)
        counts = np.bincount(self.must_link[linked], minlength=1)[self.must_link[linked]] - 1
        linked, counts = linked[counts > 0], counts[counts > 0]
        at = torch.as_tensor(linked, device=self.device)
        links = torch.log(torch.as_tensor(counts, dtype=torch.float64, device=self.device))
        degrees[at] = torch.logaddexp(degrees[at], links)
        return torch.where(torch.isneginf(degrees), 0.0, degrees)

    def to(self, device: torch.device) -> TorchGraph:
        """Return the same graph on another device."""
        return replace(
            self,
            offsets=self.offsets.to(device),
            columns=self.columns.to(device),
            log_weights=self.log_weights.to(device),
            pairs=self.pairs.to(device),
        )

    def to_numpy(self) -> tuple[Edges, ConstrainedGraph]:
        """Return what `selected_edges` and `build_graph` return."""
        return self.edges_to_numpy(), self.graph_to_numpy()

    def edges_to_numpy(self) -> Edges:
        """Return what `selected_edges` returns."""
        low, high = (to_numpy(end.long()) for end in (self.pairs.low, self.pairs.high))
        return low, high, to_numpy(self.pairs.length.double())

    def graph_to_numpy(self) -> ConstrainedGraph:
        """Return what `build_graph` returns."""
        n = self.n_samples
        matrix = sparse.csr_array(
            (
                to_numpy(self.log_weights),
                to_numpy(self.columns),
                to_numpy(self.offsets),
            ),
            shape=(n, n),
        )
        matrix.has_sorted_indices = True
        return ConstrainedGraph(matrix, self.must_link)


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
) -> TorchGraph:
    """Build the constrained graph from neighbours that were found before.

    Parameters
    ----------
    indices, distances : Tensor of shape (n_samples, n_candidates)
        At least ``candidate_count(...)`` neighbours of every sample, nearest first.
    codes : ndarray of shape (n_samples,)
        Class numbers, -1 where unlabelled.
    X : Tensor of shape (n_samples, n_features)
        The samples, looked at only where separate parts have to be joined.
    graph : {"pruned", "union"}
        Which pairs are linked.
    graph_neighbors, sigma, tree_depth, theta, metric
        As in `ManifoldKNNClassifier`.

    Returns
    -------
    TorchGraph
        On the device of the neighbours; on the CPU if that has no double precision.

    Notes
    -----
    About 60 bytes per candidate neighbour while edges are chosen, 50 per edge after. Where
    the device has no such room, the same steps run on the CPU.
    """
    if graph == "full":
        raise ValueError(
            "graph='full' holds a weight for every pair of rows, which the GPU's steps do not: "
            "use graph='pruned' or 'union', or device='cpu'."
        )
    place = doubles(indices.device)
    settings = graph, graph_neighbors, sigma, tree_depth, theta, metric
    try:
        return _built(indices.to(place), distances.to(place), codes, X.to(place), *settings)
    except RuntimeError as error:
        if not is_out_of_memory(error) or place.type == "cpu":
            raise
    # Outside the handler, which would keep what has filled the memory.
    logger.info("out of memory on %s: building the graph on the CPU", place)
    release(place)
    built = _built(indices.cpu(), distances.cpu(), codes, X.cpu(), *settings)
    try:
        return built.to(place)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return built


def _built(
    indices: torch.Tensor,
    distances: torch.Tensor,
    codes: NDArray[np.intp],
    X: torch.Tensor,
    graph: str,
    graph_neighbors: int,
    sigma: float | str,
    tree_depth: int,
    theta: float,
    metric: Any,
) -> TorchGraph:
    """Build the graph where the neighbours are."""
    width = float(sigma) if sigma != "auto" else torch_sigma(distances)
    near = indices[:, :graph_neighbors]
    if graph == "union":
        pairs = union_pairs(near, distances[:, :graph_neighbors])
    else:
        pairs = pruned_pairs(indices, distances, graph_neighbors, X=X, metric=metric)
    roots = torch.as_tensor(np.flatnonzero(codes >= 0), device=indices.device)
    tree = tree_pairs(near, roots, tree_depth)
    offsets, columns, log_weights = _third_rule(pairs, codes, width, tree, theta)
    return TorchGraph(offsets, columns, log_weights, codes, pairs, width)


def torch_sigma(distances: torch.Tensor) -> float:
    """Return σ = 0.75·√(median_i(d_i,7² - d_i,1²)), as `automatic_sigma` does.

    Parameters
    ----------
    distances : Tensor of shape (n_samples, n_neighbors)
        Distances of every sample's neighbours, nearest first.

    Returns
    -------
    float
        The kernel width.
    """
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


def _third_rule(
    pairs: Pairs,
    codes: NDArray[np.intp],
    sigma: float,
    tree: tuple[torch.Tensor, torch.Tensor],
    theta: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the weights of pairs that no constraint settles, both ways, row by row."""
    n, device = len(codes), pairs.low.device
    labeled = torch.as_tensor(codes >= 0, device=device)
    pairs = pairs.chosen(~(labeled[pairs.low] & labeled[pairs.high]))
    low, high = pairs.low.long(), pairs.high.long()
    log_weight = (-0.5 * (pairs.length.double() / sigma).square()).clamp_(min=FARTHEST)
    if len(low):
        key = low * n + high
        at = torch.searchsorted(key, tree[0]).clamp_(max=len(key) - 1)
        present = key[at] == tree[0]
        at, level = at[present], tree[1][present]
        del key
        bound = torch.expm1(-log_weight[at]).clamp_(max=1.0)
        log_weight[at] += torch.log1p((theta * bound) ** level)
    key = torch.cat([(low << n.bit_length()) | high, (high << n.bit_length()) | low])
    key, order = torch.sort(key)
    log_weight = log_weight[order % max(1, len(low))]
    del order
    columns = (key & ((1 << n.bit_length()) - 1)).to(torch.int32)
    rows = key >> n.bit_length()
    offsets = torch.searchsorted(rows, torch.arange(n + 1, device=device))
    return offsets, columns, log_weight
