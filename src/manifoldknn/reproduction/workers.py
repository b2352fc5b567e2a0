"""Processes that measure cells beside each other, and what becomes of them."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pkgutil import resolve_name
from typing import Any, NamedTuple, Self

from threadpoolctl import threadpool_limits

from manifoldknn.reproduction.experiment import Cell, Plan, Row
from manifoldknn.reproduction.store import plain_rows

# What keeps the matrix library, OpenMP and joblib at one thread, if set before they are loaded.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "LOKY_MAX_CPU_COUNT"), "1",
)  # fmt: skip
_TICK = 0.5  # seconds between signs of life while nothing ends


class Task(NamedTuple):
    """A cell, and where the experiment that measures it is found, "package.module:NAME"."""

    place: str
    cell: Cell
    plan: Plan


class Outcome(NamedTuple):
    """What became of a task: its rows, or an error in one line (and where it came from)."""

    task: Task
    rows: list[Row] | None
    seconds: float
    error: str = ""
    details: str = ""


@dataclass
class _Worker:
    process: Any
    connection: Connection
    task: Task | None = None
    since: float = 0.0

    def give(self, task: Task) -> None:
        self.task, self.since = task, time.perf_counter()
        with suppress(OSError):  # it has died: found out when its answer does not come
            self.connection.send(task)


class Workers:
    """A few processes that live until the block ends, however it ends.

    They are started anew rather than forked, since threads of the matrix library do not survive a
    fork. A process that dies is replaced; one whose parent dies ends itself. If `one_thread`, each
    is kept to one thread.
    """

    def __init__(self, n_workers: int, *, one_thread: bool) -> None:
        self._n_workers, self._one_thread = n_workers, one_thread
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[Outcome | None]:
        """Work through tasks, begun in their order.

        Outcomes come in the order in which they are ready; None now and then while none is.
        """
        pending = deque(tasks)
        while len(self._workers) < min(self._n_workers, len(pending)):
            self._workers.append(self._started())
        for worker in self._workers:
            if pending:
                worker.give(pending.popleft())
        while busy := {w.connection: w for w in self._workers if w.task is not None}:
            ready = wait(list(busy), _TICK)
            if not ready:
                yield None
            for connection in ready:
                worker = busy[connection]  # type: ignore[index]
                outcome, worker = self._answer(worker)
                if pending:  # at once: the caller may take its time
                    worker.give(pending.popleft())
                yield outcome

    def _answer(self, worker: _Worker) -> tuple[Outcome, _Worker]:
        """Take a worker's answer; put another in its place if it has died."""
        task, seconds = worker.task, time.perf_counter() - worker.since
        assert task is not None
        worker.task = None
        try:
            rows, seconds, error, details = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            worker.connection.close()
            code = worker.process.exitcode
            how = f"signal {-code}, perhaps for want of memory" if code < 0 else f"exit code {code}"
            self._workers.remove(worker)
            worker = self._started()
            self._workers.append(worker)
            return Outcome(task, None, seconds, f"its process ended ({how})"), worker
        return Outcome(task, rows, seconds, error, details), worker

    def _started(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _surroundings(_ONE_THREAD if self._one_thread else {}):
            process.start()
        theirs.close()
        return _Worker(process, ours)


@contextmanager
def _surroundings(variables: dict[str, str]) -> Iterator[None]:
    """Let processes that start in the block inherit variables and a deaf ear for Ctrl-C."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _work(connection: Connection) -> None:
    """Measure what comes until nothing more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # standard output is the command's own
    limit = 1 if os.environ.get("LOKY_MAX_CPU_COUNT") == "1" else None
    with suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            # What matters is told in the notes.
            with warnings.catch_warnings(action="ignore"), threadpool_limits(limit):
                answer = _measured(task)
            connection.send(answer)


def _measured(task: Task) -> tuple[list[Row] | None, float, str, str]:
    start = time.perf_counter()
    try:
        experiment = resolve_name(task.place)
        start = time.perf_counter()  # imports are no part of the work
        rows = plain_rows(experiment.measure(task.cell, task.plan), experiment.columns)
        return rows, time.perf_counter() - start, "", ""
    except Exception as error:
        taken = time.perf_counter() - start
        return None, taken, f"{type(error).__name__}: {error}", traceback.format_exc()


def _end_with_parent() -> None:
    """End at once when the parent is gone: nobody would hear the answer."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        sys.stderr.flush()
        os._exit(1)
