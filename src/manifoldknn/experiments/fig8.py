"""Mean error against k on the synthetic sets."""

from __future__ import annotations

from typing import Any

from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table
from manifoldknn.experiments.kcurves import COLUMNS, curve_tables, curves_over_k, measured
from manifoldknn.experiments.lines import panels
from manifoldknn.experiments.methods import DEFAULT, NEAREST, PUBLISHED
from manifoldknn.experiments.problems import SYNTHETIC, synthetic

__all__ = ["EXPERIMENT"]

_METHODS = (*NEAREST, PUBLISHED, DEFAULT)
_RUNS, _QUICK_RUNS = 10, 2


def _sizes(plan: Plan) -> tuple[int, ...]:
    return (1, 3, 5, 10) if plan.quick else tuple(range(1, 11))


def _cells(plan: Plan) -> list[Cell]:
    runs = _QUICK_RUNS if plan.quick else _RUNS
    return [
        Cell("fig8", (data, run), seconds=0.05 * len(_sizes(plan)))
        for data in SYNTHETIC
        for run in range(runs)
    ]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, run = str(cell.key[0]), int(cell.key[1] or 0)
    problem = synthetic(data, plan.seed)
    return measured(data, problem, _METHODS, _sizes(plan), run, plan)


def _tables(rows: list[Row], plan: Plan) -> list[Table]:
    return curve_tables(rows, "Mean error (%) against k, synthetic sets", plan)


def _draw(rows: list[Row], plan: Plan) -> Any:
    return panels(
        curves_over_k(rows),
        x_label="k: labelled samples per class, and samples that vote",
        y_label="mean error (%)",
        ticks=_sizes(plan),
    )


EXPERIMENT = Experiment(
    name="fig8",
    title="Mean error against k on the synthetic sets",
    columns=COLUMNS,
    cells=_cells,
    measure=_measure,
    tables=_tables,
    draw=_draw,
    notes=(
        "As the paper says, k is the number of labelled samples drawn from every class; it is also "
        "the number of samples that vote in kNN, wkNN, gkNN and mkNN as published. Our default "
        "always lets five vote.",
        "The paper prints no equations of its sets: these are ours, 400 samples each with bridging "
        "points in the gap. The set stays the same, the labels are drawn anew in every run.",
        "The paper draws this figure and prints none of its numbers.",
    ),
)
