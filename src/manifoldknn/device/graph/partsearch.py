"""Which member of a part is nearest to some row, on a device: measured by matrix products."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from manifoldknn.device.segments import Runs
from manifoldknn.graph.partsearch import Measure, PartSearch

_TILE = 1 << 26  # products at a time
_POINTS = 1 << 12  # that look at everyone at a time
_VALUES = 1 << 27  # values of X that are widened or moved at a time


class TorchSearch(PartSearch):
    """Search by products of Euclidean rows, in the precision of X."""

    def __init__(self, X: Any, *args: Any, **settings: Any) -> None:
        super().__init__(X, *args, **settings)
        self._step = _POINTS

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.kernels.array(self._starts))

    @cached_property
    def _centres(self) -> torch.Tensor:
        step = max(1, _VALUES // len(self.X))
        columns = range(0, self.X.shape[1], step)
        sums = [self._runs.sum(self.X[:, at : at + step][self._order].double()) for at in columns]
        return torch.cat(sums, dim=1) / self._runs.offsets.diff()[:, None]

    @cached_property
    def _middle(self) -> torch.Tensor:
        return self._centres.T @ (self._runs.offsets.diff().double() / len(self.X))

    def _rows_at_once(self, n_points: int) -> int:
        return max(1, min(_TILE // n_points, _VALUES // self.X.shape[1]))

    def _distances_of(self, points: Any, part: int | None = None) -> Measure:
        # Near the origin, products are accurate where it matters: among the rows searched.
        origin = (self._middle if part is None else self._centres[part]).to(self.X.dtype)
        ours = points - origin

        def measure(rows: torch.Tensor) -> torch.Tensor:
            theirs = self.X[rows] - origin
            return theirs.square().sum(1) - 2.0 * (ours @ theirs.T)

        return measure

    def rows(self, chosen: Any) -> Any:
        """Return some samples."""
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
        for some in self.kernels.arange(n_parts).split(max(1, _TILE // n_parts)):
            away = torch.cdist(
                self._centres[some], self._centres, compute_mode="use_mm_for_euclid_dist"
            )
            away.scatter_(1, some[:, None], torch.inf)
            found.append(torch.topk(away, count, dim=1, largest=False)[1])
        return torch.cat(found)
