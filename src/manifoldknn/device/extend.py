"""New rows on a device: neighbours, reconstruction and similarities in one go.

Equations 7 to 9 of the CPU path, on chunks of rows that follow the free memory; the vote
is that of the CPU itself. Gram matrices are made here, tile by tile; `manifoldknn.extend.simplex`
solves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from manifoldknn.base import Floats, Ints
from manifoldknn.base.tensors import (
    is_out_of_memory,
    is_tensor,
    moved,
    release,
    tile_rows,
    to_host,
    with_tiles,
)
from manifoldknn.device.checked_samples import check_finite, check_size
from manifoldknn.device.kernels import TorchKernels
from manifoldknn.device.resident_rows import DeviceRows
from manifoldknn.device.search.index import TorchIndex
from manifoldknn.extend.simplex import active_set
from manifoldknn.vote.similarities import Similarities, combined_logarithms

_CHUNK_BYTES = 1 << 35
_MOST_ROWS = 1 << 17
_MOST_VALUES = 1 << 25  # that are sent to the host at a time
_TILE_BYTES = 1 << 31


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


def torch_simplex_weights(points: Any, samples: Any, near: Any) -> Any:
    """Return the weights that write each point as the nearest convex combination of samples.

    As `simplex_weights` for the same (m, d) points and their (m, k) neighbours; non-negative, each
    row summing to one. The device must have double precision. O(k²d) a row for the Gram matrix,
    O(k² + s³) an iteration for a support of s.
    """
    m, k = near.shape
    weights = torch.empty((m, k), dtype=torch.float64, device=points.device)

    def fill(part: slice) -> None:
        gram, order = _sorted_gram(points[part], samples, near[part])
        solved = active_set(gram, 10 * k + 50, TorchKernels(gram.device)).T
        weights[part] = weights[part].scatter(1, order, solved)

    # As many rows at a time as possible: an iteration costs the same for few.
    step = tile_rows(points.device, 80 * k * k, _TILE_BYTES)
    with_tiles(fill, m, step, points.device)
    return weights


def _sorted_gram(points: Any, samples: Any, near: Any) -> tuple[Any, Any]:
    """Gram matrices (k, k, m) of the differences, nearest first, and the (m, k) order taken."""
    m, k = near.shape
    gram = torch.empty((m, k, k), dtype=torch.float64, device=points.device)
    lengths = torch.empty((m, k), dtype=torch.float64, device=points.device)

    def fill(part: slice) -> None:
        gram[part], lengths[part] = _gram(points[part], samples, near[part])

    step = tile_rows(points.device, 24 * k * points.shape[1], _TILE_BYTES)
    with_tiles(fill, m, step, points.device)
    order = torch.argsort(lengths, dim=1, stable=True)
    rows = torch.arange(m, device=gram.device)[:, None, None]
    gram = gram[rows, order[:, :, None], order[:, None, :]]
    return gram.permute(1, 2, 0).contiguous(), order


def _gram(points: Any, samples: Any, near: Any) -> tuple[Any, Any]:
    """Gram matrices (m, k, k) of the scaled differences, and squared lengths, -1 for a match."""
    differences = samples[near].double() - points[:, None, :]
    sizes = differences.abs().amax(dim=2)
    # A power of two scales without rounding; even clipped, squares do not over- or underflow.
    exponents = torch.frexp(sizes.amax(dim=1))[1].clamp(-1000, 1000)
    differences *= torch.ldexp(torch.ones_like(sizes[:, 0]), -exponents)[:, None, None]
    gram = differences @ differences.transpose(1, 2)
    return gram, torch.where(sizes > 0, gram.diagonal(dim1=1, dim2=2), -1.0)
