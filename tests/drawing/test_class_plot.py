"""Pictures: what is drawn, where, and what is said if it cannot be."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from manifoldknn.datasets import make_arch_and_s
from manifoldknn.plots import plot_classes


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
