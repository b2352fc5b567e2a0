"""Errors and confidence with labels drawn as people draw them: classes get unequal numbers.

Beyond the paper, which draws as many labels of every class. Confidence is the largest probability
of a row. Rows are put into 15 bins of it; the calibration error is the mean distance between
confidence and share right over bins, weighted by their rows.
"""

from itertools import product
from typing import Any

import numpy as np

from manifoldknn.base import Bools, Floats
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import averages, by_method, mean_and_deviation
from manifoldknn.reproduction.figures.lines import STYLES, grouped_bars, new_figure
from manifoldknn.reproduction.methods import (
    BEYOND,
    DEFAULT,
    NEIGHBORS,
    SPREADING,
    available,
    error_of,
)
from manifoldknn.reproduction.problems import drawn, real
from manifoldknn.reproduction.published import DATA_SETS

PROTOCOLS = {
    "b3": "three labels of every class",
    "r3": "three per class on average, one of every class and the others at random",
    "r10": "ten per class on average, one of every class and the others at random",
}
_COLUMNS = (
    "data", "protocol", "method", "run", "error", "calibration_error", "bin", "rows", "confidence",
    "right",
)  # fmt: skip
_OURS = (DEFAULT, NEIGHBORS)
_PEERS = (*list(SPREADING)[:2], BEYOND[-1])
_VOTERS = 5
_RUNS = 5
_BINS = 15
_SECONDS = read_toml("seconds.toml")["draws"]


def calibration(
    confidence: Floats, right: Bools
) -> tuple[float, list[tuple[int, int, float, int]]]:
    """Return the expected calibration error in percent, and what the bins hold.

    Of every bin that has rows: its number, rows, the sum of their confidence, how many were right.

    >>> calibration(np.array([0.5, 1.0]), np.array([True, True]))
    (25.0, [(7, 1, 0.5, 1), (14, 1, 1.0, 1)])
    """
    bins = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    rows = np.bincount(bins, minlength=_BINS)
    total = np.bincount(bins, confidence, minlength=_BINS)
    found = np.bincount(bins[right], minlength=_BINS)
    error = 100.0 * float(np.abs(total - found).sum() / len(confidence))
    there = np.flatnonzero(rows).tolist()
    return error, [(b, int(rows[b]), float(total[b]), int(found[b])) for b in there]


def _cells(plan: Plan) -> list[Cell]:
    keys = product(DATA_SETS, PROTOCOLS, range(1 if plan.quick else _RUNS))
    return [Cell("draws", key, _SECONDS[key[0]]) for key in keys]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, protocol, run = cell.key
    problem, seed = real(data), plan.seed + run
    y = drawn(problem.truth, protocol, seed)
    rows: list[Row] = []

    def add(method: str, *values: Any) -> None:
        whole = (data, protocol, method, run, *values)
        rows.append(dict(zip(_COLUMNS, (*whole, *[None] * (len(_COLUMNS) - len(whole))))))

    for method in _OURS:
        vote = "classes" if method == DEFAULT else "neighbors"
        model = problem.fitted(ManifoldKNNClassifier(_VOTERS, vote=vote), y)
        right = (model.transduction_ == problem.truth)[y < 0]
        confidence = model.label_distributions_.max(axis=1)[y < 0]
        off, bins = calibration(confidence, right)
        add(method, 100.0 * float(np.mean(~right)), off)
        for held in bins:
            add(method, None, None, *held)
    for method in _PEERS:
        if method in available():
            add(method, error_of(method, problem, y, k=_VOTERS, seed=seed))
    return rows


def _of(rows: list[Row], protocol: str) -> list[Row]:
    return [row for row in rows if row["protocol"] == protocol]


def _tables(rows: list[Row]) -> list[Table]:
    tables = []
    for protocol, words in PROTOCOLS.items():
        found = averages(_of(rows, protocol), ["data", "method"])
        lines = by_method(found, (*_OURS, *_PEERS), DATA_SETS)
        how = {"protocol": protocol, "words": words}
        tables.append(Table.told("draws", "errors", lines, DATA_SETS, **how))
    return [*tables, _calibration_table(rows)]


def _calibration_table(rows: list[Row]) -> Table:
    lines: Lines = []
    for protocol in PROTOCOLS:
        found = averages(_of(rows, protocol), ["data", "method"], "calibration_error")
        for method in _OURS:
            mean = np.mean([a.mean for (_, name), a in found.items() if name == method])
            cells = [mean_and_deviation(found.get((data, method))) for data in DATA_SETS]
            lines.append([protocol, method, *cells, f"{mean:.1f}"])
    return Table.told("draws", "calibration", lines, DATA_SETS, bins=_BINS)


def _findings(rows: list[Row]) -> list[str]:
    def means(protocol: str, value: str) -> str:
        found = averages(_of(rows, protocol), ["data", "method"], value)
        methods = dict.fromkeys(method for _, method in found)
        of = {m: np.mean([a.mean for (_, name), a in found.items() if name == m]) for m in methods}
        return ", ".join(f"{method} {mean:.1f}" for method, mean in of.items())

    return [
        *(
            f"Mean error (%) of the sets at {protocol}, {words}: {means(protocol, 'error')}."
            for protocol, words in PROTOCOLS.items()
        ),
        f"Mean calibration error (points) at r3: {means('r3', 'calibration_error')}.",
    ]


def _draw(rows: list[Row]) -> Any:
    figure, axes = new_figure(11.0, 9.6, 3, 3)
    found = averages(rows, ["data", "protocol", "method"])
    shown = [m for m in (*_OURS, *_PEERS) if any(key[2] == m for key in found)]
    for ax, data in zip(axes.flat, DATA_SETS):
        bars = {m: [found.get((data, p, m)) for p in PROTOCOLS] for m in shown}
        named = grouped_bars(ax, list(PROTOCOLS), bars)
        ax.set(title=data, ylabel="error (%)")
    for ax, protocol in zip(axes[2], PROTOCOLS):
        ax.plot([0, 1], [0, 1], color="#9a9a9a", linewidth=1)
        for method in _OURS:
            of_method = [r for r in _of(rows, protocol) if r["method"] == method]
            confidence, right = _reliability(of_method)
            ax.plot(confidence, right, **STYLES[method] | {"markersize": 4})
        ax.set(title=f"reliability at {protocol}, all sets", ylim=(0, 1.02))
        ax.set(xlabel="confidence", ylabel="share right")
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=3)
    return figure


def _reliability(rows: list[Row]) -> tuple[Floats, Floats]:
    """Return mean confidence and share right by bin, all sets and runs in one pot."""
    sums = np.zeros((3, _BINS))
    for row in rows:
        if row["bin"] is not None:
            sums[:, row["bin"]] += [row[name] for name in ("rows", "confidence", "right")]
    n_rows, confidence, right = sums[:, sums[0] > 0]
    return confidence / n_rows, right / n_rows


EXPERIMENT = Experiment.told(
    "draws", _COLUMNS, _cells, _measure, _tables, _draw, datasets=DATA_SETS, findings=_findings,
)  # fmt: skip
