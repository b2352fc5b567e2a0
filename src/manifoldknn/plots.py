"""Pictures; matplotlib is needed only once one is drawn.

`plot_classes` draws samples in two dimensions; `plot_decision`, `plot_graph` and `plot_confidence`
draw a fitted classifier. These return a display, in the manner of scikit-learn: ``from_estimator``
computes what is drawn and draws it, ``plot`` draws it again elsewhere, ``ax_`` and ``figure_`` are
what was drawn last. Data of two columns are drawn as they are; of data with more columns the two
main directions (PCA) are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.parameters import check_integer
from manifoldknn.model.rowids import check_all_walked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from manifoldknn.classifier import ManifoldKNNClassifier

__all__ = [
    "ConfidenceDisplay",
    "DecisionDisplay",
    "GraphDisplay",
    "plot_classes",
    "plot_confidence",
    "plot_decision",
    "plot_graph",
]

# Colours that stay apart under the common kinds of colour blindness (Okabe and Ito's set), without
# its yellow, which is faint on white, and its black, which marks the labelled samples. Seven
# colours and five shapes have no common divisor: the first 35 classes all look different, and
# every class differs from the next in both.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
_MARKERS = ("o", "^", "s", "D", "v")
_OUTLINE = "#111111"
_UNLABELED = "#B5B5B5"
_MOST_EDGES = 200_000
_MARGIN = 0.05  # of the range, around the data


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


@dataclass
class _Display:
    """Rows in the plane, and where they were drawn last."""

    places: Floats  # (n_samples, 2)
    labeled: Ints
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw into axes, or a new figure if none are given; sets `ax_` and `figure_`."""
        ax = new_axes() if ax is None else ax
        self._draw(ax)
        if title is not None:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


@dataclass
class DecisionDisplay(_Display):
    """Which class a two-dimensional classifier gives to every point of the plane."""

    xs: Floats  # sides of the grid that was asked, (grid_resolution,)
    ys: Floats
    shares: Floats  # of the classes at its points, a row for each of `ys`
    classes_of: Array  # class of each sample

    @classmethod
    def from_estimator(
        cls,
        classifier: ManifoldKNNClassifier,
        *,
        ax: Axes | None = None,
        grid_resolution: int = 100,
        title: str | None = None,
    ) -> Self:
        """Draw which class a two-dimensional classifier gives to every point of the plane.

        Colours are stronger where the answer is surer.

        Parameters
        ----------
        classifier : ManifoldKNNClassifier
            Fitted on two columns.
        grid_resolution : int, default=100
            Points along each side of the grid that is asked.
        ax, title
            Where to draw, a new figure if not given, and a title.

        Returns
        -------
        DecisionDisplay
            What was drawn, with its `ax_` and `figure_`.

        Examples
        --------
        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from manifoldknn import ManifoldKNNClassifier
        >>> from manifoldknn.datasets import make_arch_and_s
        >>> from manifoldknn.plots import plot_decision
        >>> X, truth, labeled = make_arch_and_s(random_state=0)
        >>> y = np.full(len(X), -1)
        >>> y[labeled] = truth[labeled]
        >>> clf = ManifoldKNNClassifier().fit(X, y)
        >>> display = plot_decision(clf, ax=Figure().subplots(), grid_resolution=20)
        >>> display.ax_.images[0].get_array().shape
        (20, 20, 4)
        """
        check_is_fitted(classifier)
        X = _dense(classifier)
        if X.shape[1] != 2:
            raise ValueError(
                f"plot_decision needs a classifier fitted on 2 columns, not {X.shape[1]}: fit it "
                "on two columns, or look at plot_confidence."
            )
        check_integer("grid_resolution", grid_resolution, minimum=2)
        low, high = X.min(axis=0), X.max(axis=0)
        edge = _MARGIN * np.where(high > low, high - low, 1.0)
        xs, ys = (np.linspace(a, b, grid_resolution) for a, b in zip(low - edge, high + edge))
        grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        shares = classifier.predict_proba(_like_fitted(classifier, grid))
        shares = shares.reshape(grid_resolution, grid_resolution, -1)
        made = cls(X, classifier.labeled_indices_, xs, ys, shares, classifier.transduction_)
        return made.plot(ax=ax, title=title)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.colors import to_rgb

        n_classes = self.shares.shape[2]
        colors = np.array([to_rgb(COLORS[i % len(COLORS)]) for i in range(n_classes)])
        strength = (self.shares.max(axis=2) - 1 / n_classes) / max(1 - 1 / n_classes, 1e-12)
        opacity = 0.1 + 0.35 * np.clip(strength, 0, 1)
        picture = np.concatenate([colors[self.shares.argmax(axis=2)], opacity[..., None]], axis=2)
        extent = (self.xs[0], self.xs[-1], self.ys[0], self.ys[-1])
        how: Any = {"origin": "lower", "aspect": "auto", "interpolation": "nearest", "zorder": 0}
        ax.imshow(picture, extent=extent, **how)
        plot_classes(self.places, self.classes_of, self.labeled, ax=ax)


