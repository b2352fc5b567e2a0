"""What the experiments on drawn sets share: the sets, rows of samples, pictures of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.baselines import GeodesicKNNClassifier, WeightedKNNClassifier
from manifoldknn.class_plot import COLORS
from manifoldknn.datasets import make_circle_and_strip, make_knot, make_two_circles
from manifoldknn.experiments.experiment import Cell, Experiment, Plan, Row, Table

__all__ = ["METHODS", "SETS", "answers_experiment", "draw_samples", "new_figure", "sample_rows"]

Ints = NDArray[np.intp]

# Label of the paper's figure, and the set.
SETS: dict[str, Callable[..., tuple[NDArray[np.float64], Ints, Ints]]] = {
    "two circles": make_two_circles,
    "circle and strip": make_circle_and_strip,
    "knot": make_knot,
}
_MARKERS = ("^", "o")
_PALE = "#8c8c8c"
_VOTERS = 3  # as many as each class has labels
METHODS: dict[str, Callable[[], Any]] = {
    "kNN": lambda: KNeighborsClassifier(_VOTERS),
    "wkNN": lambda: WeightedKNNClassifier(_VOTERS),
    "gkNN": lambda: GeodesicKNNClassifier(_VOTERS),
    "mkNN (default)": ManifoldKNNClassifier,
}
_SEES_UNLABELED = ("gkNN", "mkNN (default)")


def answer(method: str, X: NDArray[np.float64], truth: Ints, labeled: Ints) -> Ints:
    """Return the class that a method gives to every sample, from the labelled ones' classes.

    Parameters
    ----------
    method : str
        One of `METHODS`.
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
    clf = METHODS[method]()
    if method in _SEES_UNLABELED:
        y = np.full(len(X), -1)
        y[labeled] = truth[labeled]
        return np.asarray(clf.fit(X, y).transduction_)
    found = np.asarray(clf.fit(X[labeled], truth[labeled]).predict(X))
    found[labeled] = truth[labeled]
    return found


def sample_rows(
    X: NDArray[np.float64], truth: Ints, labeled: Ints, predicted: Ints | None = None
) -> list[Row]:
    """Return a row for every sample: place, class, whether labelled, and the answer if given."""
    marked = np.zeros(len(X), dtype=bool)
    marked[labeled] = True
    rows: list[Row] = [
        {"x": float(a), "y": float(b), "class": int(c), "labelled": bool(m)}
        for (a, b), c, m in zip(X, truth, marked)
    ]
    if predicted is not None:
        for row, value in zip(rows, predicted):
            row["predicted"] = int(value)
    return rows


def error_percent(rows: Sequence[Row]) -> float:
    """Return the share of unlabelled samples that are answered wrongly, in %."""
    wrong = [row["predicted"] != row["class"] for row in rows if not row["labelled"]]
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
    colour : {"predicted", None}
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
        rows = sample_rows(X, truth, labeled, answer(method, X, truth, labeled))
        return [{"method": method, **row} for row in rows]

    def tables(rows: list[Row], plan: Plan) -> list[Table]:  # noqa: ARG001
        errors = [
            [method, error_percent([r for r in rows if r["method"] == method]), None, None]
            for method in METHODS
        ]
        return [
            Table(
                f"Error on data set {number} with 3 labels per class (%)",
                ["method", "ours", "published", "difference"],
                errors,
                ["The paper shows pictures without numbers here."],
            )
        ]

    def draw(rows: list[Row], plan: Plan) -> Any:  # noqa: ARG001
        figure, axes = new_figure(8.4, 7.2, 2, 2)
        for ax, method in zip(axes.flat, METHODS):
            own = [r for r in rows if r["method"] == method]
            draw_samples(
                ax, own, colour="predicted", title=f"{method}: error {error_percent(own):.1f} %"
            )
        return figure

    return Experiment(
        name=name,
        title=f"Answers of four nearest-neighbour methods on data set {number}, {set_name}",
        columns=["method", "x", "y", "class", "labelled", "predicted"],
        cells=cells,
        measure=measure,
        tables=tables,
        draw=draw,
        notes=[
            "The paper prints neither the set's equations nor its samples, so the set is ours, "
            "drawn after the picture and its file's name; errors cannot be compared in number.",
            f"kNN, wkNN and gkNN let {_VOTERS} labelled samples vote, as many as each class has; "
            "mkNN has this package's defaults. Wrong answers are ringed.",
        ],
    )
