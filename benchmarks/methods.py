"""The methods that are compared: what each imports and how it labels all rows.

Imports stand inside the functions, so that a process loads, and is timed for, only what it
measures; not even numpy is loaded here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

UNLABELED = -1


@dataclass(frozen=True)
class Method:
    """One way from X and a few labels to a label for every row.

    Attributes
    ----------
    title : str
        Name in the tables.
    modules : tuple of str
        What has to be imported; timed apart, and missing if not installed.
    labels : callable
        (X, y with -1, options) → labels of all rows.
    """

    title: str
    modules: tuple[str, ...]
    labels: Callable[[Any, Any, dict], Any]


def _ours(X, y, options):
    from manifoldknn import ManifoldKNNClassifier

    return ManifoldKNNClassifier(**options).fit(X, y).transduction_


def _label_spreading(X, y, options):
    from sklearn.semi_supervised import LabelSpreading

    return LabelSpreading(kernel="knn", n_jobs=-1, **options).fit(X, y).transduction_


def _long_spreading(X, y, options):
    """Let labels travel farther than by default; to its end, which is not warned about."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _label_spreading(X, y, {"n_neighbors": 10, "alpha": 0.99, "max_iter": 200} | options)


def _poisson(X, y, options):
    from graphlearning import ssl

    return _graph_learning(ssl.poisson, X, y, options)


def _laplace(X, y, options):
    from graphlearning import ssl

    return _graph_learning(ssl.laplace, X, y, options)


def _graph_learning(model, X, y, options):
    from graphlearning import weightmatrix

    labeled = (y != UNLABELED).nonzero()[0]
    return model(weightmatrix.knn(X, 10), **options).fit_predict(labeled, y[labeled])


def _nearest_neighbors(X, y, options):
    from sklearn.neighbors import KNeighborsClassifier

    labeled = y != UNLABELED
    answer = y.copy()
    classifier = KNeighborsClassifier(n_neighbors=5, **options).fit(X[labeled], y[labeled])
    answer[~labeled] = classifier.predict(X[~labeled])
    return answer


# The package loads what is asked of it only then; the classifier is what people ask for.
_OURS = ("manifoldknn", "manifoldknn.classifier")
# GraphLearning finds neighbours with annoy, which it imports only then.
_GRAPH_LEARNING = ("graphlearning", "annoy")

METHODS = {
    "ours": Method("manifoldknn", _OURS, _ours),
    "sklearn": Method(
        "scikit-learn LabelSpreading (knn)", ("sklearn.semi_supervised",), _label_spreading
    ),
    "sklearn-long": Method(
        "scikit-learn LabelSpreading (knn, n_neighbors=10, alpha=.99)",
        ("sklearn.semi_supervised",),
        _long_spreading,
    ),
    "gl-poisson": Method("GraphLearning Poisson", _GRAPH_LEARNING, _poisson),
    "gl-laplace": Method("GraphLearning Laplace", _GRAPH_LEARNING, _laplace),
    "knn": Method("scikit-learn KNeighborsClassifier", ("sklearn.neighbors",), _nearest_neighbors),
}
