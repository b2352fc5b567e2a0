"""The two steps of reconstruction, held against dense algebra."""

import numpy as np
import pytest
from scipy.optimize import nnls

from manifoldknn import constrained_graph, tired_random_walk
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.figures.fig3 import EXPERIMENT

PLAN = Plan(seed=1)
ROWS = EXPERIMENT.measure(EXPERIMENT.cells(PLAN)[0], PLAN)


def of(what):
    return [row for row in ROWS if row["what"] == what]


def points(rows):
    return np.array([[row["x"], row["y"]] for row in rows])


def dense_weights(X, y):
    """Equation 4 as it stands."""
    walk = tired_random_walk(constrained_graph(X, y))
    return (walk + walk.T) / 2


def test_the_steps_are_equations_7_to_9():
    X, truth, labeled = make_arch_and_s(random_state=1)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    (new,) = np.flatnonzero((points(of("new")) == X).all(axis=1))
    rest = np.delete(np.arange(len(X)), new)
    near = np.argsort(np.linalg.norm(X[rest] - X[new], axis=1))[:10]
    np.testing.assert_array_equal(points(of("neighbour")), X[rest][near])
    # Step 1: least squares with the sum of z as one more, very heavy, equation.
    heavy = 1e4
    A = np.vstack([X[rest][near].T, heavy * np.ones(10)])
    z = nnls(A, np.append(X[new], heavy))[0]
    found = np.array([row["value"] for row in of("neighbour")])
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    closest = np.linalg.norm(X[new] - z @ X[rest][near])
    assert np.linalg.norm(X[new] - found @ X[rest][near]) <= closest + 1e-6
    # Step 2: the neighbours' walk weights, combined.
    before = dense_weights(X[rest], y[rest])[np.ix_(near, np.searchsorted(rest, labeled))]
    made = [row["value"] for row in of("reconstructed")]
    np.testing.assert_allclose(made, found @ before, rtol=1e-5)
    again = [row["value"] for row in of("walked again")]
    np.testing.assert_allclose(again, dense_weights(X, y)[new, labeled], rtol=1e-5)


def test_reconstruction_agrees_with_walking_again_on_the_class():
    made, again = ([row["value"] for row in of(w)] for w in ("reconstructed", "walked again"))
    assert np.argmax(made) // 3 == np.argmax(again) // 3
    (table,) = EXPERIMENT.tables(ROWS)
    differences = [100 * (a / b - 1) for a, b in zip(made, again)]
    np.testing.assert_allclose([line[3] for line in table.rows], differences)
    left, right = EXPERIMENT.draw(ROWS).axes
    assert [bar.get_height() for bar in right.patches] == pytest.approx([*made, *again])
    shown = [f"{row['value']:.2f}" for row in of("neighbour") if row["value"] > 0]
    assert [text.get_text() for text in left.texts] == shown
