"""Figure 2: the tired random walk on a small graph."""

from itertools import pairwise, product
from typing import Any

import numpy as np

from manifoldknn import tired_random_walk
from manifoldknn.plots import COLORS
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table
from manifoldknn.reproduction.figures.lines import new_figure

_ALPHA = 0.99
_NODES = ("i", "A", "B", "C", "j")
_PLACES = dict(zip(_NODES, ((0.0, 0.0), (1.25, 0.95), (1.15, -0.75), (2.2, -1.2), (2.9, 0.1))))
# "While at C, walking to B is much likelier than to j": the paper's words, in weights.
_WEIGHTS = {("i", "A"): 0.6, ("A", "j"): 0.5, ("i", "B"): 0.8, ("B", "j"): 0.4, ("B", "C"): 0.9,
            ("C", "j"): 0.1}  # fmt: skip
_PATHS = ("iAj", "iBj", "iBCj", "iBCBj")
_STEPS = (*range(1, 10), *range(10, 100, 10), *range(100, 1001, 100))


def _cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
    return [Cell("fig2", ("walk",), seconds=0.05)]


def _measure(cell: Cell, plan: Plan) -> list[Row]:  # noqa: ARG001
    number = {node: i for i, node in enumerate(_NODES)}
    W = np.zeros((len(_NODES), len(_NODES)))
    for (a, b), weight in _WEIGHTS.items():
        W[number[a], number[b]] = W[number[b], number[a]] = weight
    step = _ALPHA * W / W.sum(axis=1, keepdims=True)
    rows = [_row("edge", f"{a}-{b}", None, w) for (a, b), w in _WEIGHTS.items()]
    for path in _PATHS:
        hops = [step[number[a], number[b]] for a, b in pairwise(path)]
        rows.append(_row("path", " → ".join(path), len(hops), float(np.prod(hops))))
    total, power = np.eye(len(W)), np.eye(len(W))
    for t in range(1, _STEPS[-1] + 1):
        power = power @ step
        total = total + power
        if t in _STEPS:
            rows.append(_row("sum", "i → j", t, float(total[number["i"], number["j"]])))
    whole = tired_random_walk(W, _ALPHA)
    between = product(_NODES, _NODES)
    return rows + [
        _row("walk", f"{a} → {b}", None, float(whole[number[a], number[b]])) for a, b in between
    ]


def _row(what: str, where: str, steps: int | None, value: float) -> Row:
    return {"what": what, "where": where, "steps": steps, "value": value}


def _values(rows: list[Row], what: str) -> dict[Any, float]:
    key = "steps" if what == "sum" else "where"
    return {row[key]: row["value"] for row in rows if row["what"] == what}


def _tables(rows: list[Row]) -> list[Table]:
    walk = _values(rows, "walk")
    matrix: Lines = [[a, *(walk[f"{a} → {b}"] for b in _NODES)] for a in _NODES]
    paths: Lines = [[path, value] for path, value in _values(rows, "path").items()]
    paths.append(["all paths, any number of steps", walk["i → j"]])
    walks = Table.told("fig2", "walk", matrix, _NODES, alpha=_ALPHA)
    return [Table.told("fig2", "paths", paths), walks]


def _draw(rows: list[Row]) -> Any:
    figure, axes = new_figure(10.4, 3.5, 1, 3)
    graph, paths, sums = axes.flat
    _draw_graph(graph, _values(rows, "edge"))
    shares = _values(rows, "path")
    paths.barh(list(shares), list(shares.values()), color=COLORS[0], height=0.6)
    paths.invert_yaxis()
    paths.tick_params(axis="y", length=0)
    for place, value in enumerate(shares.values()):
        paths.annotate(f"{value:.3f}", (value, place), (4, 0), textcoords="offset points",
                       va="center", fontsize=9)  # fmt: skip
    paths.set(title="(b) single paths: αᵗ · ∏ p", xlabel="probability of walking it")
    paths.set_xlim(0, 1.25 * max(shares.values()))
    partial, limit = _values(rows, "sum"), _values(rows, "walk")["i → j"]
    sums.axhline(limit, color="#7a7a7a", linestyle="--", linewidth=1)
    sums.annotate(f"(I − αP)⁻¹ = {limit:.2f}", (1, limit), (0, -5), textcoords="offset points",
                  va="top", fontsize=9)  # fmt: skip
    sums.plot(list(partial), list(partial.values()), color=COLORS[1], marker="o", markersize=3)
    sums.set(xscale="log", xlabel="steps t", ylabel="expected visits of j", ylim=(0, 1.08 * limit))
    sums.set_title("(c) all paths from i to j, up to t steps")
    return figure


def _draw_graph(ax: Any, edges: dict[Any, float]) -> None:
    for name, weight in edges.items():
        (x0, y0), (x1, y1) = (_PLACES[node] for node in name.split("-"))
        ax.plot([x0, x1], [y0, y1], color="#9a9a9a", linewidth=1 + 6 * weight, zorder=1)
        ax.text(
            (x0 + x1) / 2, (y0 + y1) / 2, f"{weight:g}", ha="center", va="center", fontsize=9,
            zorder=2, bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"},
        )  # fmt: skip
    for node, (x, y) in _PLACES.items():
        ends = node in "ij"
        ax.scatter([x], [y], s=520, c=COLORS[1] if ends else "white", edgecolors="black", zorder=3)
        ax.text(x, y, node, ha="center", va="center", style="italic", fontsize=12, zorder=4,
                color="white" if ends else "black")  # fmt: skip
    ax.set(title="(a) the graph and its weights", xlim=(-0.4, 3.3), ylim=(-1.6, 1.4))
    ax.set_axis_off()


_COLUMNS = ("what", "where", "steps", "value")
EXPERIMENT = Experiment.told("fig2", _COLUMNS, _cells, _measure, _tables, _draw)
