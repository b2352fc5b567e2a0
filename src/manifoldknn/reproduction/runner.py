"""Measure every cell of a run that is not stored yet."""

import math
import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from typing import TextIO

from tqdm import tqdm

from manifoldknn.reproduction.experiment import Cell, Experiment
from manifoldknn.reproduction.store import Store
from manifoldknn.reproduction.workers import Outcome, Task, outcomes

_TRUSTED = 0.05  # share of the work after which what was measured counts as much as estimates
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

    The time left is the estimated `work` left, in seconds, corrected by how wrong the estimates
    were so far. Of `total` cells, `done` were finished before.
    """

    def __init__(
        self, total: int, done: int, work: float, *, quiet: bool = False, out: TextIO | None = None
    ) -> None:
        self._done, self._work, self._worked, self._name = done, work, 0.0, ""
        self._out = sys.stderr if out is None else out
        self._in_lines = not (quiet or self._out.isatty())
        self._begun = self._told = time.perf_counter()
        self._bar = tqdm(
            total=total, initial=done, file=self._out, disable=quiet or self._in_lines,
            delay=_SOON, leave=False, mininterval=_BETWEEN_BARS, miniters=0, dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar:24}| {desc}",
        )  # fmt: skip

    def advance(self, work: float, name: str) -> None:
        """Count a finished cell, and the work that it was estimated at."""
        self._done += 1
        self._worked += work
        self._name = f"  ({name})"
        self.show(1)

    def seconds_left(self) -> float:
        """Return the time that the rest will take."""
        trusted, taken = _TRUSTED * self._work, time.perf_counter() - self._begun
        slower = (trusted + taken) / (trusted + self._worked) if self._worked else 1.0
        return slower * (self._work - self._worked)

    def show(self, more: int = 0) -> None:
        """Tell how far the run is, if it is time to, with `more` cells than before."""
        total, now = self._bar.total, time.perf_counter()
        text = f"{self._done} of {total} cells"
        if self._done < total:
            left = math.ceil(self.seconds_left())
            text += f", about {duration(left) if left >= 10 else f'{left} s'} left"
        self._bar.set_description_str(text + self._name, refresh=False)
        self._bar.update(more)
        if self._in_lines and (now - self._told >= _BETWEEN_LINES or self._done == total):
            self._told = now
            self.say(f"[manifoldknn] {self._done / total:4.0%}  {text}")

    def say(self, text: str) -> None:
        """Write a line of its own, even if quiet."""
        tqdm.write(text, file=self._out)
        self._out.flush()

    def clear(self) -> None:
        """Take the bar off the terminal."""
        self._bar.close()


def cells_of(experiment: Experiment, store: Store) -> list[Cell]:
    """Return the cells of an experiment, after making sure that they can be told apart."""
    cells = experiment.cells(store.plan)
    if len(set(cells)) < len(cells) or any(c.experiment != experiment.name for c in cells):
        raise ValueError(f"cells of {experiment.name} must differ and bear its name")
    return cells


def measure_cells(
    experiments: Mapping[str, Experiment], store: Store, *, jobs: int, quiet: bool = False,
    out: TextIO | None = None,
) -> None:  # fmt: skip
    """Measure what is missing, first what may run side by side, then what is timed alone.

    Long cells are begun first, so that no process is left with one at the end. Each finished cell
    is stored before anything else happens. A cell that fails does not stop the others. The `jobs`
    processes are kept to one thread each; a cell that runs alone may use all cores. If `quiet`,
    only failures are shown.
    """
    cells = {cell: place for place, e in experiments.items() for cell in cells_of(e, store)}
    tasks = [
        Task(place, cell, store.plan)
        for cell, place in cells.items()
        if store.load(experiments[place], cell) is None
    ]
    alone = [task for task in tasks if task.cell.alone]
    shared = [task for task in tasks if not task.cell.alone]
    shared.sort(key=lambda task: -task.cell.seconds)
    side_by_side = {False: max(1, min(jobs, len(shared))), True: 1}

    def work(cell: Cell) -> float:
        return cell.seconds / side_by_side[cell.alone]

    total_work = sum(work(task.cell) for task in tasks)
    bar = Bar(len(cells), len(cells) - len(tasks), total_work, quiet=quiet, out=out)
    try:
        for batch in filter(None, (shared, alone)):
            bar.show()
            is_alone = batch is alone
            found = outcomes(batch, side_by_side[is_alone], one_thread=not is_alone)
            with closing(found):
                for outcome in found:
                    if outcome is None:
                        bar.show()
                        continue
                    cell = outcome.task.cell
                    _keep(outcome, experiments[cells[cell]], store, bar)
                    bar.advance(work(cell), label(cell))
    finally:
        bar.clear()


def label(cell: Cell) -> str:
    """Return what a cell is called on the screen: "fig9 usps kNN 3"."""
    return " ".join(map(str, (cell.experiment, *cell.key)))


def _keep(outcome: Outcome, experiment: Experiment, store: Store, bar: Bar) -> None:
    cell = outcome.task.cell
    if outcome.rows is not None:
        store.save(experiment, cell, outcome.rows, outcome.seconds)
    else:
        where = outcome.details if os.environ.get("MANIFOLDKNN_DEBUG") else ""
        bar.say(f"{where}manifoldknn: {label(cell)} failed: {outcome.error}")
