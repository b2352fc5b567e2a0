"""Rows that joined a model after its walk, each leaning on rows that came before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.growing import GrowingArray
from manifoldknn.nearest import NearestLabeled
from manifoldknn.reconstruct import Reconstruction, combined

UNKNOWN = -1


@dataclass(frozen=True)
class Arrivals:
    """Rows taken in since the last walk, and what grew with them.

    Attributes
    ----------
    n_walked : int
        Rows that the walk went over.
    weights, voters, log_scale : GrowingArray
        `NearestLabeled` of all rows.
    shares : GrowingArray
        Votes of all rows.
    seen : GrowingArray
        For every arrival, how many rows the model had when its chunk came.
    indices, z : GrowingArray
        The rows that an arrival is combined of, and its convex weights.
    residuals, spacings, gaps : GrowingArray
        What the combination leaves of it, and the distance to its nearest row, and to the
        nearest that is not equal.
    off_manifold : GrowingArray
        Whether that was too much: 1 or 0, or `UNKNOWN` if nobody has asked yet.
    """

    n_walked: int
    weights: GrowingArray
    voters: GrowingArray
    log_scale: GrowingArray
    shares: GrowingArray
    seen: GrowingArray
    indices: GrowingArray
    z: GrowingArray
    residuals: GrowingArray
    spacings: GrowingArray
    gaps: GrowingArray
    off_manifold: GrowingArray

    @classmethod
    def none(cls, nearest: NearestLabeled, shares: NDArray[np.float64], width: int) -> Arrivals:
        """Return the state right after a walk.

        Parameters
        ----------
        nearest : NearestLabeled
            Voters of all rows.
        shares : ndarray
            Their votes.
        width : int
            How many rows an arrival is combined of at most.

        Returns
        -------
        Arrivals
            None so far.
        """
        table: list[NDArray[Any]] = [nearest.weights, nearest.voters, nearest.log_scale, shares]
        nobody: list[NDArray[Any]] = [
            np.empty(0, dtype=np.intp),
            np.empty((0, width), dtype=np.intp),
            np.empty((0, width)),
            np.empty(0),
            np.empty(0),
            np.empty(0),
            np.empty(0, dtype=np.int8),
        ]
        return cls(len(shares), *map(GrowingArray, table + nobody))

    def joined_by(
        self,
        made: Reconstruction,
        nearest: NearestLabeled,
        shares: NDArray[np.float64],
        off_manifold: NDArray[np.int8],
    ) -> Arrivals:
        """Return the state with more rows.

        Parameters
        ----------
        made : Reconstruction
            How they are combined of earlier rows.
        nearest : NearestLabeled
            Their voters.
        shares : ndarray
            Their votes.
        off_manifold : ndarray of int8
            Whether they are far from everything: 1, 0 or `UNKNOWN`.

        Returns
        -------
        Arrivals
            This state stays as it is.
        """
        seen = np.full(len(shares), len(self.shares.values), dtype=np.intp)
        missing = self.z.values.shape[1] - made.z.shape[1]  # while there are very few rows
        pad = ((0, 0), (0, missing))
        indices, z = made.indices, made.z
        if missing:
            indices, z = np.pad(indices, pad), np.pad(z, pad)
        return Arrivals(
            self.n_walked,
            self.weights.appended(nearest.weights),
            self.voters.appended(nearest.voters),
            self.log_scale.appended(nearest.log_scale),
            self.shares.appended(shares),
            self.seen.appended(seen),
            self.indices.appended(indices),
            self.z.appended(z),
            self.residuals.appended(made.residuals),
            self.spacings.appended(made.spacings),
            self.gaps.appended(made.gaps),
            self.off_manifold.appended(off_manifold),
        )

    @property
    def nearest(self) -> NearestLabeled:
        """Voters of all rows."""
        return NearestLabeled(self.weights.values, self.voters.values, self.log_scale.values)

    def __len__(self) -> int:
        return len(self.seen.values)

    def replayed(self, walked: NearestLabeled) -> NearestLabeled:
        """Let the arrivals come again, chunk by chunk, on other weights of the rows walked.

        Parameters
        ----------
        walked : NearestLabeled
            Of the rows that the walk went over.

        Returns
        -------
        NearestLabeled
            Of all rows.
        """
        table = [GrowingArray(a) for a in (walked.weights, walked.voters, walked.log_scale)]
        starts = np.unique(self.seen.values)
        for start, end in zip(starts, [*starts[1:], self.n_walked + len(self)]):
            part = slice(start - self.n_walked, end - self.n_walked)
            known = NearestLabeled(*(column.values for column in table))
            new = combined(self.z.values[part], self.indices.values[part], known)
            rows: list[NDArray[Any]] = [new.weights, new.voters, new.log_scale]
            table = [column.appended(row) for column, row in zip(table, rows)]
        return NearestLabeled(*(column.values for column in table))
