"""Errors against k, as two of the figures have them: what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from manifoldknn.experiments.averages import averages, runs_of
from manifoldknn.experiments.experiment import Plan, Row, Scalar, Table
from manifoldknn.experiments.methods import error_of
from manifoldknn.experiments.problems import Problem, drawn

__all__ = ["COLUMNS", "curve_tables", "curves_over_k", "measured"]

COLUMNS = ("data", "method", "k", "run", "error")


def measured(
    data: str,
    problem: Problem,
    methods: Sequence[str],
    sizes: Sequence[int],
    run: int,
    plan: Plan,
) -> list[Row]:
    """Measure methods at every k with the labels of one run.

    Parameters
    ----------
    data : str
        Name of the set.
    problem : Problem
        The set.
    methods : sequence of str
        Names of methods.
    sizes : sequence of int
        Values of k: labels per class, and voters.
    run : int
        Its labels are drawn with the plan's seed plus this.
    plan : Plan
        The plan.

    Returns
    -------
    list of dict
        Rows with `COLUMNS`.
    """
    rows: list[Row] = []
    seed = plan.seed + run
    for k in sizes:
        y = drawn(problem.truth, k, seed)
        for method in methods:
            error = error_of(method, problem, y, k=k, seed=seed)
            rows.append({"data": data, "method": method, "k": k, "run": run, "error": error})
    return rows


def curve_tables(rows: list[Row], caption: str, plan: Plan) -> list[Table]:  # noqa: ARG001
    """Return mean errors, a line for every set and method.

    Parameters
    ----------
    rows : list of dict
        Measured rows.
    caption : str
        Caption of the table.
    plan : Plan
        The plan.

    Returns
    -------
    list of Table
        A single one.
    """
    found = averages(rows, ["data", "method", "k"])
    sizes = sorted({cast(int, row["k"]) for row in rows})
    lines: list[list[Scalar]] = []
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in rows):
        errors = [found.get((data, method, k)) for k in sizes]
        lines.append(
            [data, method]
            + [None if e is None else round(e.mean, 2) for e in errors]
            + [runs_of({key: a for key, a in found.items() if key[:2] == (data, method)})]
        )
    header = ["data", "method", *(f"k={k}" for k in sizes), "runs"]
    return [Table(caption, header, lines, ("The paper prints no numbers of this figure.",))]


def curves_over_k(
    rows: list[Row], abscissa: str = "k"
) -> Mapping[str, Mapping[str, tuple[list[float], list[float]]]]:
    """Return positions and mean errors by set and method, to be drawn.

    Parameters
    ----------
    rows : list of dict
        Measured rows.
    abscissa : str, default="k"
        Column of positions.

    Returns
    -------
    dict
        As `panels` wants it.
    """
    curves: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    found = averages(rows, ["data", "method", abscissa])
    for (data, method, k), average in sorted(found.items(), key=lambda one: float(one[0][2] or 0)):
        xs, ys = curves.setdefault(str(data), {}).setdefault(str(method), ([], []))
        xs.append(float(k or 0))
        ys.append(average.mean)
    order = dict.fromkeys(str(row["data"]) for row in rows)
    return {data: curves[data] for data in order if data in curves}
