"""What the experiments on drawn sets share: the sets, rows of samples, pictures of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.baselines import GeodesicKNNClassifier, WeightedKNNClassifier
from manifoldknn.class_plot import COLORS
from manifoldknn.datasets import make_circle_and_strip, make_knot, make_two_circles
from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table

__all__ = [
    "METHODS",
    "OUR_SETS",
    "SETS",
    "answers_experiment",
    "draw_samples",
    "new_figure",
    "sample_rows",
]

Ints = NDArray[np.intp]

OUR_SETS = (
    "The paper prints neither equations nor samples of its drawn sets: ours are made after its "
    "pictures and the names of their files, so errors cannot be compared in number."
)

# Label of the paper's figure, and the set.
SETS: dict[str, Callable[..., tuple[NDArray[np.float64], Ints, Ints]]] = {
    "two circles": make_two_circles,
    "circle and strip": make_circle_and_strip,
    "knot": make_knot,
}
_MARKERS = ("^", "o")
_PALE = "#8c8c8c"
METHODS: dict[str, Callable[[int], Any]] = {
    "kNN": KNeighborsClassifier,
    "wkNN": WeightedKNNClassifier,
    "gkNN": GeodesicKNNClassifier,
    "mkNN (default)": ManifoldKNNClassifier,
}
_SEES_UNLABELED = ("gkNN", "mkNN (default)")
_VOTERS = (1, 3, 5)
# What is drawn. Of k = 1, 3, 5 the others have the lowest mean error over the three sets at seed 0
# with one vote; wkNN with one vote is kNN, so it is drawn with three. Ours has its default.
_DRAWN = {"kNN": 1, "wkNN": 3, "gkNN": 1, "mkNN (default)": 5}


def answer(method: str, k: int, X: NDArray[np.float64], truth: Ints, labeled: Ints) -> Ints:
    """Return the class that a method gives to every sample, from the labelled ones' classes.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    k : int
        Labelled samples that vote.
    X : ndarray of shape (n_samples, 2)
        Samples.
    truth : ndarray of shape (n_samples,)
        Classes, of which only those of labelled samples are looked at.
    labeled : ndarray of int
        Labelled samples.

    Returns
    -------
    ndarray of shape (n_samples,)
        Classes; labelled samples keep theirs.
    """
    clf = METHODS[method](k)
    if method in _SEES_UNLABELED:
        y = np.full(len(X), -1)
        y[labeled] = truth[labeled]
        return np.asarray(clf.fit(X, y).transduction_)
    found = np.asarray(clf.fit(X[labeled], truth[labeled]).predict(X))
    found[labeled] = truth[labeled]
    return found


def sample_rows(
    X: NDArray[np.float64], truth: Ints, labeled: Ints, answers: Mapping[int, Ints] | None = None
) -> list[Row]:
    """Return a row for every sample: place, class, whether labelled, and answers by k."""
    marked = np.zeros(len(X), dtype=bool)
    marked[labeled] = True
    rows: list[Row] = [
        {"x": float(a), "y": float(b), "class": int(c), "labelled": bool(m)}
        for (a, b), c, m in zip(X, truth, marked)
    ]
    for k, found in (answers or {}).items():
        for row, value in zip(rows, found):
            row[f"k{k}"] = int(value)
    return rows


def error_percent(rows: Sequence[Row], k: int) -> float:
    """Return the share of unlabelled samples that k votes answer wrongly, in %."""
    wrong = [row[f"k{k}"] != row["class"] for row in rows if not row["labelled"]]
    return 100 * sum(wrong) / len(wrong)


def new_figure(width: float, height: float, *grid: int) -> tuple[Any, Any]:
    """Return a figure and its axes, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*grid, squeeze=False)


def draw_samples(ax: Any, rows: Sequence[Row], *, colour: str | None, title: str) -> None:
    """Draw samples in the plane, as the paper does: labelled ones large.

    Parameters
    ----------
    ax : Axes
        Where.
    rows : sequence of dict
        From `sample_rows`.
    colour : str or None
        Column that colours the unlabelled ones; None: grey dots. Those whose answer is wrong are
        ringed.
    title : str
        Of the panel.
    """
    for c, (shade, marker) in enumerate(zip(COLORS, _MARKERS)):
        if colour is not None:
            _scatter(ax, [r for r in rows if not r["labelled"] and r[colour] == c],
                     marker=marker, s=15, c=shade, linewidths=0)  # fmt: skip
        _scatter(ax, [r for r in rows if r["labelled"] and r["class"] == c], marker=marker, s=105,
                 c=shade, edgecolors="black", linewidths=1.3, zorder=4)  # fmt: skip
    plain = [r for r in rows if not r["labelled"]]
    if colour is None:
        _scatter(ax, plain, marker="o", s=9, c=_PALE, linewidths=0)
    else:
        _scatter(ax, [r for r in plain if r[colour] != r["class"]], marker="o", s=42, c="none",
                 edgecolors="black", linewidths=0.6, zorder=3)  # fmt: skip
    ax.set_title(title)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def _scatter(ax: Any, rows: Sequence[Row], **style: Any) -> None:
    if rows:
        ax.scatter([r["x"] for r in rows], [r["y"] for r in rows], **style)


def answers_experiment(name: str, set_name: str, number: int) -> Experiment:
    """Return the experiment that draws the four methods' answers on one of the three sets.

    Parameters
    ----------
    name : str
        Of the experiment.
    set_name : str
        One of `SETS`.
    number : int
        What the paper calls the set.

    Returns
    -------
    Experiment
        One cell per method.
    """

    def cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
        return [Cell(name, (method,), seconds=0.3) for method in METHODS]

    def measure(cell: Cell, plan: Plan) -> list[Row]:
        method = str(cell.key[0])
        X, truth, labeled = SETS[set_name](random_state=plan.seed)
        answers = {k: answer(method, k, X, truth, labeled) for k in _VOTERS}
        return [{"method": method, **row} for row in sample_rows(X, truth, labeled, answers)]

    def tables(rows: list[Row], plan: Plan) -> list[Table]:  # noqa: ARG001
        errors = [
            [method, *(error_percent(_of(rows, method), k) for k in _VOTERS), None]
            for method in METHODS
        ]
        return [
            Table(
                f"Error on data set {number} with 3 labels per class (%)",
                ["method", *(f"{k} vote{'s' * (k > 1)}" for k in _VOTERS), "published"],
                errors,
                ["The paper shows pictures without numbers here, and does not say how many vote."],
            )
        ]

    def draw(rows: list[Row], plan: Plan) -> Any:  # noqa: ARG001
        figure, axes = new_figure(8.4, 7.2, 2, 2)
        for ax, (method, k) in zip(axes.flat, _DRAWN.items()):
            own = _of(rows, method)
            title = f"{method}, k = {k}: error {error_percent(own, k):.1f} %"
            draw_samples(ax, own, colour=f"k{k}", title=title)
        return figure

    return Experiment(
        name=name,
        title=f"Answers of four nearest-neighbour methods on data set {number}, {set_name}",
        columns=["method", "x", "y", "class", "labelled", *(f"k{k}" for k in _VOTERS)],
        cells=cells,
        measure=measure,
        tables=tables,
        draw=draw,
        differences=[OUR_SETS],
        notes=[
            "Drawn are kNN and gkNN with one vote and mkNN with this package's defaults; wkNN with "
            "three votes, since with one it is kNN. The others' k was picked after looking at the "
            "errors below, in their favour; the table has every k tried. Wrong answers are ringed.",
        ],
    )


def _of(rows: list[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method]
