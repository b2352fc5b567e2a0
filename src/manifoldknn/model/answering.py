"""From walk weights to answers: the vote, rows that nobody votes for, labels that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.labels import EncodedLabels
from manifoldknn.base.samples import check_new_samples
from manifoldknn.base.tensors import as_numpy, chosen_rows
from manifoldknn.exceptions import UnreachedError, UnreachedWarning, warn_caller
from manifoldknn.extend.reconstruct import Reconstruction, reconstruction
from manifoldknn.search.neighbors import ExactIndex, NeighborIndex
from manifoldknn.vote.deciders import deciding_labels
from manifoldknn.vote.similarities import Similarities, combined
from manifoldknn.vote.votes import NeighborVote, heaviest, winners

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier


def new_rows(model: ManifoldKNNClassifier, X: Any) -> Any:
    """Return a user's rows in the form of the fitted ones."""
    check_is_fitted(model)
    return check_new_samples(model, as_numpy(X), model.fitted_.index.template)


def reconstructed(model: ManifoldKNNClassifier, X: Any) -> Reconstruction:
    """Write checked rows as combinations of rows of the model."""
    index = model.fitted_.index
    n_neighbors = min(model.graph_neighbors, index.n_samples)
    return reconstruction(X, index, n_neighbors=n_neighbors, n_jobs=model.n_jobs)


def predicted(model: ManifoldKNNClassifier, X: Any, *, with_shares: bool) -> tuple[Floats, Ints]:
    """Return shares (or none) and class numbers of new rows, chunk by chunk.

    What a chunk leaves behind is a class number per row, and shares if wanted.
    """
    check_is_fitted(model)
    X = model.fitted_.steps.new_rows(model, X, model.fitted_.index.template)
    n = X.shape[0]
    codes, unreached = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.bool_)
    shares = np.empty((n if with_shares else 0, len(model.classes_)))
    for part, votes, nobody in model.fitted_.steps.votes(model, X):
        codes[part], unreached[part] = winners(votes), nobody
        if with_shares:
            shares[part] = votes
    if unreached.any():
        _resolve_unreached(model, X, unreached, shares, codes)
    return shares, codes


def answers_to(model: ManifoldKNNClassifier, X: Any) -> tuple[Floats, Ints, Bools]:
    """Return shares, class numbers and which rows nobody reaches, for new rows."""
    X = new_rows(model, X)
    made = reconstructed(model, X)
    known = model.fitted_.walk.similarities
    return answered(model, combined(made.z, made.indices, known, n_jobs=model.n_jobs), X)


def answered(
    model: ManifoldKNNClassifier, found: Similarities, X: Any
) -> tuple[Floats, Ints, Bools]:
    """Return shares, class numbers and the unreached among rows whose similarities are known."""
    fitted = model.fitted_
    shares = fitted.shares(found.logs, X)
    codes = winners(shares)
    unreached = found.unreached
    if found is fitted.walk.similarities and not fitted.walk.converged:
        # The unfinished walk, warned about already, also leaves connected rows without weights.
        starved = unreached & fitted.graph.reached(fitted.labels.labeled)
        ask_nearest(model, fitted.labels, fitted.index, X, starved, shares, codes)
        unreached &= ~starved
    if unreached.any():
        _resolve_unreached(model, X, unreached, shares, codes)
    return shares, codes, unreached


def ask_nearest(
    model: Any, labels: EncodedLabels, index: NeighborIndex, X: Any, rows: Bools, *answers: Any
) -> None:
    """Answer some rows by their nearest labelled sample: shares, if there are any, and codes."""
    if not rows.any():
        return
    labeled, (shares, codes) = labels.labeled, answers
    search = ExactIndex(index.rows(labeled), metric=model.metric, n_jobs=model.n_jobs)
    nearest = search.query(chosen_rows(X, rows), 1).indices[:, 0]
    codes[rows] = labels.codes[labeled[nearest]]
    if len(shares):
        shares[rows] = np.eye(shares.shape[1])[codes[rows]]


def _resolve_unreached(
    model: ManifoldKNNClassifier, X: Any, unreached: Bools, shares: Floats, codes: Ints
) -> None:
    """Answer rows that nobody reaches as `on_unreached` says, and say so."""
    advice = "label a row near them, or raise graph_neighbors"
    if model.graph != "pruned":
        advice = "label a row near them, raise graph_neighbors, or use graph='pruned'"
    message = f"{unreached.sum()} of {len(unreached)} rows are connected to no labelled sample"
    known = model.fitted_.labels, model.fitted_.index
    resolve_unreached(model, *known, X, unreached, shares, codes, message=message, advice=advice)


def resolve_unreached(
    model: Any, labels: EncodedLabels, index: NeighborIndex, X: Any, unreached: Bools,
    shares: Floats, codes: Ints, *, message: str, advice: str,
) -> None:  # fmt: skip
    """Answer unreached rows as the model's `on_unreached` says, and say so; shares may be none."""
    message += f" (the first is row {np.argmax(unreached)})"
    if model.on_unreached == "raise":
        raise UnreachedError(f"{message}: {advice}, or set on_unreached='nearest'.")
    if model.on_unreached == "abstain":
        if len(shares):
            shares[unreached] = 1.0 / shares.shape[1]
        codes[unreached] = -1
        done = "they stay unlabelled"
    else:
        ask_nearest(model, labels, index, X, unreached, shares, codes)
        done = "they got the class of the nearest labelled sample"
    warn_caller(f"{message}; {done}. To avoid this, {advice}.", UnreachedWarning)


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
