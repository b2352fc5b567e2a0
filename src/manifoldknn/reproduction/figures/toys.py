"""Figures 1 and 4 to 7: drawn sets in the plane, and what methods answer on them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn.base import Floats, Ints
from manifoldknn.baselines import GeodesicKNNClassifier, WeightedKNNClassifier
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import COLORS
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table
from manifoldknn.reproduction.figures.lines import new_figure
from manifoldknn.reproduction.methods import DEFAULT, NEIGHBORS
from manifoldknn.reproduction.problems import SYNTHETIC

METHODS: dict[str, Callable[[int], Any]] = {
    "kNN": KNeighborsClassifier,
    "wkNN": WeightedKNNClassifier,
    "gkNN": GeodesicKNNClassifier,
    NEIGHBORS: partial(ManifoldKNNClassifier, vote="neighbors"),
    DEFAULT: ManifoldKNNClassifier,
}
_SUPERVISED = ("kNN", "wkNN")
_VOTERS = (1, 3, 5)
# What is drawn. Of k = 1, 3, 5 the others have the lowest mean error over the three sets at seed 0
# with one vote; wkNN with one vote is kNN, so it is drawn with three.
_DRAWN = {"kNN": 1, "wkNN": 3, "gkNN": 1, NEIGHBORS: 5, DEFAULT: None}
_PLACE = ("x", "y", "class", "labelled")


def answer(method: str, k: int, X: Floats, truth: Ints, labeled: Ints) -> Ints:
    """Return the class that a method gives to every sample; labelled ones keep theirs.

    Of the truth, only the classes of labelled samples are looked at.
    """
    clf = METHODS[method](k)
    if method not in _SUPERVISED:
        y = np.full(len(X), -1)
        y[labeled] = truth[labeled]
        return np.asarray(clf.fit(X, y).transduction_)
    found = np.asarray(clf.fit(X[labeled], truth[labeled]).predict(X))
    found[labeled] = truth[labeled]
    return found


def error_percent(rows: Sequence[Row], k: int) -> float:
    """Return the share of unlabelled samples that k votes answer wrongly, in %."""
    wrong = [row[f"k{k}"] != row["class"] for row in rows if not row["labelled"]]
    return 100 * sum(wrong) / len(wrong)


def _draw_samples(ax: Any, rows: Sequence[Row], title: str, k: int | None = None) -> None:
    """Draw samples as the paper does: labelled ones large, the others grey or as k votes say.

    Wrong answers are ringed.
    """

    def scatter(of: list[Row], marker: str, **style: Any) -> None:
        if of:
            ax.scatter([r["x"] for r in of], [r["y"] for r in of], marker=marker, **style)

    plain = [r for r in rows if not r["labelled"]]
    for c, (shade, marker) in enumerate(zip(COLORS, "^o")):
        if k is not None:
            scatter([r for r in plain if r[f"k{k}"] == c], marker, s=15, c=shade, linewidths=0)
        scatter([r for r in rows if r["labelled"] and r["class"] == c], marker, s=105, c=shade,
                edgecolors="black", linewidths=1.3, zorder=4)  # fmt: skip
    if k is None:
        scatter(plain, "o", s=9, c="#8c8c8c", linewidths=0)
    else:
        scatter([r for r in plain if r[f"k{k}"] != r["class"]], "o", s=42, c="none",
                edgecolors="black", linewidths=0.6, zorder=3)  # fmt: skip
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)


def _of(rows: list[Row], name: str, value: str) -> list[Row]:
    return [row for row in rows if row[name] == value]


def _toys(
    name: str, first: str, keys: Iterable[str], make: Callable[[str], Any], voters: Sequence[int],
    tables: Callable[[list[Row]], list[Table]], draw: Callable[[list[Row]], Any],
) -> Experiment:  # fmt: skip
    """Return an experiment with a cell for every key: a set from `make`, and answers of voters.

    The column `first`, if it has a name, holds the key; where there are voters it is the method.
    """

    def cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
        return [Cell(name, (key,), seconds=0.1 + 0.1 * len(voters)) for key in keys]

    def measure(cell: Cell, plan: Plan) -> list[Row]:
        (key,) = cell.key
        X, truth, labeled = make(key)(random_state=plan.seed)
        answers = [answer(key, k, X, truth, labeled).tolist() for k in voters]
        marked = np.isin(np.arange(len(X)), labeled).tolist()
        whole = zip(*X.T.tolist(), truth.tolist(), marked, *answers)
        return [dict(zip(columns, (key, *row) if first else row)) for row in whole]

    columns = (*(first,) * bool(first), *_PLACE, *(f"k{k}" for k in voters))
    return Experiment.told(name, columns, cells, measure, tables, draw)


# Figure 1: plain nearest neighbours go wrong.
_FIRST_VOTERS = (1, 2, 3)


def _first_tables(rows: list[Row]) -> list[Table]:
    errors = [[k, error_percent(rows, k), None, None] for k in _FIRST_VOTERS]
    return [Table.told("fig1", "errors", errors)]


def _draw_first(rows: list[Row]) -> Any:
    figure, axes = new_figure(7.6, 8.4, 2, 2)
    _draw_samples(axes.flat[0], rows, "The toy set, 3 labels per class")
    for ax, k in zip(axes.flat[1:], _FIRST_VOTERS):
        _draw_samples(ax, rows, f"k = {k}: error {error_percent(rows, k):.1f} %", k)
    return figure


FIG1 = _toys(
    "fig1", "", ("kNN",), lambda _: make_arch_and_s, _FIRST_VOTERS, _first_tables, _draw_first
)


# Figure 4: the sets themselves.
def _set_tables(rows: list[Row]) -> list[Table]:
    lines: Lines = []
    for number, name in enumerate(SYNTHETIC, 1):
        own = _of(rows, "set", name)
        sizes = [sum(row["class"] == c for row in own) for c in (0, 1)]
        lines.append([f"{number}, {name}", len(own), *sizes, sum(bool(r["labelled"]) for r in own)])
    return [Table.told("fig4", "sizes", lines)]


def _draw_sets(rows: list[Row]) -> Any:
    figure, axes = new_figure(10.0, 3.7, 1, 3)
    for number, (ax, name) in enumerate(zip(axes.flat, SYNTHETIC), 1):
        _draw_samples(ax, _of(rows, "set", name), f"Data set {number}: {name}")
    return figure


FIG4 = _toys("fig4", "set", SYNTHETIC, SYNTHETIC.__getitem__, (), _set_tables, _draw_sets)


# Figures 5 to 7: the answers of methods on one of the sets.
def _answers_experiment(number: int, make: Any) -> Experiment:
    def tables(rows: list[Row]) -> list[Table]:
        errors: Lines = [
            [m, *(error_percent(_of(rows, "method", m), k) for k in _VOTERS), None] for m in METHODS
        ]
        votes = [f"{k} vote{'s' * (k > 1)}" for k in _VOTERS]
        return [Table.told("fig5", "errors", errors, votes, number=number)]

    return _toys(
        f"fig{4 + number}", "method", METHODS, lambda _: make, _VOTERS, tables, _draw_answers
    )


def _draw_answers(rows: list[Row]) -> Any:
    figure, axes = new_figure(11.4, 7.2, 2, 3)
    for ax, (method, k) in zip(axes.flat, _DRAWN.items()):
        own, votes = _of(rows, "method", method), f", k = {k}" if k else ""
        error = error_percent(own, k or 1)
        _draw_samples(ax, own, f"{method}{votes}: error {error:.1f} %", k or 1)
    axes.flat[-1].set_visible(False)
    return figure


FIG5, FIG6, FIG7 = (_answers_experiment(i, make) for i, make in enumerate(SYNTHETIC.values(), 1))
