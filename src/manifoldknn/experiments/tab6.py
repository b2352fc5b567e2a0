"""Error with three labels per class, beside the published numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from manifoldknn.experiments.averages import averages, mean_and_deviation
from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Scalar, Table
from manifoldknn.experiments.methods import (
    BEYOND,
    DEFAULT,
    GUIDED_SVM,
    OF_THE_PAPER,
    PUBLISHED,
    SUPERVISED_METHODS,
    available,
    error_of,
)
from manifoldknn.experiments.problems import drawn, real
from manifoldknn.experiments.published import DATA_SETS, ERRORS

__all__ = ["EXPERIMENT"]

_PER_CLASS = 3
_RUNS, _QUICK_RUNS = 10, 2
_PUBLISHED_RUNS = {"satlog": 5, "usps": 3, "pendigits": 3}
_QUICK_PUBLISHED = ("segmentation", "banknote", "multifeature")
_UNSCALED = f"{PUBLISHED}, features as they are"
_UNEVEN = ("segmentation", "banknote", "multifeature", "satlog")  # columns differ in range
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
        for kind in (PUBLISHED, _UNSCALED) if data in _UNEVEN else (PUBLISHED,):
            cells += [Cell("tab6", (data, kind, run), _FULL_SECONDS[data]) for run in range(runs)]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run = str(cell.key[0]), str(cell.key[1]), int(cell.key[2] or 0)
    problem = real(data, scaled=kind != _UNSCALED)
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


def _tables(rows: list[Row], plan: Plan) -> list[Table]:  # noqa: ARG001
    return [_beside_the_paper(rows), _everyone(rows), _rivals(rows), _scaling(rows)]


def _beside_the_paper(rows: list[Row]) -> Table:
    found = averages(rows, ["data", "method"])
    lines: list[list[Scalar]] = []
    for data in DATA_SETS:
        for method in (*SUPERVISED_METHODS, PUBLISHED, DEFAULT):
            ours = found.get((data, method))
            theirs = ERRORS[data][method if method in SUPERVISED_METHODS else "mkNN"]
            lines.append(
                [
                    data,
                    method,
                    mean_and_deviation(ours, 2),
                    f"{theirs.mean:.2f} ± {theirs.deviation:.1f}",
                    None if ours is None else round(ours.mean - theirs.mean, 2),
                    0 if ours is None else ours.n_runs,
                ]
            )
    header = ["data", "method", "error", "published", "difference", "runs"]
    return Table("Error (%) with three labels per class, mean ± deviation", header, lines)


def _everyone(rows: list[Row]) -> Table:
    found = averages(rows, ["data", "method"])
    methods = [OF_THE_PAPER[0], GUIDED_SVM, *OF_THE_PAPER[1:], PUBLISHED, DEFAULT, *BEYOND]
    lines: list[list[Scalar]] = [
        [method, *(mean_and_deviation(found.get((data, method))) for data in DATA_SETS)]
        for method in methods
        if any((data, method) in found for data in DATA_SETS)
    ]
    return Table(
        "All methods, those beyond the paper last",
        ["method", *DATA_SETS],
        lines,
        (
            "kNN, wkNN, gkNN and mkNN as published let three vote, our default five.",
            "Poisson stands here where the package graphlearning is installed.",
        ),
    )


def _rivals(rows: list[Row]) -> Table:
    """Compare our default with the best other method of the paper, run by run."""
    lines: list[list[Scalar]] = []
    for data in DATA_SETS:
        errors = _by_run(rows, data)
        ours = errors.get(DEFAULT, {})
        rivals = {m: errors[m] for m in OF_THE_PAPER if m in errors}
        if not ours or not rivals:
            continue
        best = min(rivals, key=lambda m: float(np.mean(list(rivals[m].values()))))
        difference = np.array([ours[run] - rivals[best][run] for run in sorted(ours)])
        spread = float(difference.std(ddof=1)) if len(difference) > 1 else float("inf")
        lines.append(
            [
                data,
                round(float(np.mean(list(ours.values()))), 2),
                best,
                round(float(np.mean(list(rivals[best].values()))), 2),
                f"{difference.mean():+.2f} ± {spread:.2f}",
                f"{int(np.sum(difference < 0))} of {len(difference)}",
                _verdict(float(difference.mean()), spread / len(difference) ** 0.5),
            ]
        )
    header = ["data", DEFAULT, "best rival", "its error", "difference by run", "runs won", "so"]
    return Table(
        "Our default beside the best of the paper's other methods",
        header,
        lines,
        (
            "Differences are taken run by run, with the same labels: below 0 our default is "
            "better. The spread is that of single runs; that of the mean is smaller by √runs. "
            "Level: the mean difference is below twice the latter.",
        ),
    )


def _verdict(difference: float, deviation: float) -> str:
    """Return what a mean difference and its own standard deviation tell."""
    if abs(difference) <= 2 * deviation:
        return "level"
    return "ahead" if difference < 0 else "behind"


def _scaling(rows: list[Row]) -> Table:
    """Show what scaling of features does to the method as published."""
    found = averages(rows, ["data", "method"])
    lines: list[list[Scalar]] = []
    for data in DATA_SETS:
        published = ERRORS[data]["mkNN"].mean
        scaled, unscaled = found.get((data, PUBLISHED)), found.get((data, _UNSCALED))
        if scaled is None:
            continue
        lines.append(
            [
                data,
                published,
                mean_and_deviation(scaled, 2),
                round(scaled.mean - published, 2),
                mean_and_deviation(unscaled, 2),
                None if unscaled is None else round(unscaled.mean - published, 2),
                scaled.n_runs,
            ]
        )
    header = [
        "data",
        "published",
        "features scaled to [0, 1]",
        "difference",
        "features as they are",
        "difference",
        "runs",
    ]
    return Table(
        "mkNN as published: what scaling does (error, %)",
        header,
        lines,
        (
            "All columns of usps, and all of pendigits, have one range: there scaling changes "
            "nothing, and they are not measured twice.",
        ),
    )


def _by_run(rows: list[Row], data: str) -> dict[str, dict[int, float]]:
    errors: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["data"] == data:
            of_method = errors.setdefault(str(row["method"]), {})
            of_method[cast(int, row["run"])] = cast(float, row["error"])
    return errors


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
    tables=_tables,
    draw=_draw,
    datasets=DATA_SETS,
    notes=(
        "Three labels per class, 10 draws; features scaled to [0, 1]; the deviation has n - 1 in "
        "its denominator. mkNN as published factorises a full graph: 3 runs on usps and pendigits, "
        "5 on satlog, 10 elsewhere.",
        "SVM, ANN, NB and DT are tuned for the lowest 2-fold cross-validation error of the "
        "labelled rows, as the paper says; it does not give its grids. Ours begin with usual "
        "values, which win ties, and few labels mean many ties. A second SVM has the grid that "
        "the authors of libsvm, the paper's toolbox, advise.",
        "The supervised methods come out far below the published errors, SVM and DT most of all. "
        "The published SVM is wrong on 70 % of banknote, which has two classes: guessing would be "
        "wrong on 50 %.",
        "The σ of mkNN as published is tuned once per data set: multiples 0.2, 0.3, 0.5, 0.7 and 1 "
        "of the median distance to the seventh neighbour, 2-fold cross-validation on draws of "
        "three labels per class; sets of more than 1000 rows are represented by 1000 of them.",
        "The paper does not say whether features are scaled. The last table has mkNN as published "
        "both ways: where the scaled one is far from the published error, that with features as "
        "they are comes near it.",
        "Segmentation has 7 classes, hence 21 labels; the paper says 6. Its 2086 rows and "
        "banknote's 1348 are what is left once repeated rows are removed.",
    ),
)
