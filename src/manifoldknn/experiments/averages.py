"""Mean, deviation and number of runs of measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from manifoldknn.experiments.experiment import Row, Scalar

__all__ = ["Average", "averages", "mean_and_deviation", "over_common_runs", "runs_of"]


@dataclass(frozen=True)
class Average:
    """Several runs of the same.

    Attributes
    ----------
    mean : float
        Their mean.
    deviation : float or None
        Their standard deviation, with n - 1 in the denominator; None for a single run.
    n_runs : int
        How many there were.
    """

    mean: float
    deviation: float | None
    n_runs: int


def averages(
    rows: Iterable[Row], by: Sequence[str], value: str = "error"
) -> dict[tuple[Scalar, ...], Average]:
    """Average a column over the rows that agree in others.

    Parameters
    ----------
    rows : iterable of dict
        Measured rows; those whose value is None are passed over.
    by : sequence of str
        Columns that tell groups apart.
    value : str, default="error"
        Column to average.

    Returns
    -------
    dict
        Averages by the values of `by`, in the order of the rows.

    Examples
    --------
    >>> from manifoldknn.experiments.averages import averages
    >>> averages([{"k": 1, "error": 2.0}, {"k": 1, "error": 4.0}], ["k"])
    {(1,): Average(mean=3.0, deviation=1.4142135623730951, n_runs=2)}
    """
    groups: dict[tuple[Scalar, ...], list[float]] = {}
    for row in rows:
        if row[value] is not None:
            groups.setdefault(tuple(row[name] for name in by), []).append(cast(float, row[value]))
    return {
        key: Average(
            float(np.mean(found)),
            float(np.std(found, ddof=1)) if len(found) > 1 else None,
            len(found),
        )
        for key, found in groups.items()
    }


def over_common_runs(
    rows: Iterable[Row], first: str, second: str, by: Sequence[str]
) -> dict[tuple[Scalar, ...], tuple[float, float, int]]:
    """Compare two methods over the runs that both have, whose labels are the same.

    Parameters
    ----------
    rows : iterable of dict
        Measured rows, with the columns method, run and error.
    first, second : str
        Methods.
    by : sequence of str
        Columns that tell groups apart.

    Returns
    -------
    dict
        Mean error of the first, of the second, and the number of common runs, by the values of
        `by`; groups without a common run are left out.

    Examples
    --------
    >>> from manifoldknn.experiments.averages import over_common_runs
    >>> runs = [("a", 0, 2.0), ("a", 1, 9.0), ("b", 0, 3.0)]
    >>> rows = [{"data": "d", "method": m, "run": r, "error": e} for m, r, e in runs]
    >>> over_common_runs(rows, "a", "b", ["data"])
    {('d',): (2.0, 3.0, 1)}
    """
    found: dict[tuple[Scalar, ...], dict[str, dict[Scalar, float]]] = {}
    for row in rows:
        if row["method"] in (first, second) and row["error"] is not None:
            runs = found.setdefault(tuple(row[name] for name in by), {})
            runs.setdefault(str(row["method"]), {})[row["run"]] = cast(float, row["error"])
    compared = {}
    for key, runs in found.items():
        common = [run for run in runs.get(first, {}) if run in runs.get(second, {})]
        if common:
            means = [float(np.mean([runs[m][run] for run in common])) for m in (first, second)]
            compared[key] = (means[0], means[1], len(common))
    return compared


def mean_and_deviation(average: Average | None, digits: int = 1) -> str:
    """Return "5.8 ± 1.1", the mean alone of a single run, or a dash where there is none.

    Parameters
    ----------
    average : Average or None
        What to write.
    digits : int, default=1
        Digits after the point.

    Returns
    -------
    str
        To be read in a table.
    """
    if average is None:
        return "–"
    text = f"{average.mean:.{digits}f}"
    if average.deviation is None:
        return text
    return f"{text} ± {average.deviation:.{digits}f}"


def runs_of(found: dict[tuple[Scalar, ...], Average], **where: Scalar) -> str:
    """Return "10", or "2 to 10", the number of runs behind averages.

    Parameters
    ----------
    found : dict
        Averages by keys.
    **where : str or number
        Only keys that hold all of these values count.

    Returns
    -------
    str
        A number, or the least and the most; "0" if there are none.
    """
    counts = [a.n_runs for key, a in found.items() if all(v in key for v in where.values())]
    if not counts:
        return "0"
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
