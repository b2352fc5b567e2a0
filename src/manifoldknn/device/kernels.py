"""What the steps ask of arrays, by PyTorch; the same as in `manifoldknn.base.kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from manifoldknn.base.kernels import Kernels
from manifoldknn.device.segments import Runs
from manifoldknn.device.transfer import to_numpy


class TorchKernels(Kernels):
    """The kernels on a device that has double precision."""

    xp: Any = torch
    rows_at_once = 1 << 20  # as few tasks as memory allows

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def array(self, values: Any, dtype: Any = None) -> Any:
        return torch.as_tensor(values, dtype=dtype, device=self.device)

    def host(self, values: Any) -> Any:
        return to_numpy(values)

    def arange(self, n: int) -> Any:
        return torch.arange(n, device=self.device)

    def full(self, shape: int | tuple[int, int], value: float) -> Any:
        sizes = (shape,) if isinstance(shape, int) else shape
        return torch.full(sizes, value, dtype=torch.float64, device=self.device)

    def long(self, values: Any) -> Any:
        return values.long()

    def mask(self, rows: Any, n: int) -> Any:
        mask = torch.zeros(n, dtype=torch.bool, device=self.device)
        mask[rows] = True
        return mask

    def repeat(self, values: Any, count: int) -> Any:
        return values.repeat_interleave(count)

    def order(self, *keys: Any) -> Any:
        order = torch.sort(keys[0], stable=True)[1]
        for key in keys[1:]:
            order = order[torch.sort(key[order], stable=True)[1]]
        return order

    def distinct(self, numbers: Any) -> Any:
        return torch.unique(numbers)

    def median(self, values: Any) -> float:
        """Return the median; unlike PyTorch's, the mean of both middle values."""
        ordered = torch.sort(values)[0]
        n = len(ordered)
        return float(ordered[[(n - 1) // 2, n // 2]].mean())

    def runs(self, offsets: Any) -> Any:
        return Runs(offsets)

    def runs_of(self, numbers: Any) -> Any:
        return Runs.of_numbers(numbers)

    def at_least(self, values: Any, least: float, out: Any = None) -> Any:
        return torch.clamp(values, min=least, out=out)

    def at_most(self, values: Any, most: float, out: Any = None) -> Any:
        return torch.clamp(values, max=most, out=out)

    def log(self, values: Any, out: Any = None) -> Any:
        return torch.log(values, out=out)

    def total(self, terms: Any) -> Any:
        """Return the sum over the first axis; a task for every term would take longer."""
        return terms.sum(0)

    def combined(self, terms: Any, weights: Any) -> Any:
        return (terms * weights.unflatten(0, (-1, *[1] * (terms.ndim - weights.ndim)))).sum(0)

    def packed(self, chosen: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
        counts = chosen.sum(0)
        index = torch.argsort((~chosen).to(torch.uint8), dim=0, stable=True)[: int(counts.max())]

        def put_back(values: Any) -> Any:
            # Beyond its count a column names rows that are not chosen, with values of 0.
            return torch.zeros_like(chosen, dtype=values.dtype).scatter(0, index, values)

        return index, counts, put_back
