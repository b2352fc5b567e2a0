"""Mean error against k on the synthetic sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table
from manifoldknn.experiments.kcurves import (
    COLUMNS,
    MEANING_OF_K,
    claims,
    curve_tables,
    draw_over_k,
    falling,
    measured,
)
from manifoldknn.experiments.methods import DEFAULT, NEAREST, PUBLISHED
from manifoldknn.experiments.problems import SYNTHETIC, synthetic
from manifoldknn.experiments.toys import OUR_SETS

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
    return [
        *curve_tables(rows, "Mean error (%) against k, synthetic sets", plan),
        claims(
            rows,
            _slopes(rows, NEAREST[:2], "kNN and wkNN have no obvious reduction as k grows", False),
            _slopes(rows, NEAREST[2:], "the error of gkNN decreases quickly as k grows", True),
            _slopes(rows, (PUBLISHED, DEFAULT), "so does that of mkNN", True),
        ),
    ]


def _slopes(
    rows: list[Row], methods: Sequence[str], words: str, quickly: bool
) -> tuple[str, str, bool]:
    """Return a line on how errors fall from the smallest to the largest k."""
    ends = falling(rows, methods)
    here = "; ".join(f"{m}: {a:.1f} to {b:.1f}" for m, (a, b) in ends.items())
    return (
        words,
        f"{here} (mean of the sets)",
        all((b < a / 2) == quickly for a, b in ends.values()),
    )


def _draw(rows: list[Row], plan: Plan) -> Any:
    return draw_over_k(rows, _sizes(plan))


EXPERIMENT = Experiment(
    name="fig8",
    title="Mean error against k on the synthetic sets",
    columns=COLUMNS,
    cells=_cells,
    measure=_measure,
    tables=_tables,
    draw=_draw,
    differences=(OUR_SETS,),
    notes=(
        MEANING_OF_K,
        "Each set has 400 samples, with bridging points in the gap. The set stays the same, the "
        "labels are drawn anew in every run. An error falls quickly if it is halved from the "
        "smallest k to the largest.",
    ),
)
