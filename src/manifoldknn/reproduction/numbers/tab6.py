"""Error with three labels per class, beside the published numbers.

First what is measured and drawn; then what the rows say: tables, and sentences computed from them.
"""

from typing import Any, NamedTuple

import numpy as np

from manifoldknn.base import Floats
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import (
    ENOUGH,
    Averages,
    averages,
    by_method,
    less,
    mean_and_deviation,
)
from manifoldknn.reproduction.figures.kcurves import FULL_SECONDS, QUICK_PUBLISHED
from manifoldknn.reproduction.figures.lines import STYLES, WHISKERS, new_figure
from manifoldknn.reproduction.methods import (
    BEYOND,
    DEFAULT,
    GUIDED_SVM,
    OF_THE_PAPER,
    PUBLISHED,
    SUPERVISED_METHODS,
    available,
    error_of,
)
from manifoldknn.reproduction.problems import drawn, real
from manifoldknn.reproduction.published import DATA_SETS, ERRORS

UNSCALED = f"{PUBLISHED}, features as they are"
_RIVALS = (*OF_THE_PAPER, GUIDED_SVM)
_NEAR = 5.0  # points
_PER_CLASS = 3
_RUNS, _QUICK_RUNS = 10, 2
_PUBLISHED_RUNS = {"satlog": 5, "usps": 3, "pendigits": 3}
_EVEN = "pendigits"  # all its columns have one range: scaling changes nothing
_SECONDS = read_toml("seconds.toml")["tab6"]


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
    data, kind, run = cell.key
    problem = real(data, scaled=kind != UNSCALED)
    seed = plan.seed + run
    y = drawn(problem.truth, _PER_CLASS, seed)
    others = (*_RIVALS, DEFAULT, *available())
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


def tables(rows: list[Row]) -> list[Table]:
    """Return all tables of the report."""
    return [_beside_the_paper(rows), _everyone(rows), _rivals(rows), _scaling(rows)]


def _beside_the_paper(rows: list[Row]) -> Table:
    found = averages(rows, ["data", "method"])
    lines: Lines = []
    for data in DATA_SETS:
        for method in (*SUPERVISED_METHODS, PUBLISHED, DEFAULT):
            ours = found.get((data, method))
            theirs = ERRORS[data][method if method in SUPERVISED_METHODS else "mkNN"]
            published = f"{theirs.mean:.2f} ± {theirs.deviation:.1f}"
            both = [mean_and_deviation(ours, 2), published, less(ours, theirs.mean)]
            lines.append([data, method, *both, 0 if ours is None else ours.n_runs])
    return Table.told("tab6", "beside", lines)


def _everyone(rows: list[Row]) -> Table:
    found = averages(rows, ["data", "method"])
    methods = [OF_THE_PAPER[0], GUIDED_SVM, *OF_THE_PAPER[1:], PUBLISHED, DEFAULT, *BEYOND]
    return Table.told("tab6", "everyone", by_method(found, methods, DATA_SETS), DATA_SETS)


def _rivals(rows: list[Row]) -> Table:
    """Compare our default with the best other method of the paper, run by run."""
    lines: Lines = []
    for data, found in _rivals_of(rows).items():
        gap = found.gap
        spread = f" ± {gap.std(ddof=1):.2f}" if len(gap) > 1 else ""
        by_run = [f"{gap.mean():+.2f}{spread}", f"{int(np.sum(gap < 0))} of {len(gap)}"]
        lines.append([data, round(found.ours, 2), found.name, round(found.error, 2), *by_run,
                      verdict(gap)])  # fmt: skip
    return Table.told("tab6", "rivals", lines, default=DEFAULT, enough=ENOUGH, guided=GUIDED_SVM)


class _Rival(NamedTuple):
    """Our error, the best rival and its error, and the differences by run."""

    ours: float
    name: str
    error: float
    gap: Floats


def _rivals_of(rows: list[Row]) -> dict[str, _Rival]:
    """Return by set the rival with the lowest error, of those that have all runs of ours."""
    errors: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        errors.setdefault((row["data"], row["method"]), {})[row["run"]] = row["error"]
    found = {}
    for data in DATA_SETS:
        ours = errors.get((data, DEFAULT), {})
        theirs = {m: errors.get((data, m), {}) for m in _RIVALS}
        means = {
            m: float(np.mean([of[run] for run in ours]))
            for m, of in theirs.items()
            if ours and of.keys() >= ours.keys()
        }
        if means:
            best = min(means, key=lambda m: means[m])
            gap = np.array([ours[run] - theirs[best][run] for run in sorted(ours)])
            found[data] = _Rival(float(np.mean(list(ours.values()))), best, means[best], gap)
    return found


def verdict(gap: Floats) -> str:
    """Return what differences by run tell, our error less another's.

    >>> verdict(np.array([-1.0, -2.0, -1.5, -1.0, -2.0])), verdict(np.array([-1.0]))
    ('ahead', '–')
    """
    if len(gap) < ENOUGH:
        return "–"
    if abs(gap.mean()) <= 2 * _standard_error(gap):
        return "level"
    return "ahead" if gap.mean() < 0 else "behind"


