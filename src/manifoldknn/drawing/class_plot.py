"""Pictures of two-dimensional samples and their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from manifoldknn.base import Array, Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that stay apart under the common kinds of colour blindness (Okabe and Ito's set), without
# its yellow, which is faint on white, and its black, which marks the labelled samples. Seven
# colours and five shapes have no common divisor: the first 35 classes all look different, and
# every class differs from the next in both.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
_MARKERS = ("o", "^", "s", "D", "v")
_OUTLINE = "#111111"
_UNLABELED = "#B5B5B5"


def plot_classes(
    X: ArrayLike,
    y: ArrayLike,
    labeled: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw two-dimensional samples, coloured by class.

    Classes differ in colour and shape, both the same for the same set of classes, so that pictures
    of several classifiers can stand side by side.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        The samples. Bring data with more columns to two first, for instance by PCA.
    y : array-like of shape (n_samples,)
        Class of each sample: the truth, or what a classifier says. Where the classes are integers,
        -1 stands for "unlabelled" and is drawn as small grey dots.
    labeled : array-like of int or bool, optional
        Indices, or a mask, of the labelled samples. They are drawn large, with a dark outline.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if not given.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with equal scales, and a legend entry for each class and for the labelled
        samples.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `X` does not have two columns, or `y` or `labeled` does not fit `X`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from manifoldknn.datasets import make_arch_and_s
    >>> from manifoldknn.plots import plot_classes
    >>> X, y, labeled = make_arch_and_s(random_state=0)
    >>> ax = plot_classes(X, y, labeled, ax=Figure().subplots(), title="Two manifolds")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['class 0', 'class 1', 'labelled']
    """
    samples, classes_of, marked = _checked(X, y, labeled)
    if ax is None:
        ax = new_axes()
    # Integer labels use -1 for "unlabelled" throughout the library.
    without = classes_of == -1 if classes_of.dtype.kind == "i" else np.zeros(len(samples), bool)
    if without.any():
        _dots(ax, samples[without], color=_UNLABELED, marker="o", s=10, label="unlabelled")
    for i, name in enumerate(np.unique(classes_of[~without])):
        style = {"color": COLORS[i % len(COLORS)], "marker": _MARKERS[i % len(_MARKERS)]}
        of_class = classes_of == name
        label = name if isinstance(name, str) else f"class {name}"
        _dots(ax, samples[of_class & ~marked], s=16, alpha=0.85, label=label, **style)
        if marked[of_class].any():
            # Above every plain sample, whichever class is drawn last.
            _dots(ax, samples[of_class & marked], s=130, edge=_OUTLINE, zorder=3, **style)
    if marked.any():
        _dots(ax, samples[:0], color="white", marker="o", s=80, edge=_OUTLINE, label="labelled")
    ax.set_aspect("equal")
    ax.legend(loc="best", frameon=True)
    if title is not None:
        ax.set_title(title)
    return ax


def _dots(ax: Axes, points: Floats, *, color: str, edge: str = "none", **style: Any) -> None:
    """Scatter points with filled markers, outlined only where asked."""
    ax.scatter(points[:, 0], points[:, 1], c=color, edgecolors=edge, linewidths=1.4, **style)


def new_axes() -> Axes:
    """Make a figure with one pair of axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'manifoldknn[plots]'") from error
    return plt.subplots(layout="constrained")[1]


def _checked(X: ArrayLike, y: ArrayLike, labeled: ArrayLike | None) -> tuple[Floats, Array, Bools]:
    """Return X and y as arrays and the labelled samples as a mask, or say what does not fit."""
    samples = np.asarray(X, dtype=np.float64)
    if samples.ndim != 2 or samples.shape[1] != 2:
        raise ValueError(
            f"X must have the shape (n_samples, 2), not {samples.shape}: bring the data to two "
            "columns first, for instance with sklearn.decomposition.PCA(n_components=2)."
        )
    classes_of = np.asarray(y)
    if classes_of.shape != (len(samples),):
        raise ValueError(
            f"y must have the shape ({len(samples)},) to match X, not {classes_of.shape}."
        )
    marked = np.zeros(len(samples), dtype=np.bool_)
    rows = np.asarray([] if labeled is None else labeled)
    if rows.size == 0:
        return samples, classes_of, marked
    if rows.dtype.kind not in "iub":
        raise ValueError(f"labeled must hold row numbers or a mask of booleans, not {rows.dtype}.")
    try:
        marked[rows] = True
    except IndexError as error:
        raise ValueError(f"labeled does not fit the {len(samples)} rows of X: {error}.") from error
    return samples, classes_of, marked
