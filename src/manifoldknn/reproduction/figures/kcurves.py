"""Figures 8 and 9: errors against k on the synthetic and on the real sets."""

from collections.abc import Sequence
from typing import Any

from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table, read_toml
from manifoldknn.reproduction.figures.averages import averages, curves, over_common_runs, table_of
from manifoldknn.reproduction.figures.lines import panels
from manifoldknn.reproduction.methods import DEFAULT, NEAREST, PUBLISHED, error_of
from manifoldknn.reproduction.problems import SYNTHETIC, Problem, drawn, real, synthetic
from manifoldknn.reproduction.published import DATA_SETS

_COLUMNS = ("data", "method", "k", "run", "error")
_AT = 3  # the k at which methods are compared by set
_RUNS, _ALL = 10, tuple(range(1, 11))


def measured(
    data: str, problem: Problem, methods: Sequence[str], sizes: Sequence[int], run: int, plan: Plan,
    *, column: str = "k", most_voters: int | None = None,
) -> list[Row]:  # fmt: skip
    """Measure methods with the labels of one run, at every k: labels per class, and voters."""
    rows: list[Row] = []
    seed = plan.seed + run
    for k in sizes:
        y = drawn(problem.truth, k, seed)
        for method in methods:
            error = error_of(method, problem, y, k=min(k, most_voters or k), seed=seed)
            rows.append({"data": data, "method": method, column: k, "run": run, "error": error})
    return rows


def _table(rows: list[Row], sets: str) -> Table:
    notes = ("The paper prints no numbers of this figure.",)
    return table_of(rows, "k", f"Mean error (%) against k, {sets} sets", name="k={}", notes=notes)


def _draw(rows: list[Row]) -> Any:
    return panels(
        curves(averages(rows, ["data", "method", "k"])),
        x_label="k (labels per class; votes of all but our default)",
        y_label="mean error (%)",
        ticks=sorted({row["k"] for row in rows}),
    )


def claims(rows: list[Row], *more: tuple[str, str, bool]) -> Table:
    """Set what the paper says of its curves beside what the rows say, over common runs.

    `more` are further lines: what the paper says, what is found, and whether that agrees.
    """
    lines: Lines = [list(line) for line in more]
    there = [row for row in rows if row["k"] == _AT]
    for better, others, words in (
        ("wkNN", ("kNN",), "wkNN generally outperforms kNN"),
        ("gkNN", ("kNN", "wkNN"), "gkNN improves much on kNN and wkNN in most cases"),
    ):
        lower = _below(there, better, others, ["data"], ties=False)
        if lower:
            yes = [str(data) for (data,), is_lower in lower.items() if is_lower]
            here = f"at k = {_AT} lower on {len(yes)} of {len(lower)} sets"
            here += f": {', '.join(yes)}" if 0 < len(yes) < len(lower) else ""
            lines.append([words, here, 2 * len(yes) > len(lower)])
    for method in (PUBLISHED, DEFAULT):
        cases = list(_below(rows, method, NEAREST, ["data", "k"], ties=True).values())
        if cases:
            here = f"{method}: lowest in {sum(cases)} of {len(cases)} cases of set and k"
            words = "mkNN almost always has the lowest error"
            lines.append([words, here, sum(cases) > 0.9 * len(cases)])
    return Table.told("fig8", "claims", lines)


def _below(
    rows: list[Row], method: str, others: Sequence[str], by: Sequence[str], *, ties: bool
) -> dict[tuple[Any, ...], bool]:
    """Tell by set, or set and k, whether a method has a lower error than all others."""
    lower: dict[tuple[Any, ...], bool] = {}
    for other in others:
        for key, (a, b) in over_common_runs(rows, method, other, by).items():
            lower[key] = lower.get(key, True) and (a < b or (ties and a == b))
    return lower


def falling(rows: list[Row], methods: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the mean error over all sets at the smallest and the largest k, by method."""
    found = averages(rows, ["method", "k"])
    sizes = sorted({row["k"] for row in rows})
    ends = {m: [found.get((m, k)) for k in (sizes[0], sizes[-1])] for m in methods}
    return {m: (a.mean, b.mean) for m, (a, b) in ends.items() if a is not None and b is not None}


# Figure 8: the synthetic sets.
def _toy_cells(plan: Plan) -> list[Cell]:
    seconds, runs = (0.28, 2) if plan.quick else (0.7, _RUNS)
    return [Cell("fig8", (data, run), seconds) for data in SYNTHETIC for run in range(runs)]


def _measure_toys(cell: Cell, plan: Plan) -> list[Row]:
    data, run = cell.key
    methods, sizes = (*NEAREST, PUBLISHED, DEFAULT), (1, 3, 5, 10) if plan.quick else _ALL
    return measured(data, synthetic(data, plan.seed), methods, sizes, run, plan)


def _toy_tables(rows: list[Row]) -> list[Table]:
    def slopes(methods: Sequence[str], words: str, *, quickly: bool) -> tuple[str, str, bool]:
        ends = falling(rows, methods)
        here = "; ".join(f"{m}: {a:.1f} to {b:.1f}" for m, (a, b) in ends.items())
        agrees = all((b < a / 2) == quickly for a, b in ends.values())
        return words, f"{here} (mean of the sets)", agrees

    flat = "kNN and wkNN have no obvious reduction as k grows"
    steep = "the error of gkNN decreases quickly as k grows"
    return [
        _table(rows, "synthetic"),
        claims(
            rows,
            slopes(NEAREST[:2], flat, quickly=False),
            slopes(NEAREST[2:], steep, quickly=True),
            slopes((PUBLISHED, DEFAULT), "so does that of mkNN", quickly=True),
        ),
    ]


FIG8 = Experiment.told("fig8", _COLUMNS, _toy_cells, _measure_toys, _toy_tables, _draw)

# Figure 9: the real sets. One factorisation of the full graph costs O(n³): so many runs are
# affordable, and seconds of the others are per k of one run.
_PUBLISHED_RUNS = {"satlog": 2, "usps": 2, "pendigits": 2}
QUICK_PUBLISHED = ("segmentation", "banknote", "multifeature")
_SECONDS, FULL_SECONDS = (read_toml("seconds.toml")[name] for name in ("fig9", "full"))


def _sizes(plan: Plan) -> tuple[int, ...]:
    return (1, 3, 10) if plan.quick else _ALL


def _cells(plan: Plan) -> list[Cell]:
    cells, sizes, runs = [], _sizes(plan), 1 if plan.quick else _RUNS
    for data in DATA_SETS:
        seconds = _SECONDS[data] * len(sizes)
        cells += [Cell("fig9", (data, "neighbours", run), seconds) for run in range(runs)]
        if not plan.quick or data in QUICK_PUBLISHED:
            for run in range(min(runs, _PUBLISHED_RUNS.get(data, runs))):
                cells += [
                    Cell("fig9", (data, PUBLISHED, run, k), FULL_SECONDS[data]) for k in sizes
                ]
    return cells


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, kind, run, *size = cell.key
    if kind == PUBLISHED:
        return measured(data, real(data), (PUBLISHED,), size, run, plan)
    return measured(data, real(data), (*NEAREST, DEFAULT), _sizes(plan), run, plan)


FIG9 = Experiment.told(
    "fig9", _COLUMNS, _cells, _measure, lambda rows: [_table(rows, "six real"), claims(rows)],
    _draw, datasets=DATA_SETS,
)  # fmt: skip