def _standard_error(gap: Floats) -> float:
    return float(gap.std(ddof=1)) / len(gap) ** 0.5


def _scaling(rows: list[Row]) -> Table:
    """Show what scaling of features does to the method as published."""
    found = averages(rows, ["data", "method"])
    lines: Lines = []
    for data in DATA_SETS:
        published = ERRORS[data]["mkNN"].mean
        scaled, unscaled = found.get((data, PUBLISHED)), found.get((data, UNSCALED))
        if scaled is not None:
            first = [mean_and_deviation(scaled, 2), less(scaled, published)]
            second = [mean_and_deviation(unscaled, 2), less(unscaled, published)]
            lines.append([data, published, *first, *second, scaled.n_runs])
    return Table.told("tab6", "scaling", lines)


def headline(rows: list[Row]) -> Table:
    """Return the short table at the top of the report."""
    found = averages(rows, ["data", "method"])
    rivals, lines = _rivals_of(rows), []
    for data in DATA_SETS:
        rival = rivals.get(data)
        ours = [found.get((data, method)) for method in (PUBLISHED, DEFAULT)]
        runs = dict.fromkeys(average.n_runs for average in ours if average is not None)
        lines.append([data, f"{ERRORS[data]['mkNN'].mean:.1f}", *map(mean_and_deviation, ours),
                      None if rival is None else f"{rival.error:.1f} {rival.name}",
                      " and ".join(map(str, runs))])  # fmt: skip
    return Table.told("tab6", "headline", lines)


def findings(rows: list[Row]) -> list[str]:
    """Return what the rows say, in sentences."""
    found = averages(rows, ["data", "method"])
    return [
        *_against_published(found),
        *_nearness(found),
        *_standing(rows),
        *_supervised_against_published(found),
    ]


def _named(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _but(names: list[str]) -> str:
    return f"; not on {_named(names)}." if names else "."


def _gaps(found: Averages, method: str, published: str = "mkNN") -> dict[str, float]:
    """Return by set how far a method is above a published error."""
    return {
        data: found[data, method].mean - ERRORS[data][published].mean
        for data in DATA_SETS
        if (data, method) in found
    }


def _against_published(found: Averages) -> list[str]:
    gaps = _gaps(found, DEFAULT)
    above = [f"{data} ({gap:.2f} points above)" for data, gap in gaps.items() if gap > 0]
    text = f"Our default is at or below the published mkNN on {len(gaps) - len(above)} of "
    return [f"{text}{len(gaps)} sets{_but(above)}"] if gaps else []


def _nearness(found: Averages) -> list[str]:
    """Tell where the method as published comes near its published errors, and how."""
    said = []
    for method, how in ((PUBLISHED, "scaled features"), (UNSCALED, "features as they are")):
        gaps = _gaps(found, method)
        far = [f"{data} ({gap:+.1f})" for data, gap in gaps.items() if abs(gap) > _NEAR]
        if gaps:
            near = f"with {how} on {len(gaps) - len(far)} of {len(gaps)} sets measured"
            said.append(near + (f" (not on {_named(far)})" if far else ""))
    text = f"mkNN as published is within {_NEAR:g} points of its published error {'; '.join(said)}."
    return [f"{text} The paper does not say whether it scaled."] if said else []


def _standing(rows: list[Row]) -> list[str]:
    """Tell where our default has the lowest error of all methods of the paper."""
    rivals, behind = _rivals_of(rows), []
    for data, (_, best, _, gap) in rivals.items():
        if gap.mean() > 0:
            proof = "too few runs to tell"
            if len(gap) >= ENOUGH:
                proof = f"standard error {_standard_error(gap):.2f}: {verdict(gap)}"
            behind.append(f"{data} ({best} ahead by {gap.mean():.2f}, {proof})")
    text = "Our default has the lowest mean error of the paper's methods on "
    return [f"{text}{len(rivals) - len(behind)} of {len(rivals)} sets{_but(behind)}"] * bool(rivals)


def _supervised_against_published(found: Averages) -> list[str]:
    gaps = {
        f"{method} on {data}": gap
        for method in SUPERVISED_METHODS
        for data, gap in _gaps(found, method, method).items()
    }
    above = [f"{where} ({gap:+.1f})" for where, gap in gaps.items() if gap >= 0]
    text = f"Of {len(gaps)} published errors of SVM, ANN, NB and DT, {len(gaps) - len(above)} are "
    return [text + "higher than ours" + (f"; not {_named(above)}." if above else ".")] * bool(gaps)


_COLUMNS = ("data", "method", "run", "error")
EXPERIMENT = Experiment.told(
    "tab6", _COLUMNS, _cells, _measure, tables, _draw, datasets=DATA_SETS, headline=headline,
    findings=findings,
)  # fmt: skip
