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
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pkgutil import resolve_name
from typing import NamedTuple

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


class _Worker:
    """A process that measures a task at a time, in one thread if `one_thread`."""

    def __init__(self, *, one_thread: bool) -> None:
        # Not forked: threads of the matrix library do not survive that.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _surroundings(_ONE_THREAD if one_thread else {}):
            self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self._task, self._since = task, time.perf_counter()
        with suppress(OSError):  # it has died: found out when its answer does not come
            self.connection.send(task)

    def answer(self) -> Outcome:
        try:
            return Outcome(self._task, *self.connection.recv())
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = f"signal {-code}, perhaps for want of memory" if code < 0 else f"exit code {code}"
            seconds = time.perf_counter() - self._since
            return Outcome(self._task, None, seconds, f"its process ended ({how})")

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def outcomes(
    tasks: Sequence[Task], n_workers: int, *, one_thread: bool
) -> Generator[Outcome | None]:
    """Work through tasks, begun in their order, by a few processes.

    Outcomes come in the order in which they are ready; None now and then while none is. A process
    that dies is replaced. All end when the generator is closed, or when their parent dies.
    """
    pending = deque(tasks)
    busy: dict[object, _Worker] = {}
    try:
        while pending or busy:
            while pending and len(busy) < n_workers:
                worker = _Worker(one_thread=one_thread)
                busy[worker.connection] = worker
                worker.give(pending.popleft())
            ready = wait([worker.connection for worker in busy.values()], _TICK)
            if not ready:
                yield None
            for connection in ready:
                worker = busy[connection]
                outcome = worker.answer()
                if pending and worker.process.is_alive():  # at once: the caller may take its time
                    worker.give(pending.popleft())
                else:
                    busy.pop(connection).end()
                yield outcome
    finally:
        for worker in busy.values():
            worker.end()


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
