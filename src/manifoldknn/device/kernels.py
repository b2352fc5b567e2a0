"""What the steps ask of arrays, by PyTorch; the same as in `manifoldknn.base.kernels`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manifoldknn.base import Array
from manifoldknn.base.kernels import Kernels

_SENT_BYTES = 1 << 24  # to the processor at a time
_PIECE = 128  # rows that one thread goes through


def to_numpy(values: Tensor) -> Array:
    """Return a tensor as a NumPy array; it shares memory with a tensor that is on the CPU.

    Copying a large one straight into fresh memory waits for one page after the other. So pieces
    arrive in two buffers that the device may write to by itself, and all cores move them on while
    the next piece is under way.

    >>> import torch
    >>> from manifoldknn.device.kernels import to_numpy
    >>> to_numpy(torch.arange(3))
    array([0, 1, 2])
    """
    if values.device.type != "cuda" or values.nbytes <= _SENT_BYTES:
        return np.asarray(values.cpu().numpy())
    flat = values.contiguous().view(-1)
    answer = torch.empty(flat.shape, dtype=flat.dtype)
    size = _SENT_BYTES // flat.element_size()
    with torch.cuda.device(values.device):
        buffers = [torch.empty(size, dtype=flat.dtype, pin_memory=True) for _ in range(2)]
        arrived = [torch.cuda.Event() for _ in range(2)]
        pieces = list(zip(flat.split(size), answer.split(size)))
        for number in range(len(pieces) + 1):
            if number < len(pieces):
                source = pieces[number][0]
                buffers[number % 2][: len(source)].copy_(source, non_blocking=True)
                arrived[number % 2].record()
            if number:
                target = pieces[number - 1][1]
                arrived[(number - 1) % 2].synchronize()
                target.copy_(buffers[(number - 1) % 2][: len(target)])
    return np.asarray(answer.view(values.shape).numpy())


class Runs:
    """Runs of consecutive rows: where each starts, and the end; no run is empty.

    Sums are the same in every run of the program, which atomic operations would not give: runs are
    cut into short pieces, each is reduced by one thread in order, and the pieces in the same way.

    >>> import torch
    >>> from manifoldknn.device.kernels import Runs
    >>> Runs(torch.tensor([0, 2, 5])).sum(torch.ones(5, 1)).ravel().tolist()
    [2.0, 3.0]
    """

    def __init__(self, offsets: Tensor) -> None:
        self.offsets = offsets
        self.n_runs = len(offsets) - 1
        self._levels: list[Tensor] = []
        while self.n_runs and int((offsets[1:] - offsets[:-1]).max()) > _PIECE:
            cut, offsets = in_pieces(offsets, _PIECE)
            self._levels.append(cut)
        self._levels.append(offsets)

    @classmethod
    def of_numbers(cls, numbers: Tensor) -> "Runs":
        """Return the runs of equal numbers."""
        return cls(run_offsets(numbers))

    def max(self, values: Tensor) -> Tensor:
        """Return the maximum of every run, for values of shape (n_rows, n_columns)."""
        return self._reduced(values, "max")

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of every run, for values of shape (n_rows, n_columns)."""
        return self._reduced(values, "sum")

    def log_sum(self, logs: Tensor) -> Tensor:
        """Return log Σ exp of every run, for logarithms of shape (n_rows, n_columns)."""
        top = self.max(logs)
        finite = torch.where(torch.isneginf(top), 0.0, top)
        owner = torch.repeat_interleave(self.offsets.diff())
        return torch.log(self.sum(torch.exp(logs - finite[owner]))) + finite

    def _reduced(self, values: Tensor, how: str) -> Tensor:
        if self.n_runs == 1:  # the usual case, and one that PyTorch is quick at
            whole = values.amax(0) if how == "max" else values.sum(0)
            return whole[None]
        for offsets in self._levels:
            values = torch.segment_reduce(values, how, offsets=offsets, axis=0, unsafe=True)
        return values


def run_offsets(numbers: Tensor) -> Tensor:
    """Return where each run of equal numbers starts, and the length of the whole."""
    first = torch.ones(len(numbers) + 1, dtype=torch.bool, device=numbers.device)
    first[1:-1] = numbers[1:] != numbers[:-1]
    return torch.nonzero(first).squeeze(1)


def ragged(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the places of several stretches one after the other, and which stretch each is of.

    That is ``starts[owner] + 0 … counts[owner] - 1``, and owner; lengths may be 0.
    """
    owner = torch.repeat_interleave(counts)
    before = torch.cumsum(counts, 0) - counts
    places = torch.arange(len(owner), device=counts.device) + (starts - before)[owner]
    return places, owner


def in_pieces(offsets: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Cut runs into pieces; return where pieces start, and the runs of pieces.

    A run of nothing has no piece.
    """
    counts = offsets[1:] - offsets[:-1]
    pieces = (counts + longest - 1) // longest
    number, owner = ragged(torch.zeros_like(pieces), pieces)
    starts = offsets[:-1][owner] + number * longest
    ends = torch.cumsum(pieces, 0)
    return torch.cat([starts, offsets[-1:]]), torch.cat([torch.zeros_like(ends[:1]), ends])


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
