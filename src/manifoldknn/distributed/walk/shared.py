"""Machines that share the rows of a graph: `manifoldknn.graph.together` for more than one.

All of it is made of one thing, `Links.exchange`: everybody hands something to everybody. Sums are
taken in the order of ranks, so that all machines get the same bits and take the same turns.

Several walks may go on at once, each in a thread and on a line of its own: while one waits for
another machine, the next computes. What a line hears does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import ContextVar
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.threads import single_threaded_products
from manifoldknn.graph.together import Alone

_SIGN = np.int64(-(2**63))
_ASKED = 256  # places in a range that are asked about at once


LINE: ContextVar[int] = ContextVar("LINE", default=0)  # that a thread's messages go over


class Links(Protocol):
    """Lines from each machine to every other."""

    rank: int
    size: int

    def exchange(self, messages: list[Array]) -> list[Array]:
        """Hand the message of place r to rank r, and return what each rank handed here.

        Messages of one line of `LINE` follow each other.
        """

    def working(self) -> AbstractContextManager[None]:
        """Count one thread more that works."""

    def idle(self) -> AbstractContextManager[None]:
        """Count one thread fewer that works."""


def on_lines(
    links: Links, work: Callable[[Any], Any], items: Sequence[Any], n_threads: int
) -> list[Any]:
    """Return work(item) of all items, some at once, each on a line of its own.

    Items are begun in order: the first that is not done anywhere goes on everywhere, and so nobody
    waits for ever.
    """

    def on_line(numbered: tuple[int, Any]) -> Any:
        number, item = numbered
        LINE.set(number)
        with links.working():
            return work(item)

    with links.idle(), single_threaded_products(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(on_line, enumerate(items, 1)))


class Counted:
    """What went over the lines for halos: bytes and numbers."""

    def __init__(self) -> None:
        self.halo_bytes, self.halo_numbers = 0, 0
        self._lock = Lock()

    def add(self, messages: list[Array]) -> None:
        """Count some messages."""
        with self._lock:
            self.halo_numbers += sum(message.size for message in messages)
            self.halo_bytes += sum(message.nbytes for message in messages)


class Shared(Alone):
    """Own rows and a halo.

    `sent` are the own rows that each rank looks at, `received` how many of its rows each rank hands
    over for the halo, which is in the order of ranks.
    """

    def __init__(
        self, links: Links, n_own: int, sent: list[Ints], received: list[int], counted: Counted
    ) -> None:
        self.links, self.n_own, self.sent, self.received = links, n_own, sent, received
        self.rank, self.size, self.counted = links.rank, links.size, counted

    def own(self, n_rows: int) -> int:
        """Return how many rows are own ones."""
        del n_rows
        return self.n_own

    def sum(self, values: Any) -> Any:
        """Return the sum over machines, in the order of ranks."""
        values = np.asarray(values)
        return np.add.reduce(self.everybody(values), axis=0, dtype=values.dtype)[()]

    def max(self, values: Any) -> Any:
        """Return the maximum over machines."""
        return np.maximum.reduce(self.everybody(np.asarray(values)), axis=0)[()]

    def everybody(self, values: Array) -> list[Array]:
        """Return what every machine has here, in the order of ranks."""
        return self.links.exchange([values] * self.size)

    def gathered(self, values: Array) -> Array:
        """Return what all machines have, one after the other."""
        return np.concatenate(self.everybody(values))

    def halo(self, values: Any) -> Any:
        """Return values of own rows, and after them those of the halo."""
        own = values[: self.n_own]
        return np.concatenate([own, *self.links.exchange(self._handed(own))])

    def halo_and_sum(self, values: Any, terms: Any) -> tuple[Any, Any]:
        """Return the `halo` of values and the `sum` of terms of their type, asked for at once."""
        own, width = values[: self.n_own], values.shape[1]
        handed = [np.append(block.ravel(), terms) for block in self._handed(own)]
        heard = self.links.exchange(handed)
        cuts = [len(message) - terms.size for message in heard]
        ghosts = [message[:cut].reshape(-1, width) for message, cut in zip(heard, cuts)]
        total = np.zeros_like(terms)
        for message, cut in zip(heard, cuts):
            total += message[cut:].reshape(terms.shape)
        return np.concatenate([own, *ghosts]), total

    def gathered_and_sum(self, values: Any, terms: Floats) -> tuple[Any, Any]:
        """Return what all machines have, and the `sum` of terms, asked for at once."""
        # Terms are sums in the precision of the values: nothing is lost.
        told = np.append(values.ravel(), terms.astype(values.dtype))
        heard = self.everybody(told)
        cuts = [len(message) - terms.size for message in heard]
        blocks = [message[:cut].reshape(-1, values.shape[1]) for message, cut in zip(heard, cuts)]
        ends = [message[cut:].reshape(terms.shape) for message, cut in zip(heard, cuts)]
        return np.concatenate(blocks), np.add.reduce(ends, axis=0, dtype=np.float64)

    def _handed(self, own: Array) -> list[Array]:
        """Return what each rank gets of own rows for its halo, and count it."""
        handed = [np.ascontiguousarray(own[rows]) for rows in self.sent]
        self.counted.add(handed)
        return handed

    def log_sum(self, logs: Array) -> Array:
        """Return log Σ exp over machines."""
        top = self.max(logs)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.sum(np.exp(logs - finite))) + finite)

    def median(self, values: Array) -> float:
        """Return the median of the values of all machines, as `np.median` does, by counting."""
        ordered = np.sort(values.astype(np.float64))
        total = int(self.sum(len(ordered)))
        middle = sorted({(total - 1) // 2, total // 2})
        return float(np.mean([self._ranked(ordered, place) for place in middle]))

    def _ranked(self, ordered: Floats, place: int) -> float:
        """Return the number at a place among the sorted numbers of all machines."""
        # Bits of floats, as integers in the same order; every question narrows their range.
        low, high, keys = -(2**63), 2**63 - 1, _keys(ordered)
        while low < high:
            step = -(-(high - low) // _ASKED)
            asked = [min(low + step * at, high) for at in range(_ASKED + 1)]
            below = self.sum(np.searchsorted(keys, np.array(asked, dtype=np.int64), side="right"))
            at = int((below <= place).sum())  # the first that is not below
            low, high = asked[at - 1] + 1 if at else low, asked[at]
        key = np.array([low], dtype=np.int64)
        return float(np.where(key < 0, _SIGN - key - 1, key).view(np.float64)[0])

    def joined(self, part: Ints, log_s: Any, group: Ints) -> Ints:
        """Return parts of own rows, joined over entries with the halo and over groups."""
        n = self.n_own
        first = np.cumsum(self.everybody(np.array(part.max(initial=-1) + 1)))
        total, part = int(first[-1]), part + (first[self.rank - 1] if self.rank else 0)
        numbers = self.halo(part)
        across = sparse.coo_array(log_s[:, n:])
        linked = np.flatnonzero(group >= 0)
        pairs = np.concatenate(
            [
                np.column_stack([part[across.row], numbers[n + across.col]]),
                np.column_stack([part[linked], total + group[linked]]),
            ]
        ).astype(np.int64)
        pairs = self.gathered(np.unique(pairs, axis=0).reshape(-1, 2))
        size = max(total, int(pairs.max(initial=-1)) + 1)
        ones = np.ones(len(pairs), dtype=np.int8)
        graph = sparse.coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(size, size))
        found = csgraph.connected_components(graph.tocsr(), directed=False)[1][:total]
        number = np.unique(found, return_inverse=True)[1].astype(np.intp)
        return np.asarray(number[part])

    def shared_rows(self) -> Ints:
        """Return rows that others look at, and the halo."""
        ghosts = np.arange(self.n_own, self.n_own + sum(self.received))
        return np.concatenate([*self.sent, ghosts]).astype(np.intp)

    def restricted(self, rows: Ints) -> tuple[Ints, Shared]:
        """Return which rows of the halo are left beside some own rows, and who shares those."""
        place = np.full(self.n_own, -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        left = self.halo(place >= 0)[self.n_own :]
        sent = [place[theirs][place[theirs] >= 0] for theirs in self.sent]
        ends = np.cumsum([0, *self.received])
        received = [int(left[a:b].sum()) for a, b in pairwise(ends)]
        ghosts = self.n_own + np.flatnonzero(left)
        return ghosts, Shared(self.links, len(rows), sent, received, self.counted)


def _keys(numbers: Floats) -> NDArray[np.int64]:
    """Return integers in the order of floats."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, _SIGN - bits - 1, bits)
