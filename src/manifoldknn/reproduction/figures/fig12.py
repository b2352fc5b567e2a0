"""Online samples: learning everything again for each, or reconstruction from neighbours."""

from time import perf_counter
from typing import Any

import numpy as np

from manifoldknn.base import Ints
from manifoldknn.classifier import ManifoldKNNClassifier, as_published
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import averages, curves, less
from manifoldknn.reproduction.figures.lines import panels
from manifoldknn.reproduction.problems import Problem, drawn, real, tuned_sigma
from manifoldknn.reproduction.published import ONLINE_SECONDS

_SETS = ("satlog", "banknote", "pendigits")
_SIZES = tuple(range(100, 1001, 100))
_FEW_SIZES = (100, 400, 700, 1000)  # where a fit takes seconds
_PER_CLASS = 10
_VOTERS = 5
_COMPARABLE = 1.0  # points of error
_SECONDS = read_toml("seconds.toml")["fig12"]
_KEY = ["data", "strategy", "online"]


def _sizes(data: str, model: str, plan: Plan) -> tuple[int, ...]:
    if plan.quick:
        return (100, 300) if model == "default" or data == "banknote" else ()
    return _SIZES if model == "default" or data == "banknote" else _FEW_SIZES


def _cells(plan: Plan) -> list[Cell]:
    cells = []
    for data in _SETS:
        for model, seconds in _SECONDS.items():
            sizes = _sizes(data, model, plan)
            keys: list[tuple[str | int, ...]] = [(data, model, "standard")] if sizes else []
            keys += [(data, model, "sequential", size) for size in sizes]
            cells += [Cell("fig12", key, seconds[data], alone=True) for key in keys]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, name, strategy, *size = cell.key
    problem = real(data)
    y = drawn(problem.truth, _PER_CLASS, plan.seed)
    online = np.random.default_rng(plan.seed).permutation(np.flatnonzero(y < 0))
    model = ManifoldKNNClassifier()
    if name == "as published":
        model = as_published(n_neighbors=_VOTERS, sigma=tuned_sigma(problem))
    if strategy == "sequential":
        (timed,) = sizes = tuple(size)
        answers, seconds = _sequential(model, problem, y, online[:timed])
    else:
        sizes = _sizes(data, name, plan)
        answers, seconds, timed = _standard(model, problem, y)
        answers = answers[online]
    wrong = 100.0 * (answers != problem.truth[online[: len(answers)]])
    return [
        {"data": data, "strategy": f"{strategy}, {name}", "online": size,
         "error": float(np.mean(wrong[:size])), "seconds": seconds * size, "timed": timed}
        for size in sizes
    ]  # fmt: skip


def _sequential(
    model: ManifoldKNNClassifier, problem: Problem, y: Ints, online: Ints
) -> tuple[Ints, float]:
    """Learn without the online rows, then answer them one by one; return seconds per row too."""
    rest = np.setdiff1d(np.arange(len(y)), online)
    model.fit(problem.X[rest], y[rest])
    answers = np.empty(len(online), dtype=np.intp)
    start = perf_counter()
    for place, row in enumerate(online):
        answers[place] = model.predict(problem.X[row : row + 1])[0]
    return answers, (perf_counter() - start) / len(online)


def _standard(model: ManifoldKNNClassifier, problem: Problem, y: Ints) -> tuple[Ints, float, int]:
    """Learn everything, as the last of the online rows would have it: one fit for all sizes.

    Returns answers, seconds of a fit, and of how many fits they are the mean.
    """
    repeats = 1 if model.graph == "full" else 3
    if repeats > 1:
        model.fit(problem.X, y)  # not counted: libraries are loaded and threads started
    start = perf_counter()
    for _ in range(repeats):
        model.fit(problem.X, y)
    seconds = (perf_counter() - start) / repeats
    return np.asarray(model.transduction_, dtype=np.intp), seconds, repeats


def _tables(rows: list[Row]) -> list[Table]:
    errors, times = averages(rows, _KEY), averages(rows, _KEY, "seconds")
    lines: Lines = []
    for (data, strategy, online), error in errors.items():
        seconds = times[data, strategy, online]
        theirs = ONLINE_SECONDS.get((data, online), {}).get(strategy.split(",")[0])
        ours = [round(error.mean, 2), round(seconds.mean, 3)]
        lines.append([data, strategy, online, *ours, theirs, less(seconds, theirs)])
    return [Table.told("fig12", "online", lines), _claims(rows)]


def _gaps(rows: list[Row]) -> dict[tuple[str, str], list[tuple[int, float, float]]]:
    """Return online rows, points by which sequential is worse, and by how often it is faster."""
    found = {(r["data"], r["strategy"], r["online"]): r for r in rows}
    gaps: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for (data, strategy, online), row in found.items():
        kind, model = strategy.split(", ")
        other = found.get((data, f"standard, {model}", online))
        if kind == "sequential" and other is not None:
            worse, faster = row["error"] - other["error"], other["seconds"] / row["seconds"]
            gaps.setdefault((data, model), []).append((online, worse, faster))
    return {key: sorted(points) for key, points in gaps.items()}


def _claims(rows: list[Row]) -> Table:
    """Set what the paper says of this figure beside what the rows say."""
    lines: Lines = []
    for (data, model), points in _gaps(rows).items():
        online, worst, _ = max(points, key=lambda point: abs(point[1]))
        within = sum(abs(worse) <= _COMPARABLE for _, worse, _ in points)
        most, _, faster = points[-1]
        found = [f"{within} of {len(points)}", f"{worst:+.1f} at {online} rows"]
        fast = f"{faster:.0f} × at {most} rows"
        lines.append([data, model, *found, within == len(points), fast])
    return Table.told("fig12", "claims", lines, near=f"{_COMPARABLE:g}")


def _differences(rows: list[Row]) -> list[str]:
    """Tell where the two strategies do not agree."""
    apart = []
    for (data, model), points in _gaps(rows).items():
        online, worst, _ = max(points, key=lambda point: abs(point[1]))
        if abs(worst) > _COMPARABLE:
            apart.append(f"{data}, {model} ({worst:+.1f} points at {online} rows)")
    said: list[str] = [*read_toml("words.toml")["fig12"]["differences"]]
    if apart:
        said.append(
            f"Sequential and standard errors differ by more than {_COMPARABLE:g} point on "
            f"{'; '.join(apart)}."
        )
    return said


def _findings(rows: list[Row]) -> list[str]:
    gaps = _gaps(rows)
    alike = [key for key, points in gaps.items() if all(abs(p[1]) <= _COMPARABLE for p in points)]
    least = min((points[-1][2] for points in gaps.values()), default=None)
    if least is None:
        return []
    return [
        f"Answering online rows by reconstruction is at least {least:.0f} times as fast as "
        f"learning again, with errors within {_COMPARABLE:g} point at all sizes in {len(alike)} of "
        f"{len(gaps)} cases of set and model."
    ]


def _draw(rows: list[Row]) -> Any:
    times = curves(averages(rows, _KEY, "seconds"), title="{}: time (s)")
    shown = curves(averages(rows, _KEY), title="{}: error (%)") | times
    return panels(shown, x_label="online rows", y_label="", log_scale=list(times))


_COLUMNS = ("data", "strategy", "online", "error", "seconds", "timed")
EXPERIMENT = Experiment.told(
    "fig12", _COLUMNS, _cells, _measure, _tables, _draw, timings=("seconds",), datasets=_SETS,
    findings=_findings, differences=_differences,
)  # fmt: skip
