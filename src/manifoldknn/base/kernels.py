"""What the steps ask of arrays, by NumPy; `manifoldknn.device.kernels` answers by PyTorch.

Steps that a processor and a graphics card take alike are written once, over these kernels. What
both libraries call by the same name they take from `xp`; what differs is here. This is not an array
framework: a kernel comes when a step needs it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


class NumpyRuns:
    """Runs of consecutive rows: where each starts, and the end; no run is empty.

    >>> NumpyRuns(np.array([0, 2, 5])).sum(np.ones(5))
    array([2., 3.])
    """

    def __init__(self, offsets: Any) -> None:
        self.offsets = offsets

    def max(self, values: Any) -> Any:
        """Return the maximum of every run."""
        return np.maximum.reduceat(values, self.offsets[:-1])

    def sum(self, values: Any) -> Any:
        """Return the sum of every run."""
        return np.add.reduceat(values, self.offsets[:-1])

    def log_sum(self, logs: Any) -> Any:
        """Return log Σ exp of every run."""
        top = self.max(logs)
        finite = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            sums = self.sum(np.exp(logs - np.repeat(finite, np.diff(self.offsets), axis=0)))
            return finite + np.log(sums)


class Kernels:
    """The kernels by NumPy; those of a device are a subclass."""

    xp: Any = np
    rows_at_once = 1 << 12  # of a block that is looked through row by row, in the cache

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Return a NumPy array as one of here."""
        return np.asarray(values, dtype=dtype)

    def host(self, values: Any) -> Any:
        """Return an array of here as one of NumPy."""
        return values

    def arange(self, n: int) -> Any:
        """Return 0, 1, … n - 1, in 64 bits."""
        return np.arange(n)

    def full(self, shape: int | tuple[int, int], value: float) -> Any:
        """Return a number so many times, in double precision."""
        return np.full(shape, value)

    def long(self, values: Any) -> Any:
        """Return whole numbers in 64 bits, which hold the number of any pair of rows."""
        return values.astype(np.int64, copy=False)

    def mask(self, rows: Any, n: int) -> Any:
        """Return n truth values, true for some rows."""
        mask = np.zeros(n, dtype=bool)
        mask[rows] = True
        return mask

    def inverse(self, rows: Any, n: int) -> Any:
        """Return where each of n rows stands among some; -1 if it does not."""
        place = self.arange(n)
        place[:] = -1
        place[rows] = self.arange(len(rows))
        return place

    def places(self, mask: Any) -> Any:
        """Return where a mask is true."""
        return self.xp.where(mask)[0]

    def repeat(self, values: Any, count: int) -> Any:
        """Return every value so many times, one after the other."""
        return np.repeat(values, count)

    def order(self, *keys: Any) -> Any:
        """Return the order by the last key; equal ones by the key before, and so on."""
        return np.lexsort(keys)

    def distinct(self, numbers: Any) -> Any:
        """Return the distinct numbers, sorted; much quicker than np.unique on integers."""
        numbers = np.sort(numbers)
        return numbers[self.is_first(numbers)]

    def is_first(self, numbers: Any) -> Any:
        """Tell which numbers differ from the one before."""
        first = self.xp.ones_like(numbers, dtype=bool)
        first[1:] = numbers[1:] != numbers[:-1]
        return first

    def contains(self, ordered: Any, numbers: Any) -> tuple[Any, Any]:
        """Tell which numbers stand in an ordered array, not empty, and where they do."""
        at = self.xp.clip(self.xp.searchsorted(ordered, numbers), None, len(ordered) - 1)
        return ordered[at] == numbers, at

    def median(self, values: Any) -> float:
        """Return the median, the mean of both middle values of an even number."""
        return float(np.median(values))

    def runs(self, offsets: Any) -> Any:
        """Return the runs that start at all offsets but the last, which is the end."""
        return NumpyRuns(offsets)

    def runs_of(self, numbers: Any) -> Any:
        """Return the runs of equal numbers."""
        return NumpyRuns(np.append(np.flatnonzero(self.is_first(numbers)), len(numbers)))

    def at_least(self, values: Any, least: float, out: Any = None) -> Any:
        """Return values, or `least` where they are less."""
        return np.maximum(values, least, out=out)

    def at_most(self, values: Any, most: float, out: Any = None) -> Any:
        """Return values, or `most` where they are more."""
        return np.minimum(values, most, out=out)

    def log(self, values: Any, out: Any = None) -> Any:
        """Return logarithms, without a word -inf of 0."""
        with np.errstate(divide="ignore"):
            return np.log(values, out=out)

    def total(self, terms: Any) -> Any:
        """Return the sum over the first axis, in order: the same however many columns there are.

        `np.sum` picks an order by the size of the array.
        """
        total = np.zeros(terms.shape[1:])
        for term in terms:
            total += term
        return total

    def combined(self, terms: Any, weights: Any) -> Any:
        """Return Σ_i terms[i]·weights[i], in order."""
        total = np.zeros(terms.shape[1:])
        for term, weight in zip(terms, weights):
            total += term * weight
        return total

    def packed(self, chosen: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
        """Return what is chosen in every column, moved to the front.

        Row numbers, as many rows of them as the fullest column needs; how many a column has (what
        comes after is any row); and what puts values back where they belong, with 0 elsewhere.
        Values after those that a column has must be 0.
        """
        counts = np.cumsum(chosen, axis=0)
        member, column = np.nonzero(chosen)
        slot = counts[member, column] - 1
        index = np.zeros((int(counts[-1].max()), chosen.shape[1]), dtype=np.intp)
        index[slot, column] = member

        def put_back(values: Any) -> Any:
            out = np.zeros(chosen.shape)
            out[member, column] = values[slot, column]
            return out

        return index, counts[-1], put_back


NUMPY = Kernels()
