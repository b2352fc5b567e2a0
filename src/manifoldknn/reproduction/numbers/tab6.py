"""Error with three labels per class, beside the published numbers."""

from typing import Any

from manifoldknn.reproduction.experiment import Cell, Experiment, Plan, Row
from manifoldknn.reproduction.figures.averages import averages
from manifoldknn.reproduction.figures.kcurves import FULL_SECONDS, QUICK_PUBLISHED
from manifoldknn.reproduction.figures.lines import STYLES, WHISKERS, new_figure
from manifoldknn.reproduction.methods import (
    BEYOND,
    DEFAULT,
    GUIDED_SVM,
    OF_THE_PAPER,
    PUBLISHED,
    available,
    error_of,
)
from manifoldknn.reproduction.numbers.tab6_tables import UNSCALED, findings, headline, tables
from manifoldknn.reproduction.problems import drawn, real
from manifoldknn.reproduction.published import DATA_SETS, ERRORS

_PER_CLASS = 3
_RUNS, _QUICK_RUNS = 10, 2
_PUBLISHED_RUNS = {"satlog": 5, "usps": 3, "pendigits": 3}
_EVEN = "pendigits"  # all its columns have one range: scaling changes nothing
_SECONDS = dict(zip(DATA_SETS, (6.0, 1.6, 0.7, 4.5, 3.8, 2.7)))


def _cells(plan: Plan) -> list[Cell]:
    cells = []
    for data in DATA_SETS:
        runs = _QUICK_RUNS if plan.quick else _RUNS
        cells += [Cell("tab6", (data, "others", run), _SECONDS[data]) for run in range(runs)]
        if plan.quick and data not in QUICK_PUBLISHED:
            continue
        runs = min(runs, _PUBLISHED_RUNS.get(data, runs))
        for kind in (PUBLISHED, UNSCALED) if data != _EVEN else (PUBLISHED,):
            cells += [Cell("tab6", (data, kind, run), FULL_SECONDS[data]) for run in range(runs)]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run = str(cell.key[0]), str(cell.key[1]), int(cell.key[2] or 0)
    problem = real(data, scaled=kind != UNSCALED)
    seed = plan.seed + run
    y = drawn(problem.truth, _PER_CLASS, seed)
    others = (*OF_THE_PAPER, GUIDED_SVM, DEFAULT, *available())
    methods = others if kind == "others" else (PUBLISHED,)
    rows: list[Row] = []
    for method in methods:
        error = error_of(method, problem, y, k=_PER_CLASS, seed=seed)
        name = kind if method == PUBLISHED else method
        rows.append({"data": data, "method": name, "run": run, "error": error})
    return rows


def _draw(rows: list[Row]) -> Any:
    found = averages(rows, ["data", "method"])
    shown = [*OF_THE_PAPER, PUBLISHED, DEFAULT, *BEYOND]
    figure, axes = new_figure(13.0, 6.5, 2, 3)
    for ax, data in zip(axes.flat, DATA_SETS):
        there = [m for m in shown if (data, m) in found][::-1]
        for place, method in enumerate(there):
            average, color = found[data, method], STYLES[method]["color"]
            ax.barh(place, average.mean, 0.7, xerr=average.deviation, color=color,
                    error_kw=WHISKERS)  # fmt: skip
        theirs = ERRORS[data]["mkNN"].mean
        ax.axvline(theirs, color="#D55E00", linestyle="--", linewidth=1.2)
        ax.set_yticks(range(len(there)), there, fontsize=8)
        ax.set_title(f"{data} (published mkNN: {theirs})", fontsize=9)
        ax.set_xlim(left=0)
    figure.supxlabel(
        "error (%) with three labels per class, mean and deviation; dashed: the published mkNN",
        fontsize=10,
    )
    return figure


_COLUMNS = ("data", "method", "run", "error")
EXPERIMENT = Experiment.told(
    "tab6", _COLUMNS, _cells, _measure, tables, _draw, datasets=DATA_SETS, headline=headline,
    findings=findings,
)  # fmt: skip
