"""Pictures of a fitted classifier show what it holds."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import (
    ConfidenceDisplay,
    DecisionDisplay,
    GraphDisplay,
    plot_confidence,
    plot_decision,
    plot_graph,
)

PLOTS = (plot_decision, plot_graph, plot_confidence)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def arch():
    X, truth, labeled = make_arch_and_s(100, random_state=0)
    y = np.full(len(X), -1)
    y[labeled] = truth[labeled]
    return ManifoldKNNClassifier().fit(X, y)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c", ""])[np.where(np.arange(150) % 10 == 0, y, -1)]
    return ManifoldKNNClassifier().fit(X, y)


@pytest.mark.parametrize("plot", PLOTS)
def test_axes_are_used_and_returned(arch, plot):
    _, ax = plt.subplots()
    before = plt.get_fignums()
    display = plot(arch, ax=ax, title="Here")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title() == "Here"
    assert plt.get_fignums() == before
    assert display.plot() is display
    assert display.ax_ is not ax
    assert len(display.ax_.collections) == len(ax.collections) > 0


def test_functions_are_the_displays(arch):
    for plot, kind in zip(PLOTS, (DecisionDisplay, GraphDisplay, ConfidenceDisplay)):
        assert type(plot(arch)) is type(kind.from_estimator(arch)) is kind


def test_decision_shows_the_answers(arch):
    ax = plot_decision(arch, grid_resolution=40).ax_
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    xs, ys = np.linspace(left, right, 40), np.linspace(bottom, top, 40)
    answers = arch.predict(np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)).reshape(40, 40)
    blue = np.asarray(image.get_array())[..., :3] == mpl.colors.to_rgb("#0072B2")
    np.testing.assert_array_equal(blue.all(axis=-1), answers == 0)


def test_graph_shows_every_edge_where_it_is(arch):
    ax = plot_graph(arch).ax_
    W = arch.fitted_.graph.log_weights.tocoo()
    once = W.row < W.col
    X = arch.fitted_.index.X
    expected = np.stack([X[W.row[once]], X[W.col[once]]], axis=1)
    np.testing.assert_array_equal(np.array(ax.collections[0].get_segments()), expected)
    alpha = ax.collections[0].get_colors()[:, 3]
    np.testing.assert_allclose(alpha, 0.08 + 0.72 * np.exp(W.data[once]))


def test_confidence_shows_the_shares(iris):
    points = np.random.default_rng(0).random((150, 2))
    ax = plot_confidence(iris, points=points).ax_
    marked = np.zeros(150, bool)
    marked[iris.labeled_indices_] = True
    plain, large = ax.collections[:2]
    np.testing.assert_array_equal(plain.get_offsets(), points[~marked])
    shares = iris.label_distributions_.max(axis=1)
    np.testing.assert_allclose(plain.get_array(), shares[~marked])
    np.testing.assert_allclose(large.get_array(), shares[marked])


def test_more_columns_are_brought_to_two(iris):
    assert plot_graph(iris).ax_.collections
    assert plot_confidence(iris).ax_.collections


def test_frames(arch):
    frame = pd.DataFrame(arch.fitted_.index.X, columns=["x", "y"])
    clf = ManifoldKNNClassifier().fit(
        frame, np.where(arch.fitted_.labels.codes >= 0, arch.transduction_, -1)
    )
    assert plot_decision(clf, grid_resolution=5).ax_.images


def test_what_cannot_be_drawn(arch, iris):
    with pytest.raises(ValueError, match="2 columns, not 4"):
        plot_decision(iris)
    with pytest.raises(ValueError, match=r"points must have the shape \(100, 2\)"):
        plot_graph(arch, points=np.zeros((3, 2)))
    for wrong in (1, 2.5, True):
        with pytest.raises(ValueError, match="grid_resolution"):
            plot_decision(arch, grid_resolution=wrong)
    dense = ManifoldKNNClassifier(graph="full", graph_neighbors=3).fit(
        np.arange(9.0)[:, None], [0, 1] + [-1] * 7
    )
    with pytest.raises(ValueError, match="at most 200,000 edges"):
        plot_graph(dense)
    assert plot_confidence(dense).ax_.collections
