"""Figure 3: the two steps by which a new sample gets its walk weights."""

from typing import Any

import numpy as np

from manifoldknn import constrained_graph, simplex_weights, walk_weights
from manifoldknn.base import Floats
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import COLORS
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table
from manifoldknn.reproduction.figures.lines import new_figure

_NEIGHBORS = 10
_AWAY = np.array([-1.0, 0.75])  # the new sample is the unlabelled one nearest to this place


def _cells(plan: Plan) -> list[Cell]:  # noqa: ARG001
    return [Cell("fig3", ("reconstruction",), seconds=0.3)]


def _weights(X: Floats, truth: Any, labeled: Any) -> Floats:
    """Return w̄ (eq. 4) between every sample and every labelled one."""
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    return walk_weights(constrained_graph(X, y), labeled, tol=1e-8)


def _measure(cell: Cell, plan: Plan) -> list[Row]:  # noqa: ARG001
    X, truth, labeled = make_arch_and_s(random_state=plan.seed)
    away = np.linalg.norm(X - _AWAY, axis=1)
    away[labeled] = np.inf
    new = int(np.argmin(away))
    rest = np.delete(np.arange(len(X)), new)
    places = np.searchsorted(rest, labeled)  # of the labelled samples among the others
    known = _weights(X[rest], truth[rest], places)
    full = _weights(X, truth, labeled)[new]
    near = np.argsort(np.linalg.norm(X[rest] - X[new], axis=1), kind="stable")[:_NEIGHBORS]
    z = simplex_weights(X[[new]], X[rest][near][None])[0]
    rows = [_row("new", X[new], None, None)]
    rows += [_row("neighbour", X[rest][i], None, float(v)) for i, v in zip(near, z)]
    rows += [_row("other", X[i], None, None) for i in np.setdiff1d(rest, rest[near])]
    for number, row in enumerate(labeled):
        rows.append(_row("reconstructed", X[row], number, float(z @ known[near, number])))
        rows.append(_row("walked again", X[row], number, float(full[number])))
    return rows


def _row(what: str, at: Floats, labelled: int | None, value: float | None) -> Row:
    return {"what": what, "x": float(at[0]), "y": float(at[1]), "labelled": labelled,
            "value": value}  # fmt: skip


def _values(rows: list[Row], what: str, name: str = "value") -> Floats:
    return np.array([row[name] for row in rows if row["what"] == what])


def _places(rows: list[Row], what: str) -> Floats:
    return np.column_stack([_values(rows, what, "x"), _values(rows, what, "y")])


def _tables(rows: list[Row]) -> list[Table]:
    made, again = (_values(rows, w) for w in ("reconstructed", "walked again"))
    lines: Lines = [
        [_label(i), float(a), float(b), float(100 * (a / b - 1))]
        for i, (a, b) in enumerate(zip(made, again))
    ]
    near, z = _places(rows, "neighbour"), _values(rows, "neighbour")
    truth = _places(rows, "new")[0]
    error = 100 * float(np.sum((truth - z @ near) ** 2) / np.sum(truth**2))
    # How far reconstruction is off, and whether that matters to the answer.
    off = 100 * np.abs(made / again - 1)
    ratios = [weights[:3].sum() / weights[3:].sum() for weights in (made, again)]
    same = "the same" if (ratios[0] > 1) == (ratios[1] > 1) else "another"
    said = {"carry": np.sum(z > 0), "near": len(near), "least": off.min(), "most": off.max()}
    said |= {"error": error, "apart": max(ratios[1], 1 / ratios[1]), "same": same}
    return [Table.told("fig3", "weights", lines, **said)]


def _label(number: int) -> str:
    return f"{'arch' if number < 3 else 'S'} {number % 3 + 1}"


def _draw(rows: list[Row]) -> Any:
    figure, axes = new_figure(9.6, 4.3, 1, 2)
    left, right = axes.flat
    _draw_neighbours(left, rows)
    made, again = (_values(rows, w) for w in ("reconstructed", "walked again"))
    places = np.arange(len(made))
    right.bar(places - 0.2, made, 0.38, color=COLORS[0], label="reconstructed: Σ z_i w̄_i")
    right.bar(places + 0.2, again, 0.38, color="#c8c8c8", label="walked again with the sample")
    right.set_xticks(places, [_label(i) for i in range(len(made))])
    right.set(yscale="log", xlabel="labelled sample", ylabel="walk weight w̄")
    right.set_title("(b) its walk weights from theirs")
    right.set_ylim(top=60 * max(made.max(), again.max()))
    right.legend(loc="upper right")
    return figure


def _draw_neighbours(ax: Any, rows: list[Row]) -> None:
    (x, y), near = _places(rows, "new")[0], _places(rows, "neighbour")
    ax.scatter(*_places(rows, "other").T, s=22, c="#c8c8c8", linewidths=0,
               label="other samples")  # fmt: skip
    for (a, b), z in zip(near, _values(rows, "neighbour")):
        style = "-" if z > 0 else ":"
        ax.plot([x, a], [y, b], style, color=COLORS[0], linewidth=0.8 + 5 * z, zorder=1)
        if z > 0:
            ax.annotate(f"{z:.2f}", (a, b), (9, 0), textcoords="offset points", va="center",
                        fontsize=9)  # fmt: skip
    ax.scatter(*near.T, s=46, c=COLORS[0], edgecolors="white", zorder=2,
               label="neighbours, with z where it is not 0")  # fmt: skip
    ax.scatter([x], [y], s=190, marker="*", c=COLORS[1], edgecolors="black", zorder=3,
               label="new sample x")  # fmt: skip
    reach = 1.5 * np.abs(near - [x, y]).max()
    ax.set(aspect="equal", xticks=[], yticks=[], title="(a) x from its neighbours: z ≥ 0, Σ z = 1")
    ax.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach))
    ax.spines[["top", "right"]].set_visible(True)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=1)


_COLUMNS = ("what", "x", "y", "labelled", "value")
EXPERIMENT = Experiment.told("fig3", _COLUMNS, _cells, _measure, _tables, _draw)
