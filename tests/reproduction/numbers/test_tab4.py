"""Reconstruction errors against literal loops, and within the paper's range."""

import numpy as np
import pytest
from scipy.optimize import minimize

from experiment_kit import QUICK, check_tables, measured_rows
from manifoldknn import constrained_graph, tired_random_walk
from manifoldknn.datasets import make_knot
from manifoldknn.reproduction.methods import NEIGHBORS, PUBLISHED
from manifoldknn.reproduction.numbers.tab4 import EXPERIMENT, relative_error
from manifoldknn.reproduction.published import RECONSTRUCTION


def test_relative_error_is_the_formula():
    T, R = np.array([[1.0, 2.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    wrong = sum((T[i, j] - R[i, j]) ** 2 for i in range(2) for j in range(2))
    assert relative_error(T, R) == pytest.approx(100 * wrong / 9)


def combined(x, near):
    """Solve equation 7 with a general optimiser."""
    k = len(near)
    found = minimize(
        lambda z: np.sum((x - z @ near) ** 2) * 1e4,
        np.full(k, 1 / k),
        jac=lambda z: -2e4 * near @ (x - z @ near),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return found.x


def test_samples_and_weights_against_a_loop():
    cell = next(c for c in EXPERIMENT.cells(QUICK) if c.key == ("knot", 1))
    row = next(r for r in EXPERIMENT.measure(cell, QUICK) if r["method"] == NEIGHBORS)
    X, truth, labeled = make_knot(random_state=1)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    P = tired_random_walk(constrained_graph(X, y))
    X_hat, P_hat = np.empty_like(X), np.empty_like(P)
    for i in range(len(X)):
        near = np.argsort(((X - X[i]) ** 2).sum(axis=1))[1:11]
        z = combined(X[i], X[near])
        X_hat[i], P_hat[i] = z @ X[near], z @ P[near]
    assert row["samples"] == pytest.approx(relative_error(X, X_hat), rel=1e-2)
    # Where several combinations come equally close, weights depend on which one is taken.
    assert row["weights"] == pytest.approx(relative_error(P, P_hat), rel=0.25)


def test_errors_are_in_the_range_of_the_paper():
    rows = measured_rows(EXPERIMENT, EXPERIMENT.cells(QUICK))
    assert rows == measured_rows(EXPERIMENT, EXPERIMENT.cells(QUICK))
    for method in (PUBLISHED, NEIGHBORS):
        for data in ("two circles", "circle and strip", "knot"):
            mine = [r for r in rows if (r["data"], r["method"]) == (data, method)]
            assert np.mean([r["samples"] for r in mine]) < 0.5
            assert np.mean([r["weights"] for r in mine]) < 3


def test_tables_and_figure():
    rows = measured_rows(EXPERIMENT, EXPERIMENT.cells(QUICK)[::2])
    (table,) = EXPERIMENT.tables(rows)
    check_tables([table])
    assert "‖T − R‖² / ‖T‖²" in table.caption
    (said,) = EXPERIMENT.findings(rows)
    worst = [max(np.mean([r[what] for r in rows if (r["data"], r["method"]) == pair])
                 for pair in {(r["data"], r["method"]) for r in rows})
             for what in ("samples", "weights")]  # fmt: skip
    assert f"at most {worst[0]:.2f} % for samples and {worst[1]:.2f} % for the walk" in said
    assert [line[3] for line in table.rows[::2]] == list(RECONSTRUCTION["samples"])
    assert [line[6] for line in table.rows[::2]] == list(RECONSTRUCTION["weights"])
    pytest.importorskip("matplotlib")
    assert len(EXPERIMENT.draw(rows).axes) == 2
