"""The heavy kernels of the graph on a device; what they answer is said in `graph.kernels`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manifoldknn.base.distances import EUCLIDEAN, euclidean_pairs
from manifoldknn.device.graph.partsearch import TorchSearch
from manifoldknn.device.graph.spanning import spanning_forest
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.search.neighbors import Neighbors

logger = logging.getLogger(__name__)

_COMPARED = 1 << 27  # entries of lists that are looked into at a time
_TILE = 1 << 25  # distances at a time
_COLUMNS = 1 << 24  # values of X that are widened at a time


class TorchGraphKernels(TorchKernels, GraphKernels):
    """Kernels of the graph by PyTorch."""

    def ranked_pairs(self, neighbors: Neighbors) -> tuple[Any, ...]:
        """Return pairs of which one lists the other, in 32 bits: low, high, length, both ranks.

        Whether two samples list each other is seen by looking into the other's list: O(n·k²), which
        costs nothing to speak of on a graphics processor, and one sort.
        """
        lists = self.array(neighbors.indices).to(torch.int32)
        distances = self.array(neighbors.distances)
        n, k = lists.shape
        rank = torch.arange(k, dtype=torch.int16, device=self.device)
        found: list[tuple[torch.Tensor, ...]] = []
        step = max(1, _COMPARED // (k * k))
        for start in range(0, n, step):
            near = lists[start : start + step]
            row = torch.arange(start, start + len(near), dtype=torch.int32, device=self.device)
            listed = lists[near.reshape(-1)].reshape(len(near), k, k) == row[:, None, None]
            there = torch.where(listed, rank, k).amin(2)  # k if the other does not list this row
            # A pair in which each lists the other comes from its lower end.
            r, c = torch.nonzero((row[:, None] < near) | (there == k), as_tuple=True)
            here, there, one, other = rank[c], there[r, c], row[r], near[r, c]
            swap = one > other
            found.append(
                (
                    torch.minimum(one, other),
                    torch.maximum(one, other),
                    distances[start : start + step][r, c].double(),
                    torch.where(swap, there, here),
                    torch.where(swap, here, there),
                )
            )
        pairs = [torch.cat(pieces) for pieces in zip(*found)]
        del found
        key = pairs[0].long()
        key <<= n.bit_length()
        key |= pairs[1]
        order = torch.sort(key)[1]
        del key
        for place, values in enumerate(pairs):
            pairs[place] = values[order]
        return tuple(pairs)

    def spanning_forest(self, low: Any, high: Any, length: Any, n: int) -> tuple[Any, Any]:
        """Tell which edges belong to the minimum spanning forest, and the part of each node."""
        # Sorted by (low, high) before: equal lengths stay in that order.
        order = torch.sort(length, stable=True)[1]
        in_forest, parts = spanning_forest(low[order], high[order], n)
        return self.mask(order[in_forest], len(low)), parts

    def measuring(self, X: Any, metric: Any) -> tuple[Any, GraphKernels]:
        """Return samples and kernels of the device, of the CPU for other than Euclidean lengths."""
        if isinstance(metric, str) and metric in EUCLIDEAN:
            return X, self
        logger.info("separate parts are joined on the CPU (metric %r)", metric)
        return X.cpu().numpy(), GRAPH

    def distance_blocks(
        self, X: Any, rows: NDArray[np.intp], metric: Any
    ) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield some of the rows and their distances to every sample, block by block."""
        del metric
        n, n_features = X.shape
        centre = X.mean(0, dtype=torch.float64)
        columns = max(1, _COLUMNS // n_features)
        for start in range(0, len(rows), max(1, _TILE // n)):
            some = rows[start : start + max(1, _TILE // n)]
            query = X[self.array(some)].double() - centre
            away = torch.empty((len(some), n), dtype=torch.float64, device=self.device)
            for at in range(0, n, columns):
                others = X[at : at + columns].double() - centre
                away[:, at : at + columns] = torch.cdist(
                    query, others, compute_mode="use_mm_for_euclid_dist"
                )
            yield some, away

    def pair_distances(
        self, X: Any, one: NDArray[np.intp], other: NDArray[np.intp], metric: Any
    ) -> NDArray[np.float64]:
        """Return the Euclidean distance of each pair of rows, measured on the processor."""
        del metric
        needed, place = np.unique(np.concatenate([one, other]), return_inverse=True)
        values = self.host(X[self.array(needed)])
        return euclidean_pairs(values, values, place[: len(one)], place[len(one) :])

    def part_search(
        self, X: Any, parts: NDArray[np.intp], metric: Any, n_jobs: int | None
    ) -> TorchSearch:
        """Return a search over the members of parts."""
        del n_jobs
        return TorchSearch(X, parts, metric=metric, n_jobs=1, kernels=self)
