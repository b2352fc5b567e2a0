"""Short edges between separate parts of very many rows, on the device.

As in `manifoldknn.graph.bridges`: every part looks at the few parts with the nearest
centres, and at that of the row nearest to its own, and finds a short edge to each by
going back and forth between them. All parts that look at one part look at it
together, in one matrix product.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base.distances import euclidean_pairs
from manifoldknn.device.segments import Runs
from manifoldknn.graph.bridges import MOST_PARTS, NEAREST_PARTS, STEPS, tree_of_parts
from manifoldknn.graph.spanning import Edges

_TILE = 1 << 26  # products at a time
_STRANGERS = 1 << 12  # parts that look at everyone at a time
_VALUES = 1 << 27  # values of X that are widened or moved at a time


def short_bridges(X: torch.Tensor, parts: torch.Tensor) -> Edges:
    """Return short edges that join `parts`, numbered from 0, into one; one less than there are.

    Sorted, ``low < high``, with their Euclidean lengths. Cost O(n·d) per part that a part looks at.
    Rows are compared in the precision of X.
    """
    found: list[NDArray[np.intp]] = []
    while int(parts.max()) > 0:
        pairs = _Parts(X, parts).pairs_of_rows().cpu().numpy()
        low, high = pairs.min(axis=1), pairs.max(axis=1)
        ends = parts[torch.as_tensor(pairs, device=parts.device)].cpu().numpy()
        n_parts = int(parts.max()) + 1
        kept = tree_of_parts(ends[:, 0], ends[:, 1], pair_lengths(X, low, high), n_parts)
        found.append(np.column_stack([low[kept], high[kept]]))
        links = sparse.coo_array(
            (np.ones(len(kept)), (ends[kept, 0], ends[kept, 1])), shape=(n_parts, n_parts)
        )
        merged = csgraph.connected_components(links, directed=False)[1].astype(np.int64)
        parts = torch.as_tensor(merged, device=parts.device)[parts]
    low, high = np.unique(np.concatenate(found), axis=0).T
    return low, high, pair_lengths(X, low, high)


def pair_lengths(
    X: torch.Tensor, low: NDArray[np.intp], high: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the lengths of some pairs, measured on the processor."""
    needed, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    values = X[torch.as_tensor(needed, device=X.device)].cpu().numpy()
    return euclidean_pairs(values, values, place[: len(low)], place[len(low) :])


class _Parts:
    """The rows of every part, and where its centre is."""

    def __init__(self, X: torch.Tensor, parts: torch.Tensor) -> None:
        self.X, self.parts = X, parts
        self.order = torch.argsort(parts, stable=True)
        self.runs = Runs.of_numbers(parts[self.order])
        self.starts = self.runs.offsets.tolist()
        self.sizes = self.runs.offsets.diff()
        step = max(1, _VALUES // len(X))
        sums = [
            self.runs.sum(X[:, at : at + step][self.order].double())
            for at in range(0, X.shape[1], step)
        ]
        self.centres = torch.cat(sums, dim=1) / self.sizes[:, None]

    def pairs_of_rows(self) -> torch.Tensor:
        """Return a short edge from every part to each of its nearest parts, as two rows."""
        near, strangers = self._nearest_parts(), self._nearest_strangers()
        if len(near) > MOST_PARTS:
            stand_ins = self._stand_ins()
            ends = torch.cat([stand_ins[near], strangers[:, None]], dim=1)
            one = stand_ins.repeat_interleave(ends.shape[1])
            return torch.stack([one, ends.reshape(-1)], dim=1)
        theirs = self.parts[strangers]
        missing = ~(near == theirs[:, None]).any(1)
        near[missing, -1] = theirs[missing]
        one = torch.arange(len(near), device=near.device).repeat_interleave(near.shape[1])
        other = near.reshape(-1)
        a = self._nearest_members(one, self.centres[other].to(self.X.dtype))
        b = torch.full_like(a, -1)
        for _ in range(STEPS):
            before_a, before_b = a, b
            b = self._nearest_members(other, self.X[a])
            a = self._nearest_members(one, self.X[b])
            if torch.equal(a, before_a) and torch.equal(b, before_b):
                break
        return torch.stack([a, b], dim=1)

    def _nearest_parts(self) -> torch.Tensor:
        n_parts = len(self.centres)
        count = min(NEAREST_PARTS, n_parts - 1)
        found = []
        for start in range(0, n_parts, max(1, _TILE // n_parts)):
            some = self.centres[start : start + max(1, _TILE // n_parts)]
            away = torch.cdist(some, self.centres, compute_mode="use_mm_for_euclid_dist")
            away[torch.arange(len(some)), torch.arange(start, start + len(some))] = torch.inf
            found.append(torch.topk(away, count, dim=1, largest=False)[1])
        return torch.cat(found)

    def _nearest_strangers(self) -> torch.Tensor:
        """Return the sample of any other part that is nearest to the centre of every part."""
        # Near the origin, products are accurate where it matters.
        origin = self.centres.T @ (self.sizes.double() / len(self.X))
        found = []
        for some in torch.arange(len(self.sizes), device=self.X.device).split(_STRANGERS):
            points = (self.centres[some] - origin).to(self.X.dtype)
            found.append(self._nearest(self.order, origin.to(self.X.dtype), points, some))
        return self.order[torch.cat(found)]

    def _stand_ins(self) -> torch.Tensor:
        """Return the row of every part that is nearest to its centre."""
        rows = torch.arange(len(self.X), device=self.X.device)
        away = torch.cat(
            [
                (self.X[some] - self.centres[self.parts[some]].to(self.X.dtype)).square().sum(1)
                for some in rows.split(max(1, _VALUES // self.X.shape[1]))
            ]
        )[self.order]
        least = -self.runs.max(-away[:, None])[:, 0]
        nearest = torch.nonzero(away == least[self.parts[self.order]]).squeeze(1)
        chosen = self.order[nearest]
        first = torch.full_like(self.sizes, len(rows))
        return first.scatter_reduce_(0, self.parts[chosen], chosen, "amin")

    def _nearest_members(self, part: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        """Return the member of `part` nearest to each point."""
        answer = torch.empty_like(part)
        by_part = torch.argsort(part, stable=True)
        asked, counts = torch.unique_consecutive(part[by_part], return_counts=True)
        for p, queries in zip(asked.tolist(), by_part.split(counts.tolist())):
            members = self.order[self.starts[p] : self.starts[p + 1]]
            # Near the origin, products are accurate where it matters: at the part itself.
            centre = self.centres[p].to(self.X.dtype)
            answer[queries] = members[self._nearest(members, centre, points[queries] - centre)]
        return answer

    def _nearest(
        self,
        members: torch.Tensor,
        centre: torch.Tensor,
        points: torch.Tensor,
        relatives: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the place of the member nearest to each point, relatives of a part left out."""
        least = torch.full((len(points),), torch.inf, dtype=self.X.dtype, device=self.X.device)
        place = torch.zeros(len(points), dtype=torch.int64, device=self.X.device)
        step = max(1, min(_TILE // len(points), _VALUES // self.X.shape[1]))
        for start in range(0, len(members), step):
            some = members[start : start + step]
            rows = self.X[some] - centre
            squares = rows.square().sum(1) - 2.0 * (points @ rows.T)
            if relatives is not None:
                squares.masked_fill_(self.parts[some][None, :] == relatives[:, None], torch.inf)
            away, at = squares.min(1)
            better = away < least
            least, place = torch.where(better, away, least), torch.where(better, at + start, place)
        return place
