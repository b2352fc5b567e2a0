"""Which labelled samples decided a row, whoever votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Floats, Ints
from manifoldknn.model.answering import new_rows, reconstructed
from manifoldknn.vote.deciders import deciding_labels
from manifoldknn.vote.similarities import combined
from manifoldknn.vote.votes import NeighborVote, heaviest

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier


def deciders(model: ManifoldKNNClassifier, X: Any = None) -> tuple[Floats, Ints]:
    """Return weights and rows of the labelled samples that decided new rows, or all fitted ones."""
    check_is_fitted(model)
    fitted = model.fitted_
    labeled, known = fitted.labels.labeled, fitted.walk.similarities
    k = min(model.n_neighbors, len(labeled))
    made = None if X is None else reconstructed(model, new_rows(model, X))
    if isinstance(fitted.vote, NeighborVote):
        if made is not None:
            known = combined(made.z, made.indices, known, n_jobs=model.n_jobs)
        weights, voters = heaviest(known.logs, k)
        return np.exp(known.log_scale)[:, None] * weights, labeled[voters]
    n = fitted.index.n_samples
    z, indices = np.ones((n, 1)), np.arange(n)[:, None]
    if made is not None:
        z, indices = made.z, made.indices
    if fitted.arrivals is not None:
        z, indices = fitted.arrivals.on_walked(z, indices)
    codes = fitted.labels.codes[labeled]
    counts = np.bincount(codes)
    walked = known.rows(slice(0, model.n_walked_)).logarithms()
    assert fitted.walk.log_sums is not None
    divisors = fitted.walk.log_sums + np.log(counts[codes])
    largest = (walked - np.log(counts)).max(axis=1) + np.log1p(-model.tol)
    shares, voters = deciding_labels(
        fitted.graph, z, indices, labeled, divisors, largest, model.alpha_, k,
        tol=model.tol, max_iter=model.max_iter, n_jobs=model.n_jobs,
    )  # fmt: skip
    return shares, labeled[voters]
