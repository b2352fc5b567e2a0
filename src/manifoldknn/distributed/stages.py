"""The stages of a fit, from the client: who makes which piece, and what happens if a worker goes.

Tasks of all stages but the walk are independent: Dask runs those of a lost worker elsewhere. The
walk is one task per worker, and begins again on whoever is left.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

import manifoldknn.distributed.pieces as pieces
from manifoldknn.base.heap import freed_arrays_kept
from manifoldknn.distributed.folder import Folder
from manifoldknn.distributed.walk.lines import DaskLinks, abandon, open_inbox
from manifoldknn.distributed.walk.walking import OwnRows, walked_together
from manifoldknn.exceptions import ClusterLostError

logger = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds without any worker
_ATTEMPTS = 6  # of a walk
_BETWEEN_LOOKS = 0.25  # seconds until somebody looks whether workers are there


class Stages:
    """Runs stages on a cluster, and counts their seconds; pieces that are there are not made."""

    def __init__(self, client: Any, folder: Folder, say: Callable[[str], None]) -> None:
        self.client, self.folder = client, folder
        self.seconds: dict[str, float] = {}
        self.walk_tasks = 0
        self._say = say

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count the seconds of something, and say so."""
        begun = time.perf_counter()
        yield
        took = time.perf_counter() - begun
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self._say(f"{name}: {took:.1f} s")

    def run(
        self, stage: str, make: Callable[..., Any], how: list[tuple[Any, ...]]
    ) -> list[dict[str, Any]]:
        """Make all pieces of a stage and return their notes."""
        import dask

        notes = [self.folder.note(stage, number) for number in range(len(how))]
        missing = [number for number, note in enumerate(notes) if note is None]
        path = str(self.folder.path)
        with self.timed(stage):
            tasks = [
                dask.delayed(pieces.made, pure=False)(path, stage, number, make, *how[number])
                for number in missing
            ]
            for number, note in zip(missing, self._results(tasks, stage)):
                notes[number] = note
        return [note for note in notes if note is not None]

    def _results(self, tasks: list[Any], stage: str) -> list[Any]:
        if not tasks:
            return []
        futures = self.client.compute(tasks, retries=0)
        self.wait(futures, stage)
        return list(self.client.gather(futures))

    def wait(self, futures: list[Any], stage: str) -> None:
        """Wait until tasks are done; raise what they raised, or that the workers are gone."""
        seen, stirred = time.monotonic(), _stirred_by(futures)
        while True:
            stirred.clear()
            done = [future for future in futures if future.done()]
            failed = next((future for future in done if future.status != "finished"), None)
            if failed is not None:
                told = _told(failed, stage)
                self.client.cancel(futures, force=True)
                raise told
            if len(done) == len(futures):
                return
            if self.workers():
                seen = time.monotonic()
            elif time.monotonic() - seen > _PATIENCE:
                self.client.cancel(futures, force=True)
                raise ClusterLostError(
                    f"No worker has been there for {_PATIENCE:.0f} seconds during {stage!r}: start "
                    "workers, and go on with resume=True where there is a checkpoint."
                )
            stirred.wait(_BETWEEN_LOOKS)

    def workers(self) -> list[str]:
        """Return the addresses of the workers that are there; none if the scheduler is gone."""
        try:
            return sorted(self.client.nthreads())
        except (OSError, ValueError, TimeoutError):
            return []

    def walk(self, n_rows: list[int], most: int, *how: Any, **settings: Any) -> dict[str, Any]:
        """Walk on as many workers as are there, `most` at most, until one walk ends well."""
        notes = [self.folder.note("walk", number) for number in range(len(n_rows))]
        if len({note and note["run"] for note in notes}) == 1 and notes[0] is not None:
            return _together([note for note in notes if note is not None])
        with self.timed("walk"):
            for attempt in range(_ATTEMPTS):
                note = self._walked(n_rows, most, how, settings, last=attempt == _ATTEMPTS - 1)
                if note is not None:
                    return note
        raise ClusterLostError(f"Workers went in each of {_ATTEMPTS} walks: look at their logs.")

    def _walked(
        self, n_rows: list[int], most: int, how: Any, settings: Any, *, last: bool
    ) -> dict[str, Any] | None:
        begun = time.monotonic()
        while not self.workers():
            if time.monotonic() - begun > _PATIENCE:
                raise ClusterLostError(
                    f"No worker has been there for {_PATIENCE:.0f} seconds before 'walk': start "
                    "workers, and go on with resume=True where there is a checkpoint."
                )
            time.sleep(0.2)
        addresses = self.workers()[: min(most, len(n_rows))]
        try:
            self.client.run(open_inbox, workers=addresses)
        except Exception as error:  # a worker that went just now
            logger.info("a worker went before the walk: %s", error)
            return None
        shares = shared_out(n_rows, len(addresses))
        run, path = uuid.uuid4().hex, str(self.folder.path)
        self.walk_tasks = len(addresses)
        futures = [
            self.client.submit(
                walk_task, path, run, rank, addresses, shares, n_rows, *how, **settings,
                workers=[address], pure=False, retries=0,
            )
            for rank, address in enumerate(addresses)
        ]  # fmt: skip
        stirred = _stirred_by(futures)
        while not set(addresses) - set(self.workers()):
            stirred.clear()
            states = {future.status for future in futures}
            if "error" in states or "pending" not in states:
                break
            stirred.wait(_BETWEEN_LOOKS)
        failed = next((future for future in futures if future.status != "finished"), None)
        if failed is None:
            notes = [self.folder.note("walk", number) or {} for number in range(len(n_rows))]
            # Somebody of a walk before may have been slow to notice that it had failed.
            return _together(notes) if {note.get("run") for note in notes} == {run} else None
        with suppress(Exception):  # workers may be going just now
            self.client.run(abandon, run, on_error="ignore")
        time.sleep(0.5)
        causes = [future.exception() for future in futures if future.status == "error"]
        self.client.cancel(futures, force=True)
        serious = [cause for cause in causes if not isinstance(cause, OSError | RuntimeError)]
        if serious or (last and causes):
            raise (serious or causes)[0]
        logger.info("the walk begins again on whoever is left")
        return None


