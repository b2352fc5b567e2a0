"""Samples on a device, kept twice: as they are, to measure, and as products want them.

Distances between many rows come from matrix products, ‖x-y‖² = ‖x‖² - 2xy + ‖y‖²,
of rows moved to the origin and rounded to single precision. What they find is measured
again from differences in double precision, as on the CPU: equal rows are exactly 0 apart.
"""

from typing import Any

import numpy as np
import torch

from manifoldknn.base.distances import EUCLIDEAN
from manifoldknn.base.tensors import doubles, moved, tile_rows, with_tiles

GROUP = 64  # columns of which the smallest is looked at first
_TILE_BYTES = 1 << 31


def check_searchable(X: Any, metric: Any, device: Any) -> None:
    """Raise ValueError unless such rows can be searched on a device."""
    if hasattr(X, "tocsr"):
        raise ValueError(f"X is sparse, which device={str(device)!r} cannot use: use device='cpu'.")
    if not (isinstance(metric, str) and metric in EUCLIDEAN | {"cosine"}):
        raise ValueError(
            f"metric={metric!r} is not available on device={str(device)!r}, which knows "
            "'euclidean' and 'cosine': use device='cpu'."
        )


class DeviceRows:
    """Finite rows of float32 or float64 on a device.

    For "cosine" rows are brought to length 1, and 1 - cos = ½‖x-y‖².
    """

    def __init__(self, X: Any, metric: Any, device: Any) -> None:
        self.device, self.wide = device, doubles(device)
        self.metric = "cosine" if metric == "cosine" else "euclidean"
        X = moved(X, self.wide)
        self.dtype = X.dtype
        self.exact = self._measurable(X)  # to measure; the very X if that is a tensor there
        del X  # by cosine another one, which need not be there beside what follows
        self._upright: Any = _is_zero(self.exact) if self.metric == "cosine" else None
        self.center = torch.zeros(self.exact.shape[1], dtype=torch.float64, device=self.wide)
        if self.metric == "euclidean":
            self.center = self.exact.mean(dim=0, dtype=torch.float64)
        largest = (self.exact.amax(dim=0) - self.center).abs()
        largest = torch.maximum(largest, (self.exact.amin(dim=0) - self.center).abs())
        _, exponent = np.frexp(float(largest.max()))
        # Length in `products` of what has length 1 in `exact`: a power of two.
        self.unit = float(np.ldexp(1.0, -int(exponent)))
        self.products, self.norms = self.prepared(self.exact)

    def __len__(self) -> int:
        return int(self.exact.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.exact.shape[1])

    def _measurable(self, rows: Any) -> Any:
        """Return rows as they are measured."""
        if self.metric != "cosine":
            return rows
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
        return rows / torch.where(lengths > 0, lengths, 1.0)

    def new(self, Q: Any) -> Any:
        """Return new rows in the form that `exact` has."""
        return self._measurable(moved(Q, self.wide, self.dtype))

    def prepared(self, rows: Any) -> tuple[Any, Any]:
        """Return measurable rows as products want them, and their squared lengths.

        They are moved to the origin, scaled by `unit`, and rounded to single precision. A row of
        zeros has no direction: it is 1 away from all, by cosine, as if it had length 1 and stood
        upright on them.
        """
        shape = rows.shape
        products = torch.empty(shape, dtype=torch.float32, device=self.device)
        norms = torch.empty(shape[0], dtype=torch.float32, device=self.device)

        def fill(part: slice) -> None:
            centered = (rows[part] - self.center) * self.unit
            single = centered.to(torch.float32)
            products[part] = single.to(self.device)
            norms[part] = single.double().square().sum(dim=1).to(self.device, torch.float32)

        step = tile_rows(self.wide, 40 * shape[1], _TILE_BYTES)
        with_tiles(fill, shape[0], step, self.wide)
        if self.metric == "cosine":
            norms = torch.where(norms > 0, norms, self.unit**2)
        return products, norms

    def measured(self, Q: Any, near: Any) -> Any:
        """Return the distances of measurable rows to some of the samples, in double precision.

        Where a number in `near` is negative there is no sample, and the distance is inf.
        """
        near = near.to(self.wide)
        out = torch.empty(near.shape, dtype=torch.float64, device=self.wide)

        def fill(part: slice) -> None:
            numbers = near[part].clamp(min=0).long()
            # Rows become double while they are subtracted: they are many, and Q is not.
            difference = self.exact[numbers] - Q[part, None, :].double()
            out[part] = torch.linalg.vector_norm(difference, dim=2)
            if self.metric == "cosine":
                upright = self._upright[numbers] | _is_zero(Q[part])[:, None]
                out[part] = torch.where(upright, 1.0, 0.5 * out[part].square())
            out[part].masked_fill_(near[part] < 0, torch.inf)

        step = tile_rows(self.wide, 24 * near.shape[1] * self.n_features, _TILE_BYTES)
        with_tiles(fill, len(near), step, self.wide, least=1)
        return out


def _is_zero(rows: Any) -> Any:
    return (rows == 0).all(dim=1)


def smallest(scores: Any, count: int) -> tuple[Any, Any]:
    """Return the `count` ≤ n_columns smallest entries of every row and their columns, in no order.

    They lie in the `count` groups of columns with the smallest minima: one look at everything,
    then a search among few. Columns of a group are as far apart as can be: minima of many groups
    side by side are four times as quick.
    """
    n_rows, n_columns = scores.shape
    n_groups = n_columns // GROUP
    if n_groups < 4 * count:
        values, columns = torch.topk(scores, count, dim=1, largest=False, sorted=False)
        return values, columns
    whole = n_groups * GROUP
    grouped = scores[:, :whole].unflatten(1, (GROUP, n_groups))
    groups = torch.topk(grouped.amin(dim=1), count, dim=1, largest=False, sorted=False)[1]
    columns = groups[:, :, None] + n_groups * torch.arange(GROUP, device=scores.device)
    columns = columns.flatten(1)
    if whole < n_columns:
        rest = torch.arange(whole, n_columns, device=scores.device).expand(n_rows, -1)
        columns = torch.cat([columns, rest], dim=1)
    values, place = torch.topk(scores.gather(1, columns), count, dim=1, largest=False, sorted=False)
    return values, columns.gather(1, place)


def sorted_pairs(indices: Any, distances: Any, count: int) -> tuple[Any, Any]:
    """Return the `count` nearest candidates, by distance and then index; inf where one is none."""
    indices, order = torch.sort(indices, dim=1)
    distances = distances.gather(1, order)
    distances, order = torch.sort(distances, dim=1, stable=True)
    return indices.gather(1, order)[:, :count], distances[:, :count]
