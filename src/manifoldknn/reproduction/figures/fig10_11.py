"""Experiment of figures 10 and 11: mean and deviation of the error by labels per class."""

from typing import Any

from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import (
    ENOUGH,
    Averages,
    averages,
    curves,
    less,
    over_common_runs,
    table_of,
)
from manifoldknn.reproduction.figures.kcurves import measured
from manifoldknn.reproduction.figures.lines import panels
from manifoldknn.reproduction.methods import BEYOND, DEFAULT, OF_THE_PAPER, available
from manifoldknn.reproduction.problems import real
from manifoldknn.reproduction.published import DATA_SETS, ERRORS, USPS_SVM_AT_ONE_LABEL

_ALL = tuple(range(1, 40, 2))
_SOME = (1, 3, 5, 9, 15, 25, 39)
_QUICK = (1, 3, 9, 39)
_VOTERS = 5
_CHEAP = ("kNN", "wkNN", "DT", DEFAULT)  # all counts
_DEAR = ("gkNN", "ANN", "NB")  # some counts, few runs
_RUNS, _DEAR_RUNS = {"cheap": 10, "SVM": 5}, 3
_QUICK_SKIPPED = ("usps", "multifeature")  # of the dear ones
_SECONDS = read_toml("seconds.toml")["fig10-11"]


def _counts(kind: str, plan: Plan) -> tuple[int, ...]:
    if plan.quick:
        return _QUICK
    return _SOME if kind in _DEAR else _ALL


def _cells(plan: Plan) -> list[Cell]:
    cells = []
    for data in DATA_SETS:
        for kind, each in _SECONDS[data].items():
            if plan.quick and kind in _DEAR and data in _QUICK_SKIPPED:
                continue
            runs = 1 if plan.quick else _RUNS.get(kind, _DEAR_RUNS)
            seconds = each * len(_counts(kind, plan))
            cells += [Cell("fig10-11", (data, kind, run), seconds) for run in range(runs)]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run = cell.key
    methods = (*_CHEAP, *available()) if kind == "cheap" else (kind,)
    how: Any = {"column": "labels", "most_voters": _VOTERS}
    return measured(data, real(data), methods, _counts(kind, plan), run, plan, **how)


def _tables(rows: list[Row]) -> list[Table]:
    found = averages(rows, ["data", "method", "labels"])
    kinds = {"mean": "Mean error (%)", "deviation": "Deviation of the error (%)"}
    if all(average.n_runs < ENOUGH for average in found.values()):
        del kinds["deviation"]
    both = [
        table_of(rows, "labels", f"{caption} against labels per class", what=what)
        for what, caption in kinds.items()
    ]
    return [*both, _leaders(rows), _known(found)]


def _leaders(rows: list[Row]) -> Table:
    """Tell at how many counts our default has the lowest mean error of the paper's methods."""
    leads: dict[tuple[Any, ...], dict[str, float]] = {}
    for method in OF_THE_PAPER:
        compared = over_common_runs(rows, DEFAULT, method, ["data", "labels"])
        for key, (ours, theirs) in compared.items():
            leads.setdefault(key, {})[method] = ours - theirs
    lines: Lines = []
    for data in DATA_SETS:
        counts = sorted(count for name, count in leads if name == data)
        behind = []
        for count in counts:
            of_count = leads[data, count]
            best = max(of_count, key=lambda m: of_count[m])
            if of_count[best] > 0:
                behind.append(f"{count} ({best}, by {of_count[best]:.1f})")
        if counts:
            ahead = f"{len(counts) - len(behind)} of {len(counts)}"
            lines.append([data, ahead, ", ".join(behind) or "–"])
    return Table.told("fig10-11", "leaders", lines)


def _known(found: Averages) -> Table:
    """Set our numbers beside what the paper prints of these figures."""
    both = (("SVM", "SVM"), (DEFAULT, "mkNN"))
    printed = [("usps", "SVM", 1, USPS_SVM_AT_ONE_LABEL)]
    printed += [(d, ours, 3, ERRORS[d][name].mean) for d in DATA_SETS for ours, name in both]
    lines: Lines = [
        [data, method, count, round(ours.mean, 2), theirs, less(ours, theirs)]
        for data, method, count, theirs in printed
        if (ours := found.get((data, method, count))) is not None
    ]
    return Table.told("fig10-11", "known", lines)


def _findings(rows: list[Row]) -> list[str]:
    """Tell where Poisson learning, the strongest method beyond the paper, is ahead of ours."""
    compared = over_common_runs(rows, DEFAULT, BEYOND[-1], ["data", "labels"])
    ahead = {key: a - b for key, (a, b) in compared.items() if b < a}
    if not compared:
        return []
    where = ", ".join(f"{data} by {gap:.1f}" for (data, n), gap in ahead.items() if n == 1)
    where = f"; with one label per class on {where}" if where else ""
    return [
        "Beyond the paper, Poisson learning has a lower mean error than our default in "
        f"{len(ahead)} of {len(compared)} cases of set and labels per class{where}."
    ]


def _draw(rows: list[Row]) -> Any:
    found = averages(rows, ["data", "method", "labels"])
    shown = curves(found, "mean", "{}: mean") | curves(found, "deviation", "{}: deviation")
    return panels(shown, x_label="labelled samples per class", y_label="error (%)")


_COLUMNS = ("data", "method", "labels", "run", "error")
EXPERIMENT = Experiment.told(
    "fig10-11", _COLUMNS, _cells, _measure, _tables, _draw, datasets=DATA_SETS, findings=_findings,
)  # fmt: skip
