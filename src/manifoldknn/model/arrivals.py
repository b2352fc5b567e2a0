"""Rows that joined a model after its walk, each leaning on rows that came before it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.extend.reconstruct import Reconstruction
from manifoldknn.search.growing import GrowingArray
from manifoldknn.vote.similarities import Similarities

UNKNOWN = -1


@dataclass(frozen=True)
class Arrivals:
    """Rows taken in since the last walk, and what grew with them."""

    n_walked: int  # rows that the walk went over
    logs: GrowingArray  # like the next, of the `Similarities` of all rows
    log_scale: GrowingArray
    shares: GrowingArray  # votes of all rows
    seen: GrowingArray  # for every arrival, how many rows the model had when its chunk came
    indices: GrowingArray  # the rows that an arrival is combined of
    z: GrowingArray  # its convex weights
    residuals: GrowingArray  # what the combination leaves of it
    spacings: GrowingArray  # the distance to its nearest row
    gaps: GrowingArray  # the same to the nearest that is not equal
    off_manifold: GrowingArray  # whether that was too much: 1, 0, or `UNKNOWN` if nobody asked yet

    @classmethod
    def none(cls, known: Similarities, shares: Floats, k: int) -> "Arrivals":
        """Return the state right after a walk; `k` rows at most will make up an arrival."""
        numbers, floats = np.empty((0, k), dtype=np.intp), np.empty((0, k))
        columns = [known.logs, known.log_scale, shares, numbers[:, 0], numbers, floats]
        columns += [floats[:, 0]] * 3 + [np.empty(0, dtype=np.int8)]
        return cls(len(shares), *map(GrowingArray, columns))

    def joined_by(
        self, made: Reconstruction, known: Similarities, shares: Floats, off_manifold: Array
    ) -> "Arrivals":
        """Return the state with more rows, combined of earlier ones; this state stays as it is."""
        missing = self.z.values.shape[1] - made.z.shape[1]  # while there are very few rows
        pad = ((0, 0), (0, missing))
        new = {
            "logs": known.logs,
            "log_scale": known.log_scale,
            "shares": shares,
            "seen": np.full(len(shares), len(self.shares.values), dtype=np.intp),
            "indices": np.pad(made.indices, pad) if missing else made.indices,
            "z": np.pad(made.z, pad) if missing else made.z,
            "residuals": made.residuals,
            "spacings": made.spacings,
            "gaps": made.gaps,
            "off_manifold": off_manifold,
        }
        return replace(self, **{name: getattr(self, name).appended(new[name]) for name in new})

    @property
    def similarities(self) -> Similarities:
        """Those of all rows."""
        return Similarities(self.logs.values, self.log_scale.values)

    def __len__(self) -> int:
        return len(self.seen.values)

    def chunks(self) -> list[slice]:
        """Return which arrivals came together, in order."""
        starts = np.unique(self.seen.values)
        ends = [*starts[1:], self.n_walked + len(self)]
        return [slice(a - self.n_walked, b - self.n_walked) for a, b in zip(starts, ends)]

    def on_walked(self, z: Floats, indices: Ints) -> tuple[Floats, Ints]:
        """Return combinations of any rows as combinations of rows that the walk went over.

        Weights of 0 fill up rows that need fewer.
        """
        late = sparse.csr_array((0, self.n_walked))
        for part in self.chunks():
            more = self._unfolded(self.z.values[part], self.indices.values[part], late)
            late = sparse.csr_array(sparse.vstack([late, more]))
        found = self._unfolded(z, indices, late)
        counts = np.diff(found.indptr)
        shape = len(z), int(counts.max(initial=1))
        filled = np.arange(shape[1]) < counts[:, None]
        weights, rows = np.zeros(shape), np.zeros(shape, dtype=np.intp)
        weights[filled], rows[filled] = found.data, found.indices
        return weights, rows

    def _unfolded(self, z: Floats, indices: Ints, late: Any) -> Any:
        """Return a sparse matrix of combinations, arrivals replaced by what they are made of."""
        row = np.repeat(np.arange(len(z)), z.shape[1])
        n_known = self.n_walked + late.shape[0]
        whole = sparse.csr_array((z.ravel(), (row, indices.ravel())), shape=(len(z), n_known))
        return sparse.csr_array(whole[:, : self.n_walked] + whole[:, self.n_walked :] @ late)
