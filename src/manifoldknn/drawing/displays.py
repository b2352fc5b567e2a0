"""Pictures of a fitted classifier: its decisions, its graph, its confidence.

In the manner of scikit-learn's displays: ``from_estimator`` computes what is drawn and
draws it, ``plot`` draws it again elsewhere, ``ax_`` and ``figure_`` are what was drawn
last. Data of two columns are drawn as they are; of data with more columns the two main
directions (PCA) are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Array, Floats, Ints
from manifoldknn.base.parameters import check_integer
from manifoldknn.drawing.class_plot import COLORS, new_axes, plot_classes
from manifoldknn.model.rowids import check_all_walked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from manifoldknn.classifier import ManifoldKNNClassifier

_MOST_EDGES = 200_000
_MARGIN = 0.05  # of the range, around the data


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


@dataclass
class GraphDisplay(_Display):
    """The edges of the graph and the rows."""

    edges: Ints  # rows that are linked, (n_edges, 2); must-links are not among them
    strength: Floats  # their weights
    classes_of: Array  # class of each sample

    @classmethod
    def from_estimator(
        cls,
        classifier: ManifoldKNNClassifier,
        *,
        points: ArrayLike | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw the edges of the graph, the darker the stronger, and the rows.

        Parameters
        ----------
        classifier : ManifoldKNNClassifier
            Fitted, on a sparse graph of at most 200,000 edges.
        points : array-like of shape (n_samples, 2), optional
            Where to draw the rows; by default their two columns or main directions.
        ax, title
            Where to draw, a new figure if not given, and a title.

        Returns
        -------
        GraphDisplay
            What was drawn, with its `ax_` and `figure_`. Must-links are not drawn.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from manifoldknn import ManifoldKNNClassifier
        >>> from manifoldknn.plots import plot_graph
        >>> X, y = load_iris(return_X_y=True)
        >>> y[5:50] = y[55:100] = y[105:] = -1
        >>> clf = ManifoldKNNClassifier().fit(X, y)
        >>> display = plot_graph(clf, ax=Figure().subplots())
        >>> len(display.ax_.collections[0].get_segments()) == clf.fitted_.graph.log_weights.nnz // 2
        True
        """
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
        places, labeled = _places(classifier, points), classifier.labeled_indices_
        made = cls(places, labeled, edges, np.exp(W.data[once]), classifier.transduction_)
        return made.plot(ax=ax, title=title)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.collections import LineCollection

        gray = np.zeros((len(self.strength), 4))
        gray[:, 3] = 0.08 + 0.72 * self.strength
        ends = list(self.places[self.edges])
        ax.add_collection(LineCollection(ends, colors=gray, linewidths=0.8, zorder=0))
        plot_classes(self.places, self.classes_of, self.labeled, ax=ax)


@dataclass
class ConfidenceDisplay(_Display):
    """The rows, coloured by the share of the vote that their class has."""

    confidence: Floats  # that share, (n_samples,)

    @classmethod
    def from_estimator(
        cls,
        classifier: ManifoldKNNClassifier,
        *,
        points: ArrayLike | None = None,
        ax: Axes | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw the rows, coloured by the share of the vote that their class has.

        Parameters
        ----------
        classifier : ManifoldKNNClassifier
            Fitted.
        points : array-like of shape (n_samples, 2), optional
            Where to draw the rows; by default their two columns or main directions.
        ax, title
            Where to draw, a new figure if not given, and a title.

        Returns
        -------
        ConfidenceDisplay
            What was drawn, with its `ax_` and `figure_`: the axes have a colour bar; labelled
            rows are large, with a dark outline.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import load_iris
        >>> from manifoldknn import ManifoldKNNClassifier
        >>> from manifoldknn.plots import plot_confidence
        >>> X, y = load_iris(return_X_y=True)
        >>> y[5:50] = y[55:100] = y[105:] = -1
        >>> clf = ManifoldKNNClassifier().fit(X, y)
        >>> display = plot_confidence(clf, ax=Figure().subplots())
        >>> sum(len(dots.get_offsets()) for dots in display.ax_.collections[:2])
        150
        """
        check_is_fitted(classifier)
        places, labeled = _places(classifier, points), classifier.labeled_indices_
        made = cls(places, labeled, classifier.label_distributions_.max(axis=1))
        return made.plot(ax=ax, title=title)

    def _draw(self, ax: Axes) -> None:
        marked = np.zeros(len(self.places), dtype=bool)
        marked[self.labeled] = True
        scale: dict[str, Any] = {"vmin": 0.0, "vmax": 1.0, "cmap": "viridis"}
        x, y = self.places.T
        dots = ax.scatter(x[~marked], y[~marked], c=self.confidence[~marked], s=14, **scale)
        outlined: dict[str, Any] = {"edgecolors": "#111111", "zorder": 3, **scale}
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
