"""Lines between the workers of a Dask cluster, by Dask's own comms.

A worker keeps an inbox for every walk. Others connect to it as Dask does, in the protocol and with
the security of the cluster, and write arrays one after the other. The long task of a worker sends
over the event loop of its worker and waits at its inbox. A line that breaks wakes whoever waits.
"""

from __future__ import annotations

import asyncio
import queue
import time
from contextlib import suppress
from typing import Any

import numpy as np

from manifoldknn.base import Array

_OP = "manifoldknn_line"
_SMALL = 1 << 16  # bytes
_PATIENCE = 60.0  # seconds until another worker must have begun its task
_INBOXES: dict[tuple[str, int], dict[int, queue.Queue[Any]]] = {}
_ABANDONED: set[str] = set()  # walks


class LineBroken(RuntimeError):
    """Another worker has gone during a walk."""


def inbox(run: str, rank: int, sender: int) -> queue.Queue[Any]:
    """Return where a rank finds what another one sends in a walk."""
    return _INBOXES.setdefault((run, rank), {}).setdefault(sender, queue.Queue())


async def _listen(comm: Any, run: str = "", to: int = 0, sender: int = 0) -> str:
    """Put what comes over a line into an inbox, until it is closed."""
    box = inbox(run, to, sender)
    try:
        while True:
            message = await comm.read()
            if message.get("end"):
                break
            if "bytes" in message:
                array = np.frombuffer(message["bytes"], message["type"])
                box.put(array.reshape(message["shape"]))
            else:
                box.put(message["array"])
    except Exception:  # whatever closed it, nothing more will come
        box.put(None)
    return "dont-reply"


def open_inbox(dask_worker: Any) -> str:
    """Let a worker answer those who connect; run by the client on every worker."""
    dask_worker.handlers[_OP] = _listen
    return str(dask_worker.address)


def abandon(run: str) -> None:
    """Wake who waits in a walk that has failed elsewhere; run by the client on every worker."""
    _ABANDONED.add(run)


class DaskLinks:
    """Lines from the worker of a rank to the workers of all others, while a walk goes on."""

    def __init__(self, run: str, rank: int, addresses: list[str]) -> None:
        from distributed import get_worker

        self.run, self.rank, self.size = run, rank, len(addresses)
        self.seconds = 0.0
        self._worker: Any = get_worker()
        self._comms: dict[int, Any] = {}
        self._loop = self._worker.loop.asyncio_loop
        open_inbox(self._worker)
        self._do(self._connect(addresses))
        self._begun = False

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _connect(self, addresses: list[str]) -> None:
        from distributed.comm import connect

        for rank, address in enumerate(addresses):
            if rank != self.rank:
                comm = await connect(address, **self._worker.connection_args)
                told = {"op": _OP, "run": self.run, "to": rank, "sender": self.rank}
                await comm.write({**told, "reply": False})
                self._comms[rank] = comm

    def exchange(self, messages: list[Array]) -> list[Array]:
        """Hand the message of place r to rank r, and return what each rank handed here."""
        begun = time.perf_counter()
        if self.size > 1:
            self._do(self._send(messages))
        out = [
            np.asarray(messages[rank]) if rank == self.rank else self._next(rank)
            for rank in range(self.size)
        ]
        self.seconds += time.perf_counter() - begun
        return out

    async def _send(self, messages: list[Array]) -> None:
        from distributed.protocol import to_serialize

        try:
            for rank, comm in self._comms.items():
                array = np.asarray(messages[rank])
                if array.nbytes > _SMALL:
                    await comm.write({"array": to_serialize(np.ascontiguousarray(array))})
                else:  # much sooner than by Dask's headers
                    plain = {"type": array.dtype.str, "shape": array.shape}
                    await comm.write({**plain, "bytes": array.tobytes()})
        except OSError as error:
            raise LineBroken("Another worker has gone during the walk.") from error

    def _next(self, rank: int) -> Array:
        box, waited = inbox(self.run, self.rank, rank), 0.0
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
            self._do(end())
        _INBOXES.pop((self.run, self.rank), None)
