"""What the rows of tab6 say: its tables, and sentences that are computed from them."""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from manifoldknn.reproduction.experiment import Lines, Row, Table
from manifoldknn.reproduction.figures.averages import (
    ENOUGH,
    Averages,
    averages,
    by_method,
    less,
    mean_and_deviation,
)
from manifoldknn.reproduction.methods import (
    BEYOND,
    DEFAULT,
    GUIDED_SVM,
    OF_THE_PAPER,
    PUBLISHED,
    SUPERVISED_METHODS,
)
from manifoldknn.reproduction.published import DATA_SETS, ERRORS

UNSCALED = f"{PUBLISHED}, features as they are"
_RIVALS = (*OF_THE_PAPER, GUIDED_SVM)
_NEAR = 5.0  # points


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
    header = ["data", "method", "error", "published", "difference", "runs"]
    return Table("Error (%) with three labels per class, mean ± deviation", header, lines)


def _everyone(rows: list[Row]) -> Table:
    found = averages(rows, ["data", "method"])
    methods = [OF_THE_PAPER[0], GUIDED_SVM, *OF_THE_PAPER[1:], PUBLISHED, DEFAULT, *BEYOND]
    notes = (
        "kNN, wkNN, gkNN and mkNN as published let three vote, our default all labels.",
        "Poisson stands here where the package graphlearning is installed. It has the solver "
        "gradient_descent: the package's default, conjugate gradients, fails on graphs of "
        "several parts (71 % on segmentation).",
    )
    caption = "All methods, those beyond the paper last"
    return Table(caption, ["method", *DATA_SETS], by_method(found, methods, DATA_SETS), notes)


def _rivals(rows: list[Row]) -> Table:
    """Compare our default with the best other method of the paper, run by run."""
    lines: Lines = []
    for data, found in _rivals_of(rows).items():
        gap = found.gap
        spread = f" ± {gap.std(ddof=1):.2f}" if len(gap) > 1 else ""
        by_run = [f"{gap.mean():+.2f}{spread}", f"{int(np.sum(gap < 0))} of {len(gap)}"]
        lines.append([data, round(found.ours, 2), found.name, round(found.error, 2), *by_run,
                      verdict(gap)])  # fmt: skip
    header = ["data", DEFAULT, "best rival", "its error", "difference by run", "runs won", "so"]
    notes = (
        "Differences are taken run by run, with the same labels: below 0 our default is "
        "better. The spread is that of single runs; that of the mean is smaller by √runs. "
        f"Level: the mean difference is below twice the latter; below {ENOUGH} runs nothing "
        f"is concluded. Among the rivals is {GUIDED_SVM}.",
    )
    caption = "Our default beside the best of the paper's other methods"
    return Table(caption, header, lines, notes)


class _Rival(NamedTuple):
    """Our error, the best rival and its error, and the differences by run."""

    ours: float
    name: str
    error: float
    gap: NDArray[np.float64]


def _rivals_of(rows: list[Row]) -> dict[str, _Rival]:
    """Return by set the rival with the lowest error, of those that have all runs of ours."""
    errors: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        runs = errors.setdefault((str(row["data"]), str(row["method"])), {})
        runs[cast(int, row["run"])] = cast(float, row["error"])
    found = {}
    for data in DATA_SETS:
        ours, theirs = (
            errors.get((data, DEFAULT), {}),
            {m: errors.get((data, m), {}) for m in _RIVALS},
        )
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


def verdict(gap: NDArray[np.float64]) -> str:
    """Return what differences by run tell, our error less another's.

    >>> verdict(np.array([-1.0, -2.0, -1.5, -1.0, -2.0])), verdict(np.array([-1.0]))
    ('ahead', '–')
    """
    if len(gap) < ENOUGH:
        return "–"
    if abs(gap.mean()) <= 2 * _standard_error(gap):
        return "level"
    return "ahead" if gap.mean() < 0 else "behind"


def _standard_error(gap: NDArray[np.float64]) -> float:
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
    header = ["data", "published", "features scaled to [0, 1]", "difference",
              "features as they are", "difference", "runs"]  # fmt: skip
    notes = (
        "All columns of pendigits have one range: there scaling changes nothing, and it is not "
        "measured twice.",
    )
    return Table("mkNN as published: what scaling does (error, %)", header, lines, notes)


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
    header = ["data", "mkNN, published", "mkNN as published, here", "our default",
              "best of the paper's rivals, here", "runs (as published and others)"]  # fmt: skip
    return Table("Error (%) with three labels per class", header, lines)


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
