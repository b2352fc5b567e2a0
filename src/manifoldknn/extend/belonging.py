"""How well rows lie among the others: near enough, or off the surface.

A row's gap is its distance to the nearest row that is not equal. A row at distance s from its
nearest one is as far away as

    o = s / s̄,   s̄ = min( mean gap of its 7 neighbours, median gap of all rows ),

and it belongs by b = min(1, (ô/o)⁴). ô is what one of a hundred rows of the model exceeds (see
`usual_limit`). The gaps around tell the scale of a place; the median keeps outliers, whose gaps are
wide, from making room for noise.

A new row has the b of the rows that it is combined of, times its own. So a row that equals one of
the model belongs as that one does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manifoldknn.base import Floats, Ints
from manifoldknn.base.distances import EUCLIDEAN, row_norms
from manifoldknn.extend.offmanifold import usual_limit
from manifoldknn.extend.reconstruct import coordinates
from manifoldknn.search.growing import GrowingArray
from manifoldknn.search.neighbors import NeighborIndex, Neighbors
from manifoldknn.vote.similarities import row_chunks

AROUND = 7  # neighbours, as many as every list of a model file has
_POWER = 4


@dataclass(frozen=True)
class Belonging:
    """What is usual among the rows of a model, and how well each of them belongs."""

    gaps: GrowingArray  # 0 where a row is known to have copies only
    values: GrowingArray  # b of all rows
    typical: float  # the median gap, 0 if there is none
    limit: float  # ô; infinite where nobody is ever off

    @classmethod
    def unknown(cls, n_rows: int) -> Belonging:
        """Return what doubts nobody."""
        return cls(GrowingArray(np.zeros(n_rows)), GrowingArray(np.ones(n_rows)), 0.0, np.inf)

    @classmethod
    def of_samples(cls, gaps: Floats, near: Ints) -> Belonging:
        """Judge rows by their gaps and their neighbours.

        >>> lists = np.array([[1, 2], [0, 2], [1, 0], [2, 1]])
        >>> Belonging.of_samples(np.array([1.0, 1.0, 1.0, 6.0]), lists).values.values.round(2)
        array([1.  , 1.  , 1.  , 0.01])
        """
        known = gaps[gaps > 0]
        if not len(known):
            return cls.unknown(len(gaps))
        usual = cls(GrowingArray(gaps), GrowingArray(gaps), float(np.median(known)), np.inf)
        odd = np.concatenate([
            usual.oddities(gaps[part], near[part]) for part in row_chunks(len(gaps), AROUND)
        ])  # fmt: skip
        judged = replace(usual, limit=2.0 * usual_limit(0.5 * odd))
        return replace(judged, values=GrowingArray(judged.of_oddities(odd)))

    def oddities(self, spacings: Floats, near: Ints) -> Floats:
        """Return o of rows, by the distance to their nearest row and their neighbours."""
        total, known = np.zeros(len(near)), np.zeros(len(near))
        for neighbors in near[:, :AROUND].T:  # quicker than sums of so few
            gaps = self.gaps.values[neighbors]
            total += gaps
            known += gaps > 0
        usual = np.where(known > 0, total / np.maximum(known, 1), self.typical)
        with np.errstate(over="ignore"):
            return np.asarray(spacings / np.minimum(usual, self.typical))

    def of_oddities(self, odd: Floats) -> Floats:
        """Return min(1, (ô/o)⁴)."""
        return np.asarray((self.limit / np.maximum(odd, self.limit)) ** _POWER)

    def of_new(self, z: Floats, near: Ints, spacings: Floats) -> Floats:
        """Return b of new rows: what they are combined of, and how far their nearest row is."""
        if np.isinf(self.limit):
            return np.ones(len(z))
        theirs = np.minimum((z * self.values.values[near]).sum(axis=1), 1.0)
        return theirs * self.of_oddities(self.oddities(spacings, near))

    def joined_by(self, gaps: Floats, values: Floats) -> Belonging:
        """Return the same with more rows; what is usual stays."""
        return replace(self, gaps=self.gaps.appended(gaps), values=self.values.appended(values))


def belonging_of(index: NeighborIndex, lists: Neighbors, *, brought: bool) -> Belonging:
    """Judge all rows of a search by lists of neighbours.

    Lists that the user `brought`, or by another metric, may hold other distances than those that
    reconstruction goes by: these are then measured.
    """
    differs, rows = lists.distances > 0, np.arange(len(lists.distances))
    first = differs.argmax(axis=1)
    gaps = lists.distances[rows, first].astype(np.float64)
    if brought or not (isinstance(index.metric, str) and index.metric in EUCLIDEAN):
        other = lists.indices[rows, first].astype(np.intp)
        for part in row_chunks(len(rows), index.template.shape[1]):
            here, there = (
                coordinates(index.rows(who[part]), index.metric) for who in (rows, other)
            )
            gaps[part] = row_norms(here - there)
    gaps[~differs[rows, first]] = 0.0
    return Belonging.of_samples(gaps, lists.indices)
