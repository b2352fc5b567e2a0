"""Pictures of a fitted classifier: its decisions, its graph, its confidence.

Each function draws into ``ax`` if it is given and returns the axes, as
scikit-learn's displays do. Data of two columns are drawn as they are; of data with
more columns the two main directions (PCA) are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from manifoldknn.class_plot import COLORS, new_axes, plot_classes
from manifoldknn.rowids import check_all_walked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manifoldknn.classifier import ManifoldKNNClassifier

__all__ = ["plot_confidence", "plot_decision", "plot_graph"]

_MOST_EDGES = 200_000
_MARGIN = 0.05  # of the range, around the data


def plot_decision(
    classifier: ManifoldKNNClassifier,
    *,
    ax: Axes | None = None,
    grid_resolution: int = 100,
    title: str | None = None,
) -> Axes:
    """Draw which class a two-dimensional classifier gives to every point of the plane.

    Colours are stronger where the answer is surer.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted on two columns.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if not given.
    grid_resolution : int, default=100
        Points along each side of the grid that is asked.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

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
    >>> ax = plot_decision(clf, ax=Figure().subplots(), grid_resolution=20)
    >>> ax.images[0].get_array().shape
    (20, 20, 4)
    """
    check_is_fitted(classifier)
    X = _dense(classifier)
    if X.shape[1] != 2:
        raise ValueError(
            f"plot_decision needs a classifier fitted on 2 columns, not {X.shape[1]}: fit it on "
            "two columns, or look at plot_confidence."
        )
    if isinstance(grid_resolution, bool) or not isinstance(grid_resolution, int | np.integer):
        raise ValueError(f"grid_resolution={grid_resolution!r} must be a whole number.")
    if grid_resolution < 2:
        raise ValueError(f"grid_resolution={grid_resolution} must be at least 2.")
    from matplotlib.colors import to_rgb

    ax = new_axes() if ax is None else ax
    low, high = X.min(axis=0), X.max(axis=0)
    edge = _MARGIN * np.where(high > low, high - low, 1.0)
    xs, ys = (np.linspace(a, b, grid_resolution) for a, b in zip(low - edge, high + edge))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    shares = classifier.predict_proba(_like_fitted(classifier, grid))
    n_classes = shares.shape[1]
    colors = np.array([to_rgb(COLORS[i % len(COLORS)]) for i in range(n_classes)])
    strength = (shares.max(axis=1) - 1 / n_classes) / max(1 - 1 / n_classes, 1e-12)
    image = np.column_stack([colors[shares.argmax(axis=1)], 0.1 + 0.35 * np.clip(strength, 0, 1)])
    ax.imshow(
        image.reshape(grid_resolution, grid_resolution, 4),
        extent=(xs[0], xs[-1], ys[0], ys[-1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )
    plot_classes(X, classifier.transduction_, classifier.labeled_indices_, ax=ax, title=title)
    return ax


def plot_graph(
    classifier: ManifoldKNNClassifier,
    *,
    points: ArrayLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the edges of the graph, the darker the stronger, and the rows.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted, on a sparse graph of at most 200,000 edges.
    points : array-like of shape (n_samples, 2), optional
        Where to draw the rows; by default their two columns or main directions.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if not given.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Must-links are not drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> from manifoldknn.plots import plot_graph
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:50] = y[55:100] = y[105:] = -1
    >>> clf = ManifoldKNNClassifier().fit(X, y)
    >>> ax = plot_graph(clf, ax=Figure().subplots())
    >>> len(ax.collections[0].get_segments()) == clf._graph.log_weights.nnz // 2
    True
    """
    check_all_walked(classifier)
    graph = classifier._graph
    if not graph.is_sparse or graph.log_weights.nnz > 2 * _MOST_EDGES:
        raise ValueError(
            f"plot_graph draws at most {_MOST_EDGES:,} edges: fit fewer rows, and not graph='full'."
        )
    from matplotlib.collections import LineCollection

    places = _places(classifier, points)
    ax = new_axes() if ax is None else ax
    W = sparse.coo_array(graph.log_weights)
    once = W.row < W.col
    ends = np.stack([places[W.row[once]], places[W.col[once]]], axis=1)
    strength = np.exp(W.data[once])
    gray = np.zeros((len(strength), 4))
    gray[:, 3] = 0.08 + 0.72 * strength
    ax.add_collection(LineCollection(list(ends), colors=gray, linewidths=0.8, zorder=0))
    plot_classes(places, classifier.transduction_, classifier.labeled_indices_, ax=ax, title=title)
    return ax


def plot_confidence(
    classifier: ManifoldKNNClassifier,
    *,
    points: ArrayLike | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the rows, coloured by the share of the vote that their class has.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    points : array-like of shape (n_samples, 2), optional
        Where to draw the rows; by default their two columns or main directions.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if not given.
    title : str, optional
        Title of the axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with a colour bar; labelled rows are large, with a dark outline.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> from manifoldknn.plots import plot_confidence
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:50] = y[55:100] = y[105:] = -1
    >>> clf = ManifoldKNNClassifier().fit(X, y)
    >>> ax = plot_confidence(clf, ax=Figure().subplots())
    >>> len(ax.collections[0].get_offsets()) + len(ax.collections[1].get_offsets())
    150
    """
    check_is_fitted(classifier)
    places = _places(classifier, points)
    ax = new_axes() if ax is None else ax
    confidence = classifier.label_distributions_.max(axis=1)
    marked = np.zeros(len(places), dtype=bool)
    marked[classifier.labeled_indices_] = True
    scale: dict[str, Any] = {"vmin": 0.0, "vmax": 1.0, "cmap": "viridis"}
    x, y = places.T
    dots = ax.scatter(x[~marked], y[~marked], c=confidence[~marked], s=14, **scale)
    outlined: dict[str, Any] = {"edgecolors": "#111111", "zorder": 3, **scale}
    ax.scatter(x[marked], y[marked], c=confidence[marked], s=110, **outlined)
    ax.figure.colorbar(dots, ax=ax, label="confidence")
    if title is not None:
        ax.set_title(title)
    return ax


def _dense(classifier: ManifoldKNNClassifier) -> NDArray[Any]:
    X = classifier._index.X
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _like_fitted(classifier: ManifoldKNNClassifier, rows: NDArray[Any]) -> Any:
    """Return rows under the column names of the fit, if it had any."""
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _places(classifier: ManifoldKNNClassifier, points: ArrayLike | None) -> NDArray[np.float64]:
    n = classifier._graph.n_samples
    if points is not None:
        places = np.asarray(points, dtype=np.float64)
        if places.shape != (n, 2):
            raise ValueError(f"points must have the shape ({n}, 2), not {places.shape}.")
        return places
    X = _dense(classifier).astype(np.float64)
    if X.shape[1] == 1:
        return np.column_stack([X[:, 0], np.zeros(n)])
    return X if X.shape[1] == 2 else np.asarray(PCA(2).fit_transform(X))
