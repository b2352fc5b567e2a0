"""Figure 1: plain nearest neighbours go wrong on an arch and a mirrored S."""

from __future__ import annotations

from typing import Any

from manifoldknn.datasets import make_arch_and_s
from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table
from manifoldknn.experiments.toys import (
    OUR_SETS,
    answer,
    draw_samples,
    error_percent,
    new_figure,
    sample_rows,
)

__all__ = ["EXPERIMENT"]

_NAME = "fig1"
_VOTERS = (1, 2, 3)


def _cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
    return [Cell(_NAME, ("kNN",), seconds=0.1)]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    X, truth, labeled = make_arch_and_s(random_state=plan.seed)
    method = str(cell.key[0])
    answers = {k: answer(method, k, X, truth, labeled) for k in _VOTERS}
    return sample_rows(X, truth, labeled, answers)


def _tables(rows: list[Row], plan: Plan) -> list[Table]:  # noqa: ARG001
    errors = [[k, error_percent(rows, k), None, None] for k in _VOTERS]
    return [
        Table(
            "Error of plain kNN with 3 labels per class (%)",
            ["k", "ours", "published", "difference"],
            errors,
            ["The paper shows pictures without numbers here."],
        )
    ]


def _draw(rows: list[Row], plan: Plan) -> Any:  # noqa: ARG001
    figure, axes = new_figure(7.6, 8.4, 2, 2)
    draw_samples(axes.flat[0], rows, colour=None, title="The toy set, 3 labels per class")
    for ax, k in zip(axes.flat[1:], _VOTERS):
        title = f"k = {k}: error {error_percent(rows, k):.1f} %"
        draw_samples(ax, rows, colour=f"k{k}", title=title)
    return figure


EXPERIMENT = Experiment(
    name=_NAME,
    title="Plain kNN on the first toy set, an arch and a mirrored S",
    columns=["x", "y", "class", "labelled", *(f"k{k}" for k in _VOTERS)],
    cells=_cells,
    measure=_measure,
    tables=_tables,
    draw=_draw,
    differences=[
        OUR_SETS,
        "The places of our labels were picked from many so that the nearest labelled sample "
        "misleads, as in the paper's picture: it is wrong for 30 % of the others on average over "
        "100 seeds, and for 27 % if labels are drawn at random.",
    ],
    notes=[
        "With k = 2 a tied vote goes to the first class (the arch). Wrong answers are ringed.",
    ],
)
