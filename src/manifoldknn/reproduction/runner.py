"""Measure every cell of a run that is not stored yet."""

import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TextIO

from tqdm import tqdm

from manifoldknn.reproduction.experiment import Cell, Experiment
from manifoldknn.reproduction.store import Store
from manifoldknn.reproduction.workers import Outcome, Task, Workers

_TRUST, _TRUSTED_SHARE = 5.0, 0.05  # work that estimates are trusted for: seconds, share of all
_SOON, _BETWEEN_BARS = 2.0, 0.1  # seconds: what takes less needs no bar
_BETWEEN_LINES = 10.0  # seconds, where lines cannot be drawn over


def duration(seconds: float) -> str:
    """Return a time in the unit a person would use.

    >>> duration(3.42), duration(42.1), duration(200), duration(7800)
    ('3.4 s', '42 s', '3 min', '2 h 10 min')
    """
    if seconds < 0.05:
        return "under 0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


class Bar:
    """A bar on standard error if that is a terminal, a line now and then elsewhere.

    The time left is the estimated work left, corrected by how wrong the estimates were so far. Of
    `total` cells, `done` were finished before; `shared` are the estimated seconds of work that
    `jobs` processes share, `alone` those of work that runs by itself.
    """

    def __init__(
        self,
        total: int,
        done: int,
        *,
        shared: float,
        alone: float,
        jobs: int,
        quiet: bool = False,
        out: TextIO | None = None,
    ) -> None:
        self.total, self.done = total, done
        self._left = {False: shared, True: alone}
        self._jobs, self._name = jobs, ""
        self._out = sys.stderr if out is None else out
        self._expected = self._taken = min(_TRUST, _TRUSTED_SHARE * (shared + alone)) or 1.0
        self._in_lines = not (quiet or self._out.isatty())
        self._told = time.perf_counter()
        self._bar = tqdm(
            total=total,
            initial=done,
            file=self._out,
            disable=quiet or self._in_lines,
            delay=_SOON,
            leave=False,
            mininterval=_BETWEEN_BARS,
            miniters=0,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar:24}| {desc}",
        )

    def advance(self, expected: float, taken: float, *, alone: bool, name: str) -> None:
        """Count a finished cell: seconds it was to take, and took."""
        self.done += 1
        self._left[alone] -= expected
        self._expected += expected
        self._taken += taken
        self._name = name
        self.show(1)

    @property
    def seconds_left(self) -> float:
        """Time that the rest will take."""
        work = max(self._left[False], 0) / self._jobs + max(self._left[True], 0)
        return work * self._taken / self._expected

    def show(self, more: int = 0) -> None:
        """Tell how far the run is, if it is time to, with `more` cells than before."""
        text, now = f"{self.done} of {self.total} cells", time.perf_counter()
        if self.done < self.total:
            left = math.ceil(self.seconds_left)
            text += f", about {duration(left) if left >= 10 else f'{left} s'} left"
        name = f"  ({self._name})" if self._name else ""
        self._bar.set_description_str(text + name, refresh=False)
        self._bar.update(more)
        if self._in_lines and (now - self._told >= _BETWEEN_LINES or self.done == self.total):
            self._told = now
            self.say(f"[manifoldknn] {self.done / self.total:4.0%}  {text}")

    def say(self, text: str) -> None:
        """Write a line of its own, even if quiet."""
        tqdm.write(text, file=self._out)
        self._out.flush()

    def clear(self) -> None:
        """Take the bar off the terminal."""
        self._bar.close()


@dataclass
class Progress:
    """How far a run came: cells in all, those finished, and those that failed, with why."""

    total: int = 0
    stored: int = 0
    failed: dict[Cell, str] = field(default_factory=dict)


def label(cell: Cell) -> str:
    """Return what a cell is called on the screen: "fig9 usps kNN 3"."""
    return " ".join(map(str, (cell.experiment, *cell.key)))


def cells_of(experiment: Experiment, store: Store) -> list[Cell]:
    """Return the cells of an experiment, after making sure that they can be told apart."""
    cells = experiment.cells(store.plan)
    if len(set(cells)) < len(cells) or any(c.experiment != experiment.name for c in cells):
        raise ValueError(f"cells of {experiment.name} must differ and bear its name")
    return cells


def measure_cells(
    experiments: Mapping[str, Experiment],
    store: Store,
    *,
    jobs: int,
    progress: Progress,
    quiet: bool = False,
    out: TextIO | None = None,
) -> None:
    """Measure what is missing, first what may run side by side, then what is timed alone.

    Long cells are begun first, so that no process is left with one at the end. Each finished cell
    is stored before anything else happens. A cell that fails does not stop the others. The `jobs`
    processes are kept to one thread each; a cell that runs alone may use all cores. `progress` is
    brought up to date after every cell, so that it tells the truth after an interruption too; if
    `quiet`, only failures are shown.
    """
    owners: dict[Cell, Experiment] = {}
    tasks: list[Task] = []
    for place, experiment in experiments.items():
        for cell in cells_of(experiment, store):
            progress.total += 1
            if store.load(experiment, cell) is not None:
                progress.stored += 1
                continue
            owners[cell] = experiment
            tasks.append(Task(place, cell, store.plan))
    alone = [task for task in tasks if task.cell.alone]
    shared = [task for task in tasks if not task.cell.alone]
    shared.sort(key=lambda task: -task.cell.seconds)
    bar = Bar(
        progress.total,
        progress.stored,
        shared=sum(task.cell.seconds for task in shared),
        alone=sum(task.cell.seconds for task in alone),
        jobs=max(1, min(jobs, len(shared))),
        quiet=quiet,
        out=out,
    )
    try:
        for batch, n_workers, one_thread in ((shared, jobs, True), (alone, 1, False)):
            if batch:
                bar.show()
            with Workers(min(n_workers, len(batch)), one_thread=one_thread) as workers:
                for outcome in workers.outcomes(batch):
                    if outcome is None:
                        bar.show()
                    else:
                        _keep(outcome, owners[outcome.task.cell], store, progress, bar)
    finally:
        bar.clear()


def _keep(
    outcome: Outcome, experiment: Experiment, store: Store, progress: Progress, bar: Bar
) -> None:
    cell = outcome.task.cell
    if outcome.rows is None:
        progress.failed[cell] = outcome.error
        where = outcome.details if os.environ.get("MANIFOLDKNN_DEBUG") else ""
        bar.say(f"{where}manifoldknn: {label(cell)} failed: {outcome.error}")
    else:
        store.save(experiment, cell, outcome.rows, outcome.seconds)
        progress.stored += 1
    bar.advance(cell.seconds, outcome.seconds, alone=cell.alone, name=label(cell))
