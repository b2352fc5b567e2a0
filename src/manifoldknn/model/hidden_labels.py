"""What labelled rows of a fitted model would be called if their labels were hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manifoldknn.model.fitted import fitted_recipe
from manifoldknn.model.rowids import check_all_walked
from manifoldknn.vote.hidden import (
    HiddenLabels,
    answered_shares,
    hidden_densities,
    hidden_groups,
    hidden_tolerance,
    hidden_weights,
    judged,
)
from manifoldknn.vote.shared_graph import SharedGraph
from manifoldknn.vote.votes import NeighborVote
from manifoldknn.walk.choose import chosen_way
from manifoldknn.walk.normalized import NormalizedGraph

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier


def hidden_labels(classifier: ManifoldKNNClassifier) -> HiddenLabels | None:
    """Return what hidden labels were called, walking again if the fit of the classifier hid none.

    None if every class has a single label.

    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import as_published
    >>> X, y = load_iris(return_X_y=True)
    >>> y[10:50] = y[60:100] = y[110:] = -1
    >>> hidden_labels(as_published().fit(X, y)).accuracy > 0.8
    True
    """
    check_all_walked(classifier)
    if classifier.hidden_labels_ is not None:
        return classifier.hidden_labels_
    fitted, alpha, n_classes = classifier.fitted_, classifier.alpha_, len(classifier.classes_)
    codes = fitted.labels.codes
    groups = hidden_groups(codes)
    if not groups:
        return None
    recipe, tol, max_iter = fitted_recipe(classifier), classifier.tol, classifier.max_iter
    if isinstance(fitted.vote, NeighborVote):
        logs = [
            hidden_weights(recipe, codes, group, alpha, tol=tol, max_iter=max_iter)
            for group in groups
        ]
    else:
        way = chosen_way(NormalizedGraph(fitted.graph), alpha, n_columns=n_classes + 1)
        logs = hidden_densities(
            codes, groups, n_classes, SharedGraph(recipe, fitted.graph, codes, alpha, way),
            tol=hidden_tolerance(tol), max_iter=max_iter, n_jobs=classifier.n_jobs,
            reach=fitted.walk.reach,
        )  # fmt: skip
    answered = fitted.labels.numbers(classifier.transduction_)
    weights, belonging = answered_shares(answered, n_classes), fitted.belonging.values.values
    return judged(groups, logs, codes, fitted.vote, weights, belonging=belonging)
