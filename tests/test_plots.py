"""Pictures: what is drawn, where, and what is said if it cannot be."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import to_hex
from sklearn.datasets import load_iris

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import (
    ConfidenceDisplay,
    DecisionDisplay,
    GraphDisplay,
    plot_classes,
    plot_confidence,
    plot_decision,
    plot_graph,
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def toy():
    return make_arch_and_s(60, random_state=0)


def drawn(ax):
    """All points of all scatters of the axes, in rows."""
    return np.vstack([np.asarray(c.get_offsets()) for c in ax.collections])


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_sample_is_drawn_once(toy):
    X, y, labeled = toy
    points = drawn(plot_classes(X, y, labeled))
    np.testing.assert_allclose(points[np.lexsort(points.T)], X[np.lexsort(X.T)])


def test_labeled_samples_are_large_with_a_dark_outline(toy):
    X, y, labeled = toy
    ax = plot_classes(X, y, labeled)
    plain = [c for c in ax.collections if len(c.get_offsets()) > 3]
    large = [c for c in ax.collections if len(c.get_offsets()) == 3]
    assert len(plain) == len(large) == 2
    assert min(c.get_sizes()[0] for c in large) > 4 * max(c.get_sizes()[0] for c in plain)
    for small, big in zip(plain, large):
        assert to_hex(big.get_edgecolor()[0]) == "#111111"
        assert to_hex(big.get_facecolor()[0]) == to_hex(small.get_facecolor()[0])
        assert big.get_zorder() > small.get_zorder()
    np.testing.assert_array_equal(
        np.sort(np.vstack([c.get_offsets() for c in large]), axis=0), np.sort(X[labeled], axis=0)
    )


def test_classes_differ_in_colour_and_marker(toy):
    X, y, _ = toy
    first, second = plot_classes(X, y).collections
    assert to_hex(first.get_facecolor()[0]) != to_hex(second.get_facecolor()[0])
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)


def test_many_classes_all_look_different():
    n = 35
    X = np.random.default_rng(0).random((n, 2))
    looks = {
        (to_hex(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes())
        for c in plot_classes(X, np.arange(n)).collections
        if len(c.get_offsets())
    }
    assert len(looks) == n


def test_legend_names_the_classes_and_the_labeled(toy):
    X, y, labeled = toy
    assert legend_texts(plot_classes(X, y)) == ["class 0", "class 1"]
    assert legend_texts(plot_classes(X, y, labeled)) == ["class 0", "class 1", "labelled"]
    names = np.where(y == 0, "arch", "s")
    assert legend_texts(plot_classes(X, names)) == ["arch", "s"]


def test_minus_one_is_unlabeled(toy):
    X, y, labeled = toy
    known = np.full(len(y), -1)
    known[labeled] = y[labeled]
    ax = plot_classes(X, known, labeled)
    assert legend_texts(ax) == ["unlabelled", "class 0", "class 1", "labelled"]
    assert len(ax.collections[0].get_offsets()) == len(X) - 6


def test_mask_equals_indices(toy):
    X, y, labeled = toy
    mask = np.zeros(len(X), dtype=bool)
    mask[labeled] = True
    by_mask, by_index = plot_classes(X, y, mask), plot_classes(X, y, labeled)
    np.testing.assert_array_equal(drawn(by_mask), drawn(by_index))


def test_empty_labeled_equals_none(toy):
    X, y, _ = toy
    assert len(plot_classes(X, y, []).collections) == len(plot_classes(X, y).collections)


def test_axes_title_and_scales(toy):
    X, y, _ = toy
    _, ax = plt.subplots()
    assert plot_classes(X, y, ax=ax, title="Toy") is ax
    assert ax.get_title() == "Toy"
    assert ax.get_aspect() == 1
    before = plt.get_fignums()
    plot_classes(X.tolist(), y.tolist(), ax=ax)
    assert plt.get_fignums() == before


def test_new_figure_without_axes(toy):
    X, y, _ = toy
    _, ax = plt.subplots()
    assert plot_classes(X, y) is not ax
    assert not ax.collections


def test_picture_can_be_saved(toy, tmp_path):
    X, y, labeled = toy
    path = tmp_path / "toy.png"
    plot_classes(X, y, labeled).figure.savefig(path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("shape", [(10,), (10, 1), (10, 3), (2, 5, 2)])
def test_x_needs_two_columns(shape):
    with pytest.raises(ValueError, match=r"X must have the shape \(n_samples, 2\)"):
        plot_classes(np.zeros(shape), np.zeros(10))


@pytest.mark.parametrize("shape", [(9,), (10, 1), ()])
def test_y_needs_one_class_per_row(shape):
    with pytest.raises(ValueError, match=r"y must have the shape \(10,\)"):
        plot_classes(np.zeros((10, 2)), np.zeros(shape))


@pytest.mark.parametrize(
    ("labeled", "words"),
    [([10], "does not fit the 10 rows"), ([True] * 9, "does not fit"), ([0.5], "row numbers")],
)
def test_labeled_must_fit(labeled, words):
    with pytest.raises(ValueError, match=words):
        plot_classes(np.zeros((10, 2)), np.zeros(10), labeled)


def test_without_matplotlib(toy, monkeypatch):
    X, y, _ = toy
    # None in sys.modules makes the import fail as if nothing were installed.
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'manifoldknn\[plots\]'"):
        plot_classes(X, y)


# Pictures of a fitted classifier.
PLOTS = (plot_decision, plot_graph, plot_confidence)


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