def _stirred_by(futures: list[Any]) -> threading.Event:
    """Return what is set whenever one of some futures is done."""
    stirred = threading.Event()
    for future in futures:
        future.add_done_callback(lambda _: stirred.set())
    return stirred


def _together(notes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a walk says, given what each worker notes."""
    ranks = {note["rank"]: note for note in notes}.values()
    slowest = max(ranks, key=lambda note: float(note["seconds"]))
    sums = {name: sum(note[name] for note in ranks) for name in ("halo_bytes", "halo_numbers")}
    return {**slowest, **sums}


def _told(future: Any, stage: str) -> BaseException:
    """Return the error of a task in words of ours where it is Dask's."""
    from distributed import KilledWorker

    error = future.exception() if future.status == "error" else None
    if isinstance(error, KilledWorker):
        return ClusterLostError(
            f"Workers were killed again and again during {stage!r}, perhaps for lack of memory: "
            "give them more, or raise n_parts."
        )
    return error or ClusterLostError(f"A task of {stage!r} was lost with its scheduler.")


def shared_out(n_rows: list[int], n_workers: int) -> list[int]:
    """Return where the parts of each worker begin, such that all have about equally many rows.

    >>> shared_out([5, 5, 5, 5], 2)
    [0, 2, 4]
    """
    ends = np.cumsum(n_rows)
    aims = ends[-1] * np.arange(1, n_workers) / n_workers
    cuts = [int(np.abs(ends - aim).argmin()) + 1 for aim in aims]
    for at in range(len(cuts)):  # everybody gets a part
        least = cuts[at - 1] + 1 if at else 1
        cuts[at] = min(max(cuts[at], least), len(n_rows) - len(cuts) + at)
    return [0, *cuts, len(n_rows)]


def walk_task(
    path: str,
    run: str,
    rank: int,
    addresses: list[str],
    shares: list[int],
    n_rows: list[int],
    n_classes: int,
    prior: list[float],
    graph_neighbors: int,
    **settings: Any,
) -> dict[str, Any]:
    """Walk on one worker, over its parts, with all others."""
    from distributed import get_worker

    folder, offsets = Folder(path), np.concatenate([[0], np.cumsum(n_rows)])
    mine = range(shares[rank], shares[rank + 1])
    begun = time.perf_counter()

    def joined(stage: str, name: str, width: int | None = None) -> Any:
        arrays = [folder.read(stage, p, name, mapped=True) for p in mine]
        return np.concatenate([a if width is None else a[:, :width] for a in arrays])

    rows = OwnRows(
        offsets[shares], joined("edges", "one"), joined("edges", "other"),
        joined("edges", "length"),
        joined("lists", "number", graph_neighbors), lambda: joined("lists", "away"),
        joined("part", "codes").astype(np.intp), joined("part", "order"),
    )  # fmt: skip
    links, done = DaskLinks(run, rank, addresses), False
    try:
        settings |= {"n_jobs": int(get_worker().state.nthreads)}
        with freed_arrays_kept():
            found = walked_together(links, rows, n_classes, np.array(prior), **settings)
        done = True
    finally:
        links.close(done=done)
    note = {
        "run": run, "rank": rank, "sigma": float(found.sigma), "alpha": float(found.alpha),
        "usual": float(found.usual), "sharpness": float(found.sharpness),
        "calibrated": bool(found.calibrated),
        "n_iter": int(found.n_iter), "converged": bool(found.converged),
        "halo_bytes": int(found.halo_bytes), "halo_numbers": int(found.halo_numbers),
        "seconds": time.perf_counter() - begun, "waited": links.seconds,
        "workers": len(addresses),
    }  # fmt: skip
    for p in mine:
        here = slice(offsets[p] - offsets[mine.start], offsets[p + 1] - offsets[mine.start])
        similarities = found.similarities
        arrays = {"logs": similarities.logs[here], "log_scale": similarities.log_scale[here]}
        folder.write("walk", p, note, **arrays)
    return note
