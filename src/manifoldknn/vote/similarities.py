"""How similar every row is to each class, or to each labelled sample, by the walk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.kernels import NUMPY, Kernels
from manifoldknn.base.threads import in_threads

_CHUNK_BYTES = 1 << 24  # of the largest array alive while some rows are worked on
_COMBINED_BYTES = 1 << 22  # the same where several such arrays are alive in every thread
_MOST_ROWS = 1 << 14
_LEAST_ROWS = 64


@dataclass(frozen=True)
class Similarities:
    """Nonnegative numbers as logarithms, row by row on a scale of its own.

    `log_scale` is the logarithm of the largest of a row, and `logs` are less by it: the largest is
    0. Both are -inf in rows that no labelled sample reaches. In single precision logs are still
    right to 1e-7 of the largest.
    """

    logs: Array
    log_scale: Floats

    @classmethod
    def from_logarithms(cls, logs: Floats, dtype: Any = np.float64) -> Similarities:
        """Take the scale out of every row; the logarithms are used up.

        >>> Similarities.from_logarithms(np.array([[-900.0, -901.0]])).logs
        array([[ 0., -1.]])
        """
        log_scale: Floats = logs.max(axis=1)
        logs -= np.where(np.isneginf(log_scale), 0.0, log_scale)[:, None]
        return cls(logs.astype(dtype, copy=False), log_scale)

    @property
    def unreached(self) -> Bools:
        """Rows that no labelled sample reaches."""
        return np.isneginf(self.log_scale)

    def rows(self, chosen: Array | slice) -> Similarities:
        """Return some of the rows, by mask, numbers or slice."""
        return Similarities(self.logs[chosen], self.log_scale[chosen])

    def logarithms(self) -> Floats:
        """Return the logarithms of the numbers themselves."""
        return self.logs + np.where(self.unreached, 0.0, self.log_scale)[:, None]


def row_chunks(
    n_rows: int, *values_per_row: int, most_bytes: int = _CHUNK_BYTES
) -> Iterator[slice]:
    """Yield slices over rows such that what is computed for one of them fits a chunk.

    `values_per_row` are the numbers that a row brings along in each of the arrays alive at a time.
    Slices have from 64 to 16,384 rows: 16 MiB per array, or `most_bytes`, where a row allows it.
    """
    step = most_bytes // (8 * max(1, *values_per_row))
    step = min(max(step, _LEAST_ROWS), _MOST_ROWS)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def combined(
    z: Floats, indices: Ints, known: Similarities, *, n_jobs: int | None = None
) -> Similarities:
    """Return Σ z_i w(x_i,·) for every row (equations 8 and 9).

    All weight on one sample gives exactly that sample's numbers. The answer does not depend on
    `n_jobs`.
    """
    n_columns = known.logs.shape[1]
    out = Similarities(np.empty((len(z), n_columns), known.logs.dtype), np.empty(len(z)))

    def fill(part: slice) -> None:
        with np.errstate(divide="ignore"):
            logs = combined_logarithms(z[part], indices[part], known.logs, known.log_scale)
            found = Similarities.from_logarithms(logs)
        out.logs[part], out.log_scale[part] = found.logs, found.log_scale

    parts = row_chunks(len(z), z.shape[1] * n_columns, most_bytes=_COMBINED_BYTES)
    deque(in_threads(fill, parts, n_jobs), maxlen=0)
    return out


def combined_logarithms(
    z: Any, indices: Any, logs: Any, log_scale: Any, kernels: Kernels = NUMPY
) -> Any:
    """Return log Σ z_i w(x_i,·) for logarithms that lack their scale, some rows at once."""
    xp = kernels.xp
    # Neighbours may differ by hundreds of orders of magnitude: the largest sets the scale.
    scales = xp.log(z) + log_scale[indices]
    terms = logs[indices] + scales[:, :, None]
    top = xp.amax(terms, 1)
    terms -= xp.where(xp.isneginf(top), 0.0, top)[:, None, :]
    return xp.log(xp.exp(terms, out=terms).sum(1)) + top
