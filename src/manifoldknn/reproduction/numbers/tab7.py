"""Time of all methods for training and testing."""

import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from manifoldknn.base import Ints
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.classifier import ManifoldKNNClassifier, as_published
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import averages, curves, less
from manifoldknn.reproduction.figures.lines import panels
from manifoldknn.reproduction.methods import DEFAULT, PUBLISHED, baseline
from manifoldknn.reproduction.problems import Problem, real, tuned_sigma
from manifoldknn.reproduction.published import RATIOS, SECONDS

_SETS = ("banknote", "satlog", "pendigits")
_VOTERS = 5
_SUPERVISED = ("SVM", "DT", "ANN", "NB", "kNN", "wkNN")
_METHODS = (*_SUPERVISED, "gkNN", PUBLISHED, DEFAULT)
_RUNS = 3
_ONCE = read_toml("seconds.toml")["tab7"]  # dearer than some seconds: a single run


def _cells(plan: Plan) -> list[Cell]:
    return [
        Cell("tab7", (data, ratio, method), _ONCE[data].get(method, 0.9), alone=True)
        for data, ratio, method in product(_SETS, RATIOS, _METHODS)
        if not (plan.quick and method in _ONCE[data])
    ]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, ratio, method = cell.key
    problem = real(data)
    once = plan.quick or method in _ONCE[data]
    if method not in _ONCE[data]:  # not counted: libraries are loaded and threads started
        _timed(method, problem, _split(problem, ratio, plan.seed), plan.seed)
    rows: list[Row] = []
    for run in range(1 if once else _RUNS):
        y = _split(problem, ratio, plan.seed + run)
        error, seconds = _timed(method, problem, y, plan.seed + run)
        rows.append({"data": data, "ratio": ratio, "method": method, "run": run, "error": error,
                     "seconds": seconds})  # fmt: skip
    return rows


def _split(problem: Problem, ratio: int, seed: int) -> Ints:
    """Return labels of a share of the rows, drawn at random, and -1 for the others."""
    n = len(problem.truth)
    chosen = np.random.default_rng(seed).choice(n, n * ratio // 100, replace=False)
    y = np.full(n, -1, dtype=np.intp)
    y[chosen] = problem.truth[chosen]
    return y


def _timed(method: str, problem: Problem, y: Ints, seed: int) -> tuple[float, float]:
    """Return error (%) and seconds of learning and answering together."""
    model, labeled, rest = _model(method, problem, seed), y >= 0, y < 0
    with warnings.catch_warnings(action="ignore"):
        start = perf_counter()
        if method in _SUPERVISED:
            answers = model.fit(problem.X[labeled], y[labeled]).predict(problem.X[rest])
        else:
            answers = model.fit(problem.X, y).transduction_[rest]
        seconds = perf_counter() - start
    return 100.0 * float(np.mean(answers != problem.truth[rest])), seconds


def _model(method: str, problem: Problem, seed: int) -> Any:
    if method in _SUPERVISED:
        return baseline(method, k=_VOTERS, seed=seed).estimator
    if method == "gkNN":
        return GeodesicKNNClassifier(_VOTERS)
    if method == PUBLISHED:
        return as_published(n_neighbors=_VOTERS, sigma=tuned_sigma(problem))
    return ManifoldKNNClassifier()


def _tables(rows: list[Row]) -> list[Table]:
    times = averages(rows, ["data", "ratio", "method"], "seconds")
    errors = averages(rows, ["data", "ratio", "method"])
    lines: Lines = []
    for (data, ratio, method), time in times.items():
        theirs = SECONDS[data, ratio]["mkNN" if method in (PUBLISHED, DEFAULT) else method]
        ours = [round(time.mean, 3), theirs, less(time, theirs, 3)]
        error = round(errors[data, ratio, method].mean, 2)
        lines.append([data, ratio, method, *ours, error, time.n_runs])
    return [Table.told("tab7", "times", lines)]


def _draw(rows: list[Row]) -> Any:
    return panels(
        curves(averages(rows, ["data", "method", "ratio"], "seconds")),
        x_label="share of rows that are labelled (%)",
        y_label="seconds",
        log_scale=True,
        ticks=RATIOS,
    )


_COLUMNS = ("data", "ratio", "method", "run", "error", "seconds")
EXPERIMENT = Experiment.told(
    "tab7", _COLUMNS, _cells, _measure, _tables, _draw, timings=("seconds",), datasets=_SETS,
)  # fmt: skip
