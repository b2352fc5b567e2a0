"""Figure 4: the three synthetic sets."""

from __future__ import annotations

from typing import Any

from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table
from manifoldknn.experiments.toys import OUR_SETS, SETS, draw_samples, new_figure, sample_rows

__all__ = ["EXPERIMENT"]

_NAME = "fig4"


def _cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
    return [Cell(_NAME, (name,), seconds=0.05) for name in SETS]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    name = str(cell.key[0])
    rows = sample_rows(*SETS[name](random_state=plan.seed))
    return [{"set": name, **row} for row in rows]


def _tables(rows: list[Row], plan: Plan) -> list[Table]:  # noqa: ARG001
    lines: list[list[Any]] = []
    for number, name in enumerate(SETS, 1):
        own = [row for row in rows if row["set"] == name]
        sizes = [sum(row["class"] == c for row in own) for c in (0, 1)]
        lines.append([f"{number}, {name}", len(own), *sizes, sum(bool(r["labelled"]) for r in own)])
    header = ["data set", "samples", "class 0", "class 1", "labelled"]
    return [Table("Sizes", header, lines, ["The paper states only the labels, 3 per class."])]


def _draw(rows: list[Row], plan: Plan) -> Any:  # noqa: ARG001
    figure, axes = new_figure(10.0, 3.7, 1, 3)
    for number, (ax, name) in enumerate(zip(axes.flat, SETS), 1):
        own = [row for row in rows if row["set"] == name]
        draw_samples(ax, own, colour=None, title=f"Data set {number}: {name}")
    return figure


EXPERIMENT = Experiment(
    name=_NAME,
    title="The three synthetic data sets",
    columns=["set", "x", "y", "class", "labelled"],
    cells=_cells,
    measure=_measure,
    tables=_tables,
    draw=_draw,
    differences=[OUR_SETS],
    notes=["Each set is two curves with noise and three bridges of points across the gap."],
)
