"""How well samples and their walk weights are reconstructed from neighbours.

Every sample of a synthetic set is written as the convex combination of its ten nearest
neighbours, itself excluded, that comes closest to it (equation 7): X̂ = ZX, where row i of Z
holds the convex weights of sample i. Its row of the walk's matrix is the same combination
of theirs (equation 8): P̂_TRW = Z P_TRW. With T the truth and R its reconstruction,

    RMSE(T, R) = ‖T - R‖² / ‖T‖² · 100 %,

‖·‖ being the Frobenius norm. The table's rows are named RMSE(X, X̂) and RMSE(P_TRW, P̂_TRW), so T is
the whole n × n matrix (I - αP)⁻¹ of all samples, diagonal included. What votes, the weights w̄
between samples and labelled samples, is a few columns of it made symmetric, with the labelled
samples' large weights to themselves among them: measured as well, in a column of its own.
"""

from typing import Any

import numpy as np

from manifoldknn.base import Floats
from manifoldknn.extend.simplex import simplex_weights
from manifoldknn.graph.constrained import constrained_graph
from manifoldknn.reproduction.experiment import Cell, Experiment, Lines, Plan, Row, Table
from manifoldknn.reproduction.figures.averages import Average, averages, less, mean_and_deviation
from manifoldknn.reproduction.figures.lines import grouped_bars, new_figure
from manifoldknn.reproduction.methods import NEIGHBORS, PUBLISHED
from manifoldknn.reproduction.problems import SYNTHETIC, Problem, synthetic, tuned_sigma
from manifoldknn.reproduction.published import RECONSTRUCTION
from manifoldknn.walk.label_columns import tired_random_walk

_NEIGHBORS = 10
_RUNS, _QUICK_RUNS = 10, 2
_METHODS = (PUBLISHED, NEIGHBORS)


def relative_error(truth: Floats, rebuilt: Floats) -> float:
    """Return the paper's RMSE, ‖T - R‖² / ‖T‖², in percent.

    >>> relative_error(np.array([[3.0, 4.0]]), np.array([[3.0, 4.5]]))
    1.0
    """
    return 100.0 * float(np.square(truth - rebuilt).sum() / np.square(truth).sum())


def _cells(plan: Plan) -> list[Cell]:
    runs = _QUICK_RUNS if plan.quick else _RUNS
    return [Cell("tab4", (data, run), 0.2) for data in SYNTHETIC for run in range(runs)]


def _measure(cell: Cell, plan: Plan) -> list[Row]:
    data, run = cell.key
    X, truth, labeled = SYNTHETIC[data](random_state=plan.seed + run)
    problem = Problem(X, truth)
    y = np.full(len(X), -1, dtype=np.intp)
    y[labeled] = truth[labeled]
    near = problem.linked(_NEIGHBORS).indices
    Z = np.zeros((len(X), len(X)))
    np.put_along_axis(Z, near, simplex_weights(X, X[near]), axis=1)
    sigma = tuned_sigma(synthetic(data, plan.seed))  # once per set, whatever the draw
    rows: list[Row] = []
    for method in _METHODS:
        how: dict[str, Any] = {"graph": "full", "sigma": sigma} if method == PUBLISHED else {}
        P = tired_random_walk(constrained_graph(X, y, n_jobs=1, **how))
        voting = (0.5 * (P + P.T))[:, labeled]
        parts = {"samples": X, "weights": P, "voting_weights": voting}
        errors = {name: relative_error(T, Z @ T) for name, T in parts.items()}
        rows.append({"data": data, "method": method, "run": run, **errors})
    return rows


def _tables(rows: list[Row]) -> list[Table]:
    kinds = ("samples", "weights", "voting_weights")
    samples, weights, voting = (averages(rows, ["data", "method"], what) for what in kinds)
    lines: Lines = []
    for place, data in enumerate(SYNTHETIC):
        for method in _METHODS:
            line: list[Any] = [f"{place + 1}: {data}", method]
            for found, what, digits in ((samples, "samples", 4), (weights, "weights", 2)):
                ours, theirs = found.get((data, method)), RECONSTRUCTION[what][place]
                line += [mean_and_deviation(ours, digits), theirs, less(ours, theirs, 4)]
            lines.append([*line, mean_and_deviation(voting.get((data, method)), 2)])
    return [Table.told("tab4", "errors", lines)]


def _findings(rows: list[Row]) -> list[str]:
    samples, weights = (
        max(a.mean for a in averages(rows, ["data", "method"], what).values())
        for what in ("samples", "weights")
    )
    return [
        f"Reconstruction errors of the synthetic sets are at most {samples:.2f} % for samples and "
        f"{weights:.2f} % for the walk's matrix (published: at most "
        f"{max(RECONSTRUCTION['samples']):.2f} and {max(RECONSTRUCTION['weights']):.2f})."
    ]


def _draw(rows: list[Row]) -> Any:
    figure, axes = new_figure(8.5, 3.4, 1, 2)
    for ax, what, title in zip(axes.flat, RECONSTRUCTION, ("samples", "the walk's matrix")):
        found = averages(rows, ["data", "method"], what)
        bars: dict[str, list[Average | None]] = {
            method: [found.get((data, method)) for data in SYNTHETIC] for method in _METHODS
        }
        bars["the paper's numbers"] = [Average(value, None, 1) for value in RECONSTRUCTION[what]]
        named = grouped_bars(ax, list(SYNTHETIC), bars)
        ax.set_title(f"RMSE of {title} (%)", fontsize=10)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3, frameon=False)
    return figure


_COLUMNS = ("data", "method", "run", "samples", "weights", "voting_weights")
EXPERIMENT = Experiment.told("tab4", _COLUMNS, _cells, _measure, _tables, _draw, findings=_findings)
