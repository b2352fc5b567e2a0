"""Samples in separate parts: which member of a part is nearest to some row.

Searches are asked for together. All rows that look into one part look into it at
once, block by block, so that a part of a million samples is read once and not
once for every part that looks at it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.distances import (
    EUCLIDEAN,
    all_pairs,
    angular_pairs,
    euclidean_pairs,
    is_angular,
    row_norms,
    values_per_row,
)
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.base.threads import in_threads
from manifoldknn.search.neighbors import ExactIndex

_BLOCK_ROWS = 1024  # rows compared with as many others at a time
_BLOCK_VALUES = 1 << 22  # of rows that are copied at a time
_TRIED_MEMBERS = 16  # of whom the middle one stands for its part
_PAIRS = 8  # measured at a time: each with each, which wastes less than a call per pair

Measure = Callable[[Any], Any]  # distances, or what has their order, of rows by their numbers


class PartSearch(ABC):
    """Search over the members of parts, of which `parts` tells the number for every sample.

    `sizes` counts the members of every part. Answers do not depend on `n_jobs`.
    """

    def __init__(
        self, X: Any, parts: Ints, *, metric: Any, n_jobs: int | None = None,
        kernels: Kernels = NUMPY,
    ) -> None:  # fmt: skip
        self.X, self.metric, self.kernels = X, metric, kernels
        # A function of the user's need not bear several threads, nor would it gain by them.
        self._n_jobs = 1 if callable(metric) else n_jobs
        self.parts = kernels.array(parts)
        self._order = kernels.order(self.parts)
        self.sizes = np.bincount(parts)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)]).tolist()
        # Enough rows for quick products, few enough for bounded memory in many columns.
        width = values_per_row(X)
        self._step = max(1, int(min(_BLOCK_ROWS, _BLOCK_VALUES / max(1.0, width))))

    def members(self, part: int) -> Any:
        """Return the samples of a part, in order."""
        return self._order[self._starts[part] : self._starts[part + 1]]

    def nearest_members(self, asked: Any, points: Callable[[Any], Any]) -> Any:
        """Return the member of a part nearest to a point, for many points.

        `asked` are the parts that the points look into, and ``points(some)`` returns some of the
        points, by their places in `asked`. Of equally near members the smallest number wins, but
        for rounding. Cost O(m·d) for each point that looks into a part of m members; memory
        O(block).
        """
        answer = self.kernels.xp.empty_like(asked)
        by_part = self.kernels.order(asked)
        part_of = self.kernels.host(asked[by_part])
        starts = np.flatnonzero(np.diff(part_of, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(asked)]):
            part = int(part_of[start])
            for at in range(start, end, self._step):
                some = by_part[at : min(at + self._step, end)]
                measure = self._distances_of(points(some), part)
                answer[some] = self._least(measure, self.members(part), len(some))
        return answer

    def nearest_to_rows(self, asked: Any, samples: Any) -> Any:
        """Return the member of a part nearest to a sample, for many samples."""
        return self.nearest_members(asked, lambda some: self.rows(samples[some]))

    def nearest_strangers(self) -> Any:
        """Return for every part the sample of any other that is nearest to its centre.

        Cost O(n·d) for each part; memory O(block).
        """
        everyone = self.kernels.arange(len(self.sizes))
        answer = self.kernels.xp.empty_like(everyone)
        for at in range(0, len(self.sizes), self._step):
            some = everyone[at : at + self._step]
            measure = self._distances_of(self.centres(some))
            answer[some] = self._least(measure, self._order, len(some), relatives=at)
        return answer

    def _least(
        self, measure: Measure, samples: Any, n_points: int, *, relatives: int | None = None
    ) -> Any:
        """Return the nearest of some samples to each point, block after block.

        Points that stand for parts, the first of which is `relatives`, do not see their members;
        `samples` are then all of them, in the order of parts.
        """
        step, points = self._rows_at_once(n_points), self.kernels.arange(n_points)

        def nearest(at: int) -> tuple[Any, Any]:
            rows = samples[at : at + step]
            away = measure(rows)
            if relatives is not None:
                first = min(max(self._starts[relatives] - at, 0), len(rows))
                end = min(max(self._starts[relatives + n_points] - at, 0), len(rows))
                here = self.kernels.arange(end)[first:]
                away[self.parts[rows[first:end]] - relatives, here] = np.inf
            place = away.argmin(1)
            return away[points, place], rows[place]

        least, answer = self.kernels.full(n_points, np.inf), samples[points * 0]
        for away, found in in_threads(nearest, range(0, len(samples), step), self._n_jobs):
            better = away < least
            least = self.kernels.xp.where(better, away, least)
            answer = self.kernels.xp.where(better, found, answer)
        return answer

    def _rows_at_once(self, n_points: int) -> int:
        """Return how many rows are compared with so many points at a time."""
        del n_points
        return self._step

    @abstractmethod
    def _distances_of(self, points: Any, part: int | None = None) -> Measure:
        """Return what measures points and rows of a part, or any: in the order of distances."""

    @abstractmethod
    def rows(self, chosen: Any) -> Any:
        """Return some samples as points."""

    @abstractmethod
    def centres(self, chosen: Any) -> Any:
        """Return the centres of some parts as points."""

    @abstractmethod
    def stand_ins(self) -> Any:
        """Return one sample of every part, from its middle."""

    @abstractmethod
    def nearest_parts(self, count: int) -> Any:
        """Return the parts with the nearest centres, one row of numbers per part."""


class ProductSearch(PartSearch):
    """Search by matrix products, on rows of length 1 for the cosine: then ‖x-y‖² = 2·(1-cos).

    Parts are near each other if their means are.
    """

    @cached_property
    def _centres(self) -> Floats:
        sums = np.zeros((len(self.sizes), self.X.shape[1]))
        for at in range(0, len(self._order), self._step):
            some = self._order[at : at + self._step]
            first = np.flatnonzero(np.diff(self.parts[some], prepend=-1))
            values = self.rows(some).astype(np.float64)
            sums[self.parts[some[first]]] += np.add.reduceat(values, first, axis=0)
        return sums / self.sizes[:, None]

    def _distances_of(self, points: Array, part: int | None = None) -> Measure:
        # Near the origin, products are accurate where it matters: among the rows searched.
        if part is None:
            origin = np.average(self._centres, axis=0, weights=self.sizes).astype(self.X.dtype)
        else:
            origin = self._centres[part].astype(self.X.dtype)
        ours = _with_column(points, origin)
        ours[:, :-1] *= -2.0
        ours[:, -1] = 1.0

        def measure(rows: Ints) -> Array:
            theirs = _with_column(self.rows(rows), origin)
            with np.errstate(over="ignore", invalid="ignore"):
                np.einsum("ij,ij->i", theirs[:, :-1], theirs[:, :-1], out=theirs[:, -1])
                away: Array = ours @ theirs.T  # ‖y‖² - 2xy
            return away

        return measure

    def rows(self, chosen: Ints) -> Array:
        """Return some samples as points, of length 1 for the cosine."""
        rows: Array = self.X[chosen]
        if self.metric == "cosine":
            norms = row_norms(rows.astype(np.float64))
            rows = rows / np.where(norms > 0, norms, 1.0)[:, None].astype(rows.dtype)
        return rows

    def centres(self, chosen: Ints) -> Array:
        """Return the means of some parts."""
        return self._centres[chosen].astype(self.X.dtype)

    def stand_ins(self) -> Ints:
        """Return the sample of every part that is nearest to its mean."""
        return self.nearest_members(np.arange(len(self.sizes)), self.centres)

    def nearest_parts(self, count: int) -> Ints:
        """Return the parts with the nearest means."""
        return ExactIndex(self._centres, n_jobs=self._n_jobs).among_samples(count).indices


def _with_column(points: Array, origin: Array) -> Array:
    """Return points as seen from an origin, with a column left over."""
    out = np.empty((len(points), points.shape[1] + 1), dtype=origin.dtype)
    np.subtract(points, origin, out=out[:, :-1])
    return out


class MetricSearch(PartSearch):
    """Search by any metric, on dense or sparse rows.

    There need be no means, so one of its members stands for a part: that of some with the least sum
    of distances to the others of them.
    """

    @cached_property
    def _stand_ins(self) -> Ints:
        return np.array([self._middle(part) for part in range(len(self.sizes))])

    def _middle(self, part: int) -> int:
        members = self.members(part)
        some = members[:: -(-len(members) // _TRIED_MEMBERS)]
        if len(some) == 1:
            return int(some[0])
        away = all_pairs(self.X[some], self.X[some], self.metric)
        return int(some[np.argmin(away.sum(axis=1))])

    def _distances_of(self, points: Any, part: int | None = None) -> Measure:
        del part  # distances are the same for all

        def measure(rows: Ints) -> Array:
            return all_pairs(points, self.X[rows], self.metric)

        return measure

    def rows(self, chosen: Ints) -> Any:
        """Return some samples."""
        return self.X[chosen]

    def centres(self, chosen: Ints) -> Any:
        """Return the samples that stand for some parts."""
        return self.X[self._stand_ins[chosen]]

    def stand_ins(self) -> Ints:
        """Return one sample of every part."""
        return self._stand_ins

    def nearest_parts(self, count: int) -> Ints:
        """Return the parts whose stand-ins are nearest."""
        samples = ExactIndex(self.X[self._stand_ins], metric=self.metric, n_jobs=self._n_jobs)
        return samples.among_samples(count).indices


def pair_distances(X: Any, one: Ints, other: Ints, *, metric: Any) -> Floats:
    """Return the distance of each pair ``(X[one[e]], X[other[e]])`` by any metric."""
    if isinstance(metric, str) and metric in EUCLIDEAN:
        return euclidean_pairs(X, X, one, other)
    out = np.empty(len(one))
    for at in range(0, len(one), _PAIRS):
        some = slice(at, at + _PAIRS)
        if is_angular(X, metric):
            out[some] = angular_pairs(X[one[some]], X[other[some]], metric)
            continue
        out[some] = np.diagonal(all_pairs(X[one[some]], X[other[some]], metric))
    return out
