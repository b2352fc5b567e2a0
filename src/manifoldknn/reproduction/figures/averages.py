"""Mean, deviation and number of runs of measured rows, and what is made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from manifoldknn.reproduction.experiment import Lines, Row, Scalar, Table

ENOUGH = 5  # runs: fewer say little about a deviation, and prove nothing


@dataclass(frozen=True)
class Average:
    """Several runs of the same: the deviation has n - 1 below, and is None of a single run."""

    mean: float
    deviation: float | None
    n_runs: int


Averages = dict[tuple[Scalar, ...], Average]
Curves = dict[str, dict[str, tuple[list[float], list[float]]]]


def averages(rows: Iterable[Row], by: Sequence[str], value: str = "error") -> Averages:
    """Average a column over the rows that agree in others, passing over those whose value is None.

    Averages are by the values of the columns `by`, in the order of the rows.

    >>> averages([{"k": 1, "error": 2.0}, {"k": 1, "error": 4.0}], ["k"])
    {(1,): Average(mean=3.0, deviation=1.4142135623730951, n_runs=2)}
    """
    groups: dict[tuple[Scalar, ...], list[float]] = {}
    for row in rows:
        if row[value] is not None:
            groups.setdefault(tuple(row[name] for name in by), []).append(row[value])

    def average(found: list[float]) -> Average:
        deviation = float(np.std(found, ddof=1)) if len(found) > 1 else None
        return Average(float(np.mean(found)), deviation, len(found))

    return {key: average(found) for key, found in groups.items()}


def over_common_runs(
    rows: Iterable[Row], first: str, second: str, by: Sequence[str]
) -> dict[tuple[Scalar, ...], tuple[float, float]]:
    """Return the mean errors of two methods over the runs that both have, with the same labels.

    They are by the values of the columns `by`; groups without a common run are left out.

    >>> runs = [("a", 0, 2.0), ("a", 1, 9.0), ("b", 0, 3.0)]
    >>> rows = [{"data": "d", "method": m, "run": r, "error": e} for m, r, e in runs]
    >>> over_common_runs(rows, "a", "b", ["data"])
    {('d',): (2.0, 3.0)}
    """
    found: dict[tuple[Scalar, ...], dict[str, dict[Scalar, float]]] = {}
    for row in rows:
        if row["error"] is not None:
            methods = found.setdefault(tuple(row[name] for name in by), {first: {}, second: {}})
            methods.setdefault(row["method"], {})[row["run"]] = row["error"]
    compared = {}
    for key, methods in found.items():
        both = [(error, methods[second].get(run)) for run, error in methods[first].items()]
        common = [pair for pair in both if pair[1] is not None]
        if common:
            one, other = np.array(common).T
            compared[key] = float(one.mean()), float(other.mean())
    return compared


def mean_and_deviation(average: Average | None, digits: int = 1) -> str:
    """Return "5.8 ± 1.1", the mean alone of a single run, or a dash where there is none."""
    if average is None:
        return "–"
    text = f"{average.mean:.{digits}f}"
    return text if average.deviation is None else f"{text} ± {average.deviation:.{digits}f}"


def less(ours: Average | None, theirs: float | None, digits: int = 2) -> float | None:
    """Return by how much our mean is above a published number, where there are both."""
    return None if ours is None or theirs is None else round(ours.mean - theirs, digits)


def by_method(found: Averages, methods: Sequence[str], columns: Sequence[str]) -> Lines:
    """Return a line of means and deviations for every method there is, by column and method."""
    return [
        [method, *(mean_and_deviation(found.get((column, method))) for column in columns)]
        for method in methods
        if any((column, method) in found for column in columns)
    ]


def table_of(
    rows: list[Row], column: str, caption: str, *, what: str = "mean", name: str = "{}",
    notes: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Return a table of errors: a line for every set and method, a column for every size.

    Shown are means, or deviations of `ENOUGH` runs; the last column tells the runs, "2 to 10".
    """
    found = averages(rows, ["data", "method", column])
    sizes = sorted({row[column] for row in rows})
    lines: Lines = []
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in rows):
        there = [found.get((data, method, size)) for size in sizes]
        runs = [average.n_runs for average in there if average is not None]
        shown = [a if a and (what == "mean" or a.n_runs >= ENOUGH) else None for a in there]
        values = [None if a is None else round(float(getattr(a, what)), 2) for a in shown]
        ends = dict.fromkeys((min(runs), max(runs)))
        lines.append([data, method, *values, " to ".join(map(str, ends))])
    return Table(caption, ["data", "method", *map(name.format, sizes), "runs"], lines, notes)


def curves(found: Averages, what: str = "mean", title: str = "{}") -> Curves:
    """Return lines to be drawn of averages by panel, line and position, as `panels` wants them.

    Heights are means, or deviations of `ENOUGH` runs; panels stand in the order of the averages.
    """
    made: Curves = {}
    for (panel, line, at), average in sorted(found.items(), key=lambda one: one[0][2]):
        if what == "mean" or average.n_runs >= ENOUGH:
            xs, ys = made.setdefault(title.format(panel), {}).setdefault(line, ([], []))
            xs.append(float(at))
            ys.append(float(getattr(average, what)))
    order = dict.fromkeys(title.format(panel) for panel, *_ in found)
    return {panel: made[panel] for panel in order if panel in made}
