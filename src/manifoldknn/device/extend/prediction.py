"""New rows on a device: neighbours, reconstruction and similarities in one go.

Equations 7 to 9 of the CPU path, on chunks of rows that follow the free memory; the vote
is that of the CPU itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from manifoldknn.base import Floats, Ints
from manifoldknn.base.tensors import is_out_of_memory, is_tensor, moved, release, tile_rows, to_host
from manifoldknn.device.checked_samples import check_finite, check_size
from manifoldknn.device.extend.simplex import torch_simplex_weights
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.device.resident_rows import DeviceRows
from manifoldknn.device.search.index import TorchIndex
from manifoldknn.vote.similarities import Similarities, combined_logarithms

_CHUNK_BYTES = 1 << 35
_MOST_ROWS = 1 << 17
_MOST_VALUES = 1 << 25  # that are sent to the host at a time


class KnownSimilarities:
    """Similarities of the samples as the walk found them, copied to the device of `rows`."""

    def __init__(self, source: Similarities, rows: DeviceRows) -> None:
        self.source = source
        self._logs, self._log_scale = (
            moved(part, rows.wide) for part in (source.logs, source.log_scale)
        )

    def combined(self, z: Any, near: Any) -> tuple[Any, Any]:
        """Return log Σ z_i w(x_i,·) for convex weights z of the samples `near`.

        Each row less its largest, and these: -inf where no neighbour that counts was reached.
        """
        kernels = TorchKernels(z.device)
        logs = combined_logarithms(z, near, self._logs, self._log_scale, kernels)
        largest = logs.amax(1, keepdim=True)
        scale = torch.where(torch.isneginf(largest), 0.0, largest)
        return (logs - scale).to(self._logs.dtype), largest[:, 0]


def device_similarities(
    X: Any, index: TorchIndex, known: KnownSimilarities, n_neighbors: int
) -> Iterator[tuple[slice, Similarities, tuple[Floats, Ints, Floats]]]:
    """Yield chunks of new rows: their similarities, and how they are combined of samples.

    The latter are convex weights, the samples, and the distance to the nearest of them.
    """
    rows = index.device_rows
    assert rows is not None
    columns = known.source.logs.shape[1]
    per_row = 4 * len(rows) + 24 * n_neighbors * (columns + rows.n_features)
    step = min(_MOST_ROWS, tile_rows(rows.device, per_row, _CHUNK_BYTES))
    step = max(1, min(step, _MOST_VALUES // columns))
    start = 0
    while start < X.shape[0]:
        part = slice(start, min(start + step, X.shape[0]))
        try:
            new = rows.new(X[part])
            if not is_tensor(X):
                check_finite(new)
                check_size(new)
            near, _ = index.device_query(new, n_neighbors)
            z = torch_simplex_weights(new, rows.exact, near)
            spacings = torch.linalg.vector_norm(rows.exact[near[:, 0]] - new, dim=1)
            logs, scale = (to_host(found) for found in known.combined(z, near))
            made = to_host(z), to_host(near, np.intp), to_host(spacings, np.float64)
        except RuntimeError as error:
            if not is_out_of_memory(error) or step == 1:
                raise
            step = max(1, step // 2)
        else:
            yield part, Similarities(logs, scale), made
            start = part.stop
            continue
        release(rows.device)
