"""Measure every cell of a run that is not stored yet."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TextIO

from manifoldknn.reproduction.experiment import Cell, Experiment
from manifoldknn.reproduction.figures.bar import Bar
from manifoldknn.reproduction.store import Store
from manifoldknn.reproduction.workers import Outcome, Task, Workers


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
