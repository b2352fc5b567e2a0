"""The heavy kernels of the graph on a device; what they answer is said in `graph.kernels`."""

import logging
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manifoldknn.base import Floats, Ints
from manifoldknn.base.distances import EUCLIDEAN, euclidean_pairs
from manifoldknn.device.graph.spanning import spanning_forest
from manifoldknn.device.kernels import Runs, TorchKernels
from manifoldknn.graph.kernels import GRAPH, GraphKernels
from manifoldknn.graph.partsearch import Measure, PartSearch
from manifoldknn.search.neighbors import Neighbors

_PRODUCTS = 1 << 26  # products at a time
_POINTS = 1 << 12  # that look at everyone at a time
_VALUES = 1 << 27  # values of X that are widened or moved at a time
logger = logging.getLogger(__name__)

_COMPARED = 1 << 27  # entries of lists that are looked into at a time
_TILE = 1 << 25  # distances at a time
_COLUMNS = 1 << 24  # values of X that are widened at a time


class TorchSearch(PartSearch):
    """Search by products of Euclidean rows, in the precision of X."""

    def __init__(self, X: Any, *args: Any, **settings: Any) -> None:
        super().__init__(X, *args, **settings)
        self._step = _POINTS

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.kernels.array(self._starts))

    @cached_property
    def _centres(self) -> Tensor:
        step = max(1, _VALUES // len(self.X))
        columns = range(0, self.X.shape[1], step)
        sums = [self._runs.sum(self.X[:, at : at + step][self._order].double()) for at in columns]
        return torch.cat(sums, dim=1) / self._runs.offsets.diff()[:, None]

    @cached_property
    def _middle(self) -> Tensor:
        return self._centres.T @ (self._runs.offsets.diff().double() / len(self.X))

    def _rows_at_once(self, n_points: int) -> int:
        return max(1, min(_PRODUCTS // n_points, _VALUES // self.X.shape[1]))

    def _distances_of(self, points: Any, part: int | None = None) -> Measure:
        # Near the origin, products are accurate where it matters: among the rows searched.
        origin = (self._middle if part is None else self._centres[part]).to(self.X.dtype)
        ours = points - origin

        def measure(rows: Tensor) -> Tensor:
            theirs = self.X[rows] - origin
            return theirs.square().sum(1) - 2.0 * (ours @ theirs.T)

        return measure

    def rows(self, chosen: Any) -> Any:
        return self.X[chosen]

    def centres(self, chosen: Any) -> Any:
        """Return the means of some parts."""
        return self._centres[chosen].to(self.X.dtype)

    def stand_ins(self) -> Any:
        """Return the sample of every part that is nearest to its mean, the first of equal ones."""
        owner, step = self.parts[self._order], max(1, _VALUES // self.X.shape[1])
        away = torch.cat(
            [
                (self.X[rows] - self.centres(self.parts[rows])).square().sum(1)
                for rows in self._order.split(step)
            ]
        )
        least = -self._runs.max(-away)
        chosen = torch.where(away == least[owner], self._order, len(owner))
        first = torch.full_like(self._runs.offsets[1:], len(owner))
        return first.scatter_reduce_(0, owner, chosen, "amin")

    def nearest_parts(self, count: int) -> Any:
        """Return the parts with the nearest means."""
        found, n_parts = [], len(self.sizes)
        for some in self.kernels.arange(n_parts).split(max(1, _PRODUCTS // n_parts)):
            away = torch.cdist(
                self._centres[some], self._centres, compute_mode="use_mm_for_euclid_dist"
            )
            away.scatter_(1, some[:, None], torch.inf)
            found.append(torch.topk(away, count, dim=1, largest=False)[1])
        return torch.cat(found)


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
        found: list[tuple[Tensor, ...]] = []
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

    def distance_blocks(self, X: Any, rows: Ints, metric: Any) -> Iterator[tuple[Ints, Any]]:
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

    def pair_distances(self, X: Any, one: Ints, other: Ints, metric: Any) -> Floats:
        """Return the Euclidean distance of each pair of rows, measured on the processor."""
        del metric
        needed, place = np.unique(np.concatenate([one, other]), return_inverse=True)
        values = self.host(X[self.array(needed)])
        return euclidean_pairs(values, values, place[: len(one)], place[len(one) :])

    def part_search(self, X: Any, parts: Ints, metric: Any, n_jobs: int | None) -> TorchSearch:
        del n_jobs
        return TorchSearch(X, parts, metric=metric, n_jobs=1, kernels=self)
