"""Mean error against k on the six real sets."""

from __future__ import annotations

from typing import Any

from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table
from manifoldknn.experiments.kcurves import (
    COLUMNS,
    MEANING_OF_K,
    claims,
    curve_tables,
    draw_over_k,
    measured,
)
from manifoldknn.experiments.methods import DEFAULT, NEAREST, PUBLISHED
from manifoldknn.experiments.problems import real
from manifoldknn.experiments.published import DATA_SETS
from manifoldknn.experiments.width import CHOSEN_WHILE_LOOKING, TUNED_WIDTH

__all__ = ["EXPERIMENT"]

_RUNS, _QUICK_RUNS = 10, 1
# One factorisation of the full graph costs O(n³): so many runs are affordable.
_PUBLISHED_RUNS = {"satlog": 2, "usps": 2, "pendigits": 2}
_QUICK_PUBLISHED = ("segmentation", "banknote", "multifeature")
_NEAREST_SECONDS = {  # per k of one run
    "usps": 1.8,
    "segmentation": 0.15,
    "banknote": 0.06,
    "pendigits": 1.4,
    "multifeature": 0.4,
    "satlog": 0.5,
}
_FULL_SECONDS = {
    "usps": 15.0,
    "segmentation": 0.6,
    "banknote": 0.2,
    "pendigits": 25.0,
    "multifeature": 0.6,
    "satlog": 7.0,
}


def _sizes(plan: Plan) -> tuple[int, ...]:
    return (1, 3, 10) if plan.quick else tuple(range(1, 11))


def _cells(plan: Plan) -> list[Cell]:
    cells, sizes = [], _sizes(plan)
    for data in DATA_SETS:
        runs = _QUICK_RUNS if plan.quick else _RUNS
        seconds = _NEAREST_SECONDS[data] * len(sizes)
        cells += [Cell("fig9", (data, "neighbours", run), seconds) for run in range(runs)]
        if plan.quick and data not in _QUICK_PUBLISHED:
            continue
        for run in range(min(runs, _PUBLISHED_RUNS.get(data, runs))):
            cells += [Cell("fig9", (data, PUBLISHED, run, k), _FULL_SECONDS[data]) for k in sizes]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run = str(cell.key[0]), cell.key[1], int(cell.key[2] or 0)
    if kind == PUBLISHED:
        return measured(data, real(data), (PUBLISHED,), (int(cell.key[3] or 0),), run, plan)
    return measured(data, real(data), (*NEAREST, DEFAULT), _sizes(plan), run, plan)


def _tables(rows: list[Row], plan: Plan) -> list[Table]:
    return [*curve_tables(rows, "Mean error (%) against k, six real sets", plan), claims(rows)]


def _draw(rows: list[Row], plan: Plan) -> Any:
    return draw_over_k(rows, _sizes(plan))


EXPERIMENT = Experiment(
    name="fig9",
    title="Mean error against k on the six real sets",
    columns=COLUMNS,
    cells=_cells,
    measure=_measure,
    tables=_tables,
    draw=_draw,
    datasets=DATA_SETS,
    notes=(
        "Features are scaled to [0, 1]. " + MEANING_OF_K,
        "With one label per class nothing can be tuned: at k = 1 gkNN links ten neighbours.",
        "mkNN as published factorises a full graph, so it has fewer runs on the large sets, and "
        "none in a quick run; run r of all methods has the same labels.",
        CHOSEN_WHILE_LOOKING,
        TUNED_WIDTH,
    ),
)
