"""What every experiment consists of: cells to measure, rows measured, tables and a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Scalar = str | int | float | bool | None
Row = dict[str, Scalar]
Lines = list[list[Scalar]]  # of a table


@dataclass(frozen=True)
class Plan:
    """How much is measured: if `quick`, less; run r of an experiment draws with `seed` + r."""

    quick: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Cell:
    """The smallest piece of work that is measured and stored.

    Parameters
    ----------
    experiment : str
        Name of the experiment, "fig9".
    key : tuple of str and numbers
        Names the cell within it: ("usps", "kNN", 3).
    seconds : float
        Rough cost on one core, from which the time left is told.
    alone : bool, default=False
        Whether nothing else may run beside it, because it is timed.
    """

    experiment: str
    key: tuple[Scalar, ...]
    seconds: float = field(default=1.0, compare=False)
    alone: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Table:
    """A table of the report: header and rows as they are read; notes stand below it."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Scalar]]
    notes: Sequence[str] = ()


Words = Sequence[str] | Callable[[list[Row], Plan], Sequence[str]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Parameters
    ----------
    name, title : str
        As in the paper's order, "fig1" ... "tab7"; one line.
    columns : sequence of str
        Columns of its CSV: every row that `measure` returns has exactly these.
    cells : callable
        ``cells(plan)`` gives the cells, in the order of the CSV.
    measure : callable
        ``measure(cell, plan)`` gives the rows of one cell. It runs in a process of its own, in
        any order, and gives the same rows every time, timings aside.
    tables : callable
        ``tables(rows, plan)`` gives the tables of the report, published numbers beside ours.
    draw : callable, optional
        ``draw(rows, plan)`` gives a matplotlib figure.
    timings : sequence of str
        The columns that hold times, which no two runs agree on.
    datasets : sequence of str
        Real sets it needs, as `load_paper` names them; checked before anything runs.
    headline : callable, optional
        ``headline(rows, plan)`` gives a short table for the top of the report.
    findings, differences, notes : sequence of str, or callable
        What it shows and what differs from the paper, both told at the top of the report, and
        what else a reader has to know. A callable makes sentences of the rows,
        ``differences(rows, plan)``, so that they cannot contradict them.
    """

    name: str
    title: str
    columns: Sequence[str]
    cells: Callable[[Plan], list[Cell]]
    measure: Callable[[Cell, Plan], list[Row]]
    tables: Callable[[list[Row], Plan], list[Table]]
    draw: Callable[[list[Row], Plan], Any] | None = None
    timings: Sequence[str] = ()
    datasets: Sequence[str] = ()
    headline: Callable[[list[Row], Plan], Table] | None = None
    findings: Words = ()
    differences: Words = ()
    notes: Words = ()
