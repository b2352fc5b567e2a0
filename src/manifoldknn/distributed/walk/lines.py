"""Lines between the workers of a Dask cluster, by Dask's own comms.

A worker keeps an inbox for every walk. Others connect to it as Dask does, in the protocol and with
the security of the cluster, and write arrays one after the other. The long task of a worker hands
arrays to the event loop of its worker and waits at its inbox. What its threads hand over while the
loop is busy goes in one message. A line that breaks wakes whoever waits.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import numpy as np

from manifoldknn.base import Array
from manifoldknn.distributed.walk.shared import LINE

_OP = "manifoldknn_line"
_SMALL = 1 << 16  # bytes
_PATIENCE = 60.0  # seconds until another worker must have begun its task
_ABANDONED: set[str] = set()  # walks


class LineBroken(RuntimeError):
    """Another worker has gone during a walk."""


class _Inbox:
    """What others sent in a walk, in the order of each line."""

    def __init__(self) -> None:
        self._boxes: defaultdict[tuple[int, int], queue.SimpleQueue[Any]]
        self._boxes = defaultdict(queue.SimpleQueue)
        self._lock = Lock()

    def of(self, sender: int, line: int) -> queue.SimpleQueue[Any]:
        """Return where a line finds what a rank sends."""
        with self._lock:
            return self._boxes[sender, line]

    def broken(self, sender: int) -> None:
        """Wake who waits for a rank."""
        with self._lock:
            for (rank, _), box in self._boxes.items():
                if rank == sender:
                    box.put(None)


_INBOXES: defaultdict[tuple[str, int], _Inbox] = defaultdict(_Inbox)  # of a walk and a rank


async def _listen(comm: Any, run: str = "", to: int = 0, sender: int = 0) -> str:
    """Put what comes over a line into an inbox, until it is closed."""
    inbox = _INBOXES[run, to]
    try:
        while True:
            message = await comm.read()
            if message.get("end"):
                break
            for line, kind, shape, content in message["arrays"]:
                inbox.of(sender, line).put(_unpacked(kind, shape, content))
    except Exception:  # whatever closed it, nothing more will come
        inbox.broken(sender)
    return "dont-reply"


def _packed(line: int, array: Array) -> tuple[int, str, tuple[int, ...], Any]:
    """Return an array on a line as it is sent; whoever has it may change it then."""
    from distributed.protocol import to_serialize

    if array.nbytes > _SMALL:
        return line, "", (), to_serialize(np.array(array, order="C"))
    return line, array.dtype.str, array.shape, array.tobytes()  # much sooner than by Dask's headers


def _unpacked(kind: str, shape: tuple[int, ...], content: Any) -> Array:
    return np.frombuffer(content, kind).reshape(shape) if kind else content


def open_inbox(dask_worker: Any) -> str:
    """Let a worker answer those who connect; run by the client on every worker."""
    dask_worker.handlers[_OP] = _listen
    return str(dask_worker.address)


def abandon(run: str) -> None:
    """Wake who waits in a walk that has failed elsewhere; run by the client on every worker."""
    _ABANDONED.add(run)


class DaskLinks:
    """Lines from the worker of a rank to the workers of all others, while a walk goes on.

    `seconds` are those in which no thread of the walk worked, because all waited for others.
    """

    def __init__(self, run: str, rank: int, addresses: list[str]) -> None:
        from distributed import get_worker

        self.run, self.rank, self.size = run, rank, len(addresses)
        self.seconds = 0.0
        self._lock, self._working, self._since = Lock(), 1, 0.0
        self._worker: Any = get_worker()
        self._comms: dict[int, Any] = {}
        self._outgoing: dict[int, list[Any]] = {}
        self._is_sending = False
        self._sending: Any = None
        self._inbox: Any = None
        self._loop = self._worker.loop.asyncio_loop
        open_inbox(self._worker)
        self._do(self._connect(addresses))
        self._begun = False

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _connect(self, addresses: list[str]) -> None:
        from distributed.comm import connect

        self._inbox = _INBOXES[self.run, self.rank]  # here, where listeners ask for it too
        for rank, address in enumerate(addresses):
            if rank != self.rank:
                comm = await connect(address, **self._worker.connection_args)
                told = {"op": _OP, "run": self.run, "to": rank, "sender": self.rank}
                await comm.write({**told, "reply": False})
                self._comms[rank], self._outgoing[rank] = comm, []

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count one thread more that works."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Count one thread fewer that works."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def _count(self, more: int) -> None:
        with self._lock:
            now = time.perf_counter()
            if not self._working:
                self.seconds += now - self._since
            self._working, self._since = self._working + more, now

    def exchange(self, messages: list[Array]) -> list[Array]:
        """Hand the message of place r to rank r, and return what each rank handed here."""
        line, arrays = LINE.get(), [np.asarray(message) for message in messages]
        if self.size == 1:
            return arrays
        packed = [(rank, _packed(line, arrays[rank])) for rank in self._comms]
        with self._lock:
            for rank, message in packed:
                self._outgoing[rank].append(message)
            begins, self._is_sending = not self._is_sending, True
        if begins:
            self._sending = asyncio.run_coroutine_threadsafe(self._send(), self._loop)
        with self.idle():
            return [
                arrays[rank] if rank == self.rank else self._next(rank, line)
                for rank in range(self.size)
            ]

    async def _send(self) -> None:
        """Write what there is to be written, until there is nothing more."""
        while True:
            with self._lock:
                waiting = {rank: arrays for rank, arrays in self._outgoing.items() if arrays}
                self._outgoing = {rank: [] for rank in self._comms}
                self._is_sending = bool(waiting)
            if not waiting:
                return
            for rank, arrays in waiting.items():
                try:
                    await self._comms[rank].write({"arrays": arrays})
                except Exception:  # whatever closed it, nothing more will go
                    self._inbox.broken(rank)

    def _next(self, rank: int, line: int) -> Array:
        box, waited = self._inbox.of(rank, line), 0.0
        while True:
            try:
                found = box.get(timeout=1.0)
            except queue.Empty:
                waited += 1.0
                lost = self._comms[rank].closed() or self.run in _ABANDONED
                if lost or (not self._begun and waited > _PATIENCE):
                    raise LineBroken("Another worker has gone during the walk.") from None
                continue
            if found is None:
                raise LineBroken("Another worker has gone during the walk.")
            self._begun = True
            return np.asarray(found)

    def close(self, *, done: bool) -> None:
        """Close all lines; if the walk is not done, the others are woken by that."""

        async def end() -> None:
            for comm in self._comms.values():
                if done:
                    await comm.write({"end": True})
                    await comm.close()
                else:
                    comm.abort()

        with suppress(OSError):
            if done and self._sending is not None:
                self._sending.result()  # one message at a time
            self._do(end())
        _INBOXES.pop((self.run, self.rank), None)