class _RowsDisplay(_Display):
    @classmethod
    def from_estimator(
        cls,
        classifier: ManifoldKNNClassifier,
        *,
        points: ArrayLike | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw the rows of a fitted classifier: `plot_graph` with the edges of its graph.

        There edges are the darker the stronger; must-links are not drawn. `plot_confidence` colours
        rows by the share of the vote that their class has, and has a colour bar.

        Parameters
        ----------
        classifier : ManifoldKNNClassifier
            Fitted; for `plot_graph` on a sparse graph of at most 200,000 edges.
        points : array-like of shape (n_samples, 2), optional
            Where to draw the rows; by default their two columns or main directions.
        ax, title
            Where to draw, a new figure if not given, and a title.

        Returns
        -------
        GraphDisplay or ConfidenceDisplay
            What was drawn, with its `ax_` and `figure_`. Labelled rows are large, with a dark
            outline.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from manifoldknn import ManifoldKNNClassifier
        >>> from manifoldknn.plots import plot_confidence, plot_graph
        >>> X, y = load_iris(return_X_y=True)
        >>> y[5:50] = y[55:100] = y[105:] = -1
        >>> clf = ManifoldKNNClassifier().fit(X, y)
        >>> display = plot_graph(clf, ax=Figure().subplots())
        >>> len(display.ax_.collections[0].get_segments()) == clf.fitted_.graph.log_weights.nnz // 2
        True
        >>> display = plot_confidence(clf, ax=Figure().subplots())
        >>> sum(len(dots.get_offsets()) for dots in display.ax_.collections[:2])
        150
        """
        check_is_fitted(classifier)
        shown = cls._shown(classifier)
        made = cls(_places(classifier, points), classifier.labeled_indices_, *shown)
        return made.plot(ax=ax, title=title)

    @staticmethod
    def _shown(classifier: ManifoldKNNClassifier) -> tuple[Array, ...]:
        """Return what is shown of the rows, in the order of the fields."""
        raise NotImplementedError


@dataclass
class GraphDisplay(_RowsDisplay):
    """The edges of the graph and the rows."""

    edges: Ints  # rows that are linked, (n_edges, 2); must-links are not among them
    strength: Floats  # their weights
    classes_of: Array  # class of each sample

    @staticmethod
    def _shown(classifier: ManifoldKNNClassifier) -> tuple[Array, ...]:
        check_all_walked(classifier)
        graph = classifier.fitted_.graph
        if not graph.is_sparse or graph.log_weights.nnz > 2 * _MOST_EDGES:
            raise ValueError(
                f"plot_graph draws at most {_MOST_EDGES:,} edges: fit fewer rows, and not "
                "graph='full'."
            )
        W = sparse.coo_array(graph.log_weights)
        once = W.row < W.col
        edges = np.column_stack([W.row[once], W.col[once]]).astype(np.intp)
        return edges, np.exp(W.data[once]), classifier.transduction_

    def _draw(self, ax: Axes) -> None:
        from matplotlib.collections import LineCollection

        gray = np.zeros((len(self.strength), 4))
        gray[:, 3] = 0.08 + 0.72 * self.strength
        ends = list(self.places[self.edges])
        ax.add_collection(LineCollection(ends, colors=gray, linewidths=0.8, zorder=0))
        plot_classes(self.places, self.classes_of, self.labeled, ax=ax)


@dataclass
class ConfidenceDisplay(_RowsDisplay):
    """The rows, coloured by the share of the vote that their class has."""

    confidence: Floats  # that share, (n_samples,)

    @staticmethod
    def _shown(classifier: ManifoldKNNClassifier) -> tuple[Array, ...]:
        return (classifier.label_distributions_.max(axis=1),)

    def _draw(self, ax: Axes) -> None:
        marked = np.zeros(len(self.places), dtype=bool)
        marked[self.labeled] = True
        scale: dict[str, Any] = {"vmin": 0.0, "vmax": 1.0, "cmap": "viridis"}
        x, y = self.places.T
        dots = ax.scatter(x[~marked], y[~marked], c=self.confidence[~marked], s=14, **scale)
        outlined: dict[str, Any] = {"edgecolors": _OUTLINE, "zorder": 3, **scale}
        ax.scatter(x[marked], y[marked], c=self.confidence[marked], s=110, **outlined)
        ax.figure.colorbar(dots, ax=ax, label="confidence")


plot_decision = DecisionDisplay.from_estimator
plot_graph = GraphDisplay.from_estimator
plot_confidence = ConfidenceDisplay.from_estimator


def _dense(classifier: ManifoldKNNClassifier) -> Array:
    X = classifier.fitted_.index.X
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _like_fitted(classifier: ManifoldKNNClassifier, rows: Array) -> Any:
    """Return rows under the column names of the fit, if it had any."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _places(classifier: ManifoldKNNClassifier, points: ArrayLike | None) -> Floats:
    n = classifier.fitted_.graph.n_samples
    if points is not None:
        places = np.asarray(points, dtype=np.float64)
        if places.shape != (n, 2):
            raise ValueError(f"points must have the shape ({n}, 2), not {places.shape}.")
        return places
    X = _dense(classifier).astype(np.float64)
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(n)])
    return X if X.shape[1] == 2 else np.asarray(PCA(2).fit_transform(X))
