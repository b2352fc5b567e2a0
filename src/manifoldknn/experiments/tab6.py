"""Error with three labels per class, beside the published numbers."""

from __future__ import annotations

from typing import Any

from manifoldknn.experiments.averages import averages
from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row
from manifoldknn.experiments.methods import (
    BEYOND,
    DEFAULT,
    GUIDED_SVM,
    OF_THE_PAPER,
    PUBLISHED,
    available,
    error_of,
)
from manifoldknn.experiments.problems import drawn, real
from manifoldknn.experiments.published import DATA_SETS, ERRORS
from manifoldknn.experiments.tab6_tables import (
    DIFFERENCES,
    NOTES,
    UNSCALED,
    findings,
    headline,
    tables,
)

__all__ = ["EXPERIMENT"]

_PER_CLASS = 3
_RUNS, _QUICK_RUNS = 10, 2
_PUBLISHED_RUNS = {"satlog": 5, "usps": 3, "pendigits": 3}
_QUICK_PUBLISHED = ("segmentation", "banknote", "multifeature")
_UNEVEN = ("usps", "segmentation", "banknote", "multifeature", "satlog")  # ranges of columns differ
_SECONDS = {
    "usps": 5.0,
    "segmentation": 1.5,
    "banknote": 0.7,
    "pendigits": 3.2,
    "multifeature": 3.5,
    "satlog": 2.0,
}
_FULL_SECONDS = {
    "usps": 15.0,
    "segmentation": 0.6,
    "banknote": 0.2,
    "pendigits": 25.0,
    "multifeature": 0.6,
    "satlog": 7.0,
}


def _cells(plan: Plan) -> list[Cell]:
    cells = []
    for data in DATA_SETS:
        runs = _QUICK_RUNS if plan.quick else _RUNS
        cells += [Cell("tab6", (data, "others", run), _SECONDS[data]) for run in range(runs)]
        if plan.quick and data not in _QUICK_PUBLISHED:
            continue
        runs = min(runs, _PUBLISHED_RUNS.get(data, runs))
        for kind in (PUBLISHED, UNSCALED) if data in _UNEVEN else (PUBLISHED,):
            cells += [Cell("tab6", (data, kind, run), _FULL_SECONDS[data]) for run in range(runs)]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run = str(cell.key[0]), str(cell.key[1]), int(cell.key[2] or 0)
    problem = real(data, scaled=kind != UNSCALED)
    seed = plan.seed + run
    y = drawn(problem.truth, _PER_CLASS, seed)
    methods = (
        (*OF_THE_PAPER, GUIDED_SVM, DEFAULT, *available()) if kind == "others" else (PUBLISHED,)
    )
    rows: list[Row] = []
    for method in methods:
        error = error_of(method, problem, y, k=_PER_CLASS, seed=seed)
        name = kind if method == PUBLISHED else method
        rows.append({"data": data, "method": name, "run": run, "error": error})
    return rows


def _draw(rows: list[Row], plan: Plan) -> Any:  # noqa: ARG001
    from matplotlib.figure import Figure

    from manifoldknn.experiments.lines import STYLES

    found = averages(rows, ["data", "method"])
    shown = [*OF_THE_PAPER, PUBLISHED, DEFAULT, *BEYOND]
    figure = Figure(figsize=(10.5, 6.5), layout="constrained")
    for ax, data in zip(figure.subplots(2, 3).ravel(), DATA_SETS):
        there = [m for m in shown if (data, m) in found][::-1]
        for place, method in enumerate(there):
            average = found[data, method]
            ax.barh(
                place,
                average.mean,
                xerr=average.deviation,
                color=STYLES[method]["color"],
                height=0.7,
                error_kw={"ecolor": "#555555", "elinewidth": 0.8, "capsize": 2},
            )
        theirs = ERRORS[data]["mkNN"].mean
        ax.axvline(theirs, color="#D55E00", linestyle="--", linewidth=1.2)
        ax.set_yticks(range(len(there)), there, fontsize=8)
        ax.set_title(f"{data} (published mkNN: {theirs})", fontsize=9)
        ax.set_xlim(left=0)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "error (%) with three labels per class, mean and deviation; dashed: the published mkNN",
        fontsize=10,
    )
    return figure


EXPERIMENT = Experiment(
    name="tab6",
    title="Error with three labels per class, beside the published numbers",
    columns=("data", "method", "run", "error"),
    cells=_cells,
    measure=_measure,
    tables=tables,
    draw=_draw,
    datasets=DATA_SETS,
    headline=headline,
    findings=findings,
    differences=DIFFERENCES,
    notes=NOTES,
)
