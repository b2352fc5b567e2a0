"""What suggestions are made on: rows, their graph without labels, and what labels say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.labels import EncodedLabels
from manifoldknn.base.parameters import check_parameters
from manifoldknn.base.progress import spoken
from manifoldknn.base.tensors import as_numpy
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.device.steps import Steps, choose_steps
from manifoldknn.graph.links import hand_links
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.model.cautions import usable_graph_neighbors
from manifoldknn.model.fitted import fitted_recipe
from manifoldknn.model.geometry import searched
from manifoldknn.model.rowids import (
    check_all_walked,
    fitted_row_ids,
    numbered_pairs,
    own_names,
    row_ids,
)
from manifoldknn.walk.label_columns import block_width


@dataclass(frozen=True)
class Ground:
    """Rows, the graph of them without labels, and what labels say."""

    X: Any
    graph: ConstrainedGraph  # but for links by hand
    labeled: NDArray[np.intp]
    doubt: NDArray[np.float64]  # uncertainty of every row
    names: NDArray[Any]  # what a user calls the rows
    n_jobs: int | None
    classifier: ManifoldKNNClassifier | None  # None before two classes have labels


def walked_ground(
    classifier: ManifoldKNNClassifier, doubt: Callable[[Any], NDArray[np.float64]], index: Any
) -> Ground:
    """Return the ground of a fitted classifier; `index` are names of rows, if any."""
    check_all_walked(classifier)
    names = fitted_row_ids(classifier, index)
    fitted, rows = classifier.fitted_, classifier.labeled_indices_
    _check(classifier, fitted.steps, fitted.index.X, None, classifier.graph_neighbors)
    graph = fitted_recipe(classifier).constrained(np.full(classifier.n_walked_, -1, dtype=np.intp))
    return Ground(
        fitted.index.X, graph, rows, doubt(classifier), names,
        classifier.n_jobs, classifier if len(classifier.classes_) > 1 else None,
    )  # fmt: skip


def bare_ground(
    estimator: ManifoldKNNClassifier,
    X: Any,
    labels: EncodedLabels | None,
    index: Any,
    **links: Any,
) -> Ground:
    """Return the ground of samples with labels of one class at most: neighbours → graph."""
    check_parameters(estimator.get_params(deep=False))
    own = own_names(X.index, len(X)) if hasattr(X, "iloc") else None
    index = X if index is None and hasattr(X, "iloc") else index
    steps = choose_steps(estimator.device, X)
    nothing = iter(())  # of labels only the number is looked at, if they have one
    X = steps.samples(estimator, X, nothing if labels is None else labels.codes)
    n = X.shape[0]
    names = row_ids(index, n)
    nobody = np.full(n, -1, dtype=np.intp)
    codes = nobody if labels is None else labels.codes
    must, cannot = (numbered_pairs(kind, links[kind], own) for kind in ("must_link", "cannot_link"))
    by_hand = hand_links(must, cannot, codes, names=own)
    graph_neighbors = usable_graph_neighbors(estimator.graph_neighbors, n)
    _check(estimator, steps, X, estimator.neighbors, graph_neighbors)
    with spoken(estimator.verbose):
        found = searched(estimator, steps, X, estimator.neighbors, graph_neighbors)
        built = steps.graph(
            X, found.lists, nobody, edges=None, sigma=estimator.sigma, links=by_hand,
            tree_depth=0, theta=estimator.theta, metric=estimator.metric, graph=estimator.graph,
            graph_neighbors=graph_neighbors, n_jobs=estimator.n_jobs,
        )  # fmt: skip
    labeled = np.flatnonzero(codes >= 0)
    X = as_numpy(found.index.X)
    return Ground(X, built.graph, labeled, np.ones(n), names, estimator.n_jobs, None)


def _check(
    estimator: ManifoldKNNClassifier, steps: Steps, X: Any, neighbors: Any, graph_neighbors: int
) -> None:
    """Raise MemoryError if blocks of columns, beside the graph, will not fit."""
    steps.check(
        X, neighbors, block_width(X.shape[0]), n_classes=1, vote="neighbors",
        metric=estimator.metric, graph=estimator.graph, graph_neighbors=graph_neighbors,
        n_jobs=estimator.n_jobs,
    )  # fmt: skip
