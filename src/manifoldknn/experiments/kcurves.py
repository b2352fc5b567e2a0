"""Errors against k, as two of the figures have them: what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from manifoldknn.experiments.averages import averages, over_common_runs, runs_of
from manifoldknn.experiments.experiment import Plan, Row, Scalar, Table
from manifoldknn.experiments.lines import panels
from manifoldknn.experiments.methods import DEFAULT, NEAREST, PUBLISHED, error_of
from manifoldknn.experiments.problems import Problem, drawn

__all__ = [
    "COLUMNS",
    "MEANING_OF_K",
    "claims",
    "curve_tables",
    "curves_over_k",
    "draw_over_k",
    "falling",
    "measured",
]

COLUMNS = ("data", "method", "k", "run", "error")
_ABSCISSA = "k (labels per class; votes of all but our default)"
MEANING_OF_K = (
    "As the paper says, k is the number of labelled samples drawn from every class; it is also "
    "the number of samples that vote in kNN, wkNN, gkNN and mkNN as published. Our default "
    "always lets five vote."
)
_AT = 3  # the k at which methods are compared by set


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


def claims(rows: list[Row], *more: tuple[str, str, bool]) -> Table:
    """Set what the paper says of its curves beside what the rows say.

    Parameters
    ----------
    rows : list of dict
        Measured rows.
    *more : tuple of str, str and bool
        Further lines: what the paper says, what is found here, and whether that agrees.

    Returns
    -------
    Table
        Comparisons over the runs that both methods have.
    """
    lines: list[list[Scalar]] = [list(line) for line in more]
    for better, others, words in (
        ("wkNN", ("kNN",), "wkNN generally outperforms kNN"),
        ("gkNN", ("kNN", "wkNN"), "gkNN improves much on kNN and wkNN in most cases"),
    ):
        lower = _lower_at(rows, better, others)
        if lower:
            yes = [data for data, is_lower in lower.items() if is_lower]
            here = f"at k = {_AT} lower on {len(yes)} of {len(lower)} sets"
            here += f": {', '.join(yes)}" if 0 < len(yes) < len(lower) else ""
            lines.append([words, here, 2 * len(yes) > len(lower)])
    for method in (PUBLISHED, DEFAULT):
        cases = _lowest(rows, method)
        if cases:
            here = f"{method}: lowest in {sum(cases)} of {len(cases)} cases of set and k"
            lines.append(
                ["mkNN almost always has the lowest error", here, sum(cases) > 0.9 * len(cases)]
            )
    return Table(
        "What the paper says of this figure",
        ["the paper says", "here", "agrees"],
        lines,
        ("Methods are compared over the runs that they have in common.",),
    )


def falling(rows: list[Row], methods: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the mean error over all sets at the smallest and the largest k, by method.

    Parameters
    ----------
    rows : list of dict
        Measured rows.
    methods : sequence of str
        Names; those without rows are left out.

    Returns
    -------
    dict
        Two errors for each.
    """
    found = averages(rows, ["method", "k"])
    sizes = sorted({cast(int, row["k"]) for row in rows})
    ends = {m: [found.get((m, k)) for k in (sizes[0], sizes[-1])] for m in methods}
    return {m: (a.mean, b.mean) for m, (a, b) in ends.items() if a is not None and b is not None}


def _lower_at(rows: list[Row], better: str, others: Sequence[str]) -> dict[str, bool]:
    """Tell by set whether a method has a lower error than all others."""
    there = [row for row in rows if row["k"] == _AT]
    lower: dict[str, bool] = {}
    for other in others:
        for (data,), (a, b, _) in over_common_runs(there, better, other, ["data"]).items():
            lower[str(data)] = lower.get(str(data), True) and a < b
    return lower


def _lowest(rows: list[Row], method: str) -> list[bool]:
    """Tell for every set and k whether a method has the lowest error, ties counted in."""
    lowest: dict[tuple[Scalar, ...], bool] = {}
    for other in NEAREST:
        for key, (a, b, _) in over_common_runs(rows, method, other, ["data", "k"]).items():
            lowest[key] = lowest.get(key, True) and a <= b
    return list(lowest.values())


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


def draw_over_k(rows: list[Row], sizes: Sequence[int]) -> Any:
    """Draw the mean error against k, a panel per data set.

    Parameters
    ----------
    rows : list of dict
        What `measured` returned, for all runs.
    sizes : sequence of int
        Every k.

    Returns
    -------
    Figure
        Of matplotlib.
    """
    return panels(curves_over_k(rows), x_label=_ABSCISSA, y_label="mean error (%)", ticks=sizes)
