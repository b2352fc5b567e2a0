"""From walk weights to answers, rows that nobody votes for, and labels that judge answers."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Bools, Floats, Ints
from manifoldknn.base.labels import EncodedLabels, encode_further
from manifoldknn.base.samples import check_new_samples, check_same_length
from manifoldknn.base.tensors import as_numpy, chosen_rows
from manifoldknn.base.threads import in_threads
from manifoldknn.exceptions import (
    UnlabeledScoreWarning,
    UnreachedError,
    UnreachedWarning,
    warn_caller,
)
from manifoldknn.extend.reconstruct import Reconstruction, reconstruction
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.vote.similarities import Similarities, combined, row_chunks
from manifoldknn.vote.votes import winners

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_NO_CLASS_OF_IT = -2  # -1 is no answer
_HOW = "cross-validate with manifoldknn.model_selection.SemiSupervisedSplit"


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
    for part, votes, doubted, nobody in model.fitted_.steps.votes(model, X):
        codes[part], unreached[part] = winners(votes), nobody
        codes[part][_too_doubtful(model, doubted)] = -1
        if with_shares:
            shares[part] = doubted
    if unreached.any():
        _resolve_unreached(model, X, unreached, shares, codes)
    return shares, codes


def answers_to(model: ManifoldKNNClassifier, X: Any) -> tuple[Floats, Ints, Bools]:
    """Return shares, class numbers and which rows nobody reaches, for new rows."""
    X = new_rows(model, X)
    made = reconstructed(model, X)
    known, belonging = model.fitted_.walk.similarities, model.fitted_.belonging
    found = combined(made.z, made.indices, known, n_jobs=model.n_jobs)
    return answered(model, found, X, belonging.of_new(made.z, made.indices, made.spacings))


def answered(
    model: ManifoldKNNClassifier, found: Similarities, X: Any, belonging: Floats
) -> tuple[Floats, Ints, Bools]:
    """Return shares, class numbers and the unreached among rows whose similarities are known.

    So is how well they lie among others, `belonging`.
    """
    fitted, n, n_classes = model.fitted_, len(belonging), len(model.classes_)
    shares, codes = np.empty((n, n_classes)), np.empty(n, dtype=np.intp)

    def fill(part: slice) -> None:
        votes, shares[part] = fitted.votes(found.rows(part), X[part], belonging[part])
        codes[part] = winners(votes)
        codes[part][_too_doubtful(model, shares[part])] = -1

    deque(in_threads(fill, row_chunks(n, n_classes), model.n_jobs), maxlen=0)
    unreached = found.unreached
    if found is fitted.walk.similarities and not fitted.walk.converged:
        # The unfinished walk, warned about already, also leaves connected rows without weights.
        starved = unreached & fitted.graph.reached(fitted.labels.labeled)
        _ask_nearest(model, fitted.index, fitted.labels, X, starved, shares, codes)
        unreached &= ~starved
    if unreached.any():
        _resolve_unreached(model, X, unreached, shares, codes)
    return shares, codes, unreached


def _too_doubtful(model: ManifoldKNNClassifier, shares: Floats) -> Bools:
    """Tell for which rows the classifier abstains; those that nobody votes for come later."""
    limit = model.abstain_below or 0.0
    return np.asarray(shares.max(axis=1, initial=0.0) < limit)


def _resolve_unreached(
    model: ManifoldKNNClassifier, X: Any, unreached: Bools, shares: Floats, codes: Ints
) -> None:
    advice = "label a row near them, or raise graph_neighbors"
    if model.graph != "pruned":
        advice = "label a row near them, raise graph_neighbors, or use graph='pruned'"
    fitted, abstains = model.fitted_, bool(model.abstain_below)
    answers = unreached, shares, codes
    resolve_unreached(model, fitted.index, fitted.labels, X, *answers, advice, abstains=abstains)


def resolve_unreached(
    model: Any, index: Any, labels: EncodedLabels, X: Any, unreached: Bools, shares: Floats,
    codes: Ints, advice: str, *, abstains: bool = False,
) -> None:  # fmt: skip
    """Answer rows that nobody reaches as a classifier's `on_unreached` says, and say so."""
    message = (
        f"{unreached.sum()} of {len(unreached)} rows are connected to no labelled sample "
        f"(the first is row {np.argmax(unreached)})"
    )
    if model.on_unreached == "raise":
        raise UnreachedError(f"{message}: {advice}, or set on_unreached='nearest'.")
    if model.on_unreached == "abstain" or abstains:
        if len(shares):
            shares[unreached] = 1.0 / shares.shape[1]
        codes[unreached] = -1
        done = "they stay unlabelled"
    else:
        _ask_nearest(model, index, labels, X, unreached, shares, codes)
        done = "they got the class of the nearest labelled sample"
    warn_caller(f"{message}; {done}. To avoid this, {advice}.", UnreachedWarning)


def _ask_nearest(
    model: Any, index: Any, labels: EncodedLabels, X: Any, rows: Bools, shares: Floats, codes: Ints
) -> None:
    """Answer some rows by the nearest labelled sample of an index."""
    if not rows.any():
        return
    search = ExactIndex(index.rows(labels.labeled), metric=model.metric, n_jobs=model.n_jobs)
    nearest = search.query(chosen_rows(X, rows), 1).indices[:, 0]
    codes[rows] = labels.codes[labels.labeled[nearest]]
    if len(shares):
        shares[rows] = np.eye(shares.shape[1])[codes[rows]]


def true_codes(model: ManifoldKNNClassifier, y: Any, n_rows: int) -> tuple[Ints, Bools]:
    """Return class numbers of the labelled among new rows, and which these are.

    A class that the model does not know is -2. ValueError if there is no label.
    """
    check_same_length(model, n_rows, y)
    known = model.fitted_.labels
    joint, codes = encode_further(y, known, unlabeled=model.unlabeled)
    judged = codes >= 0
    n_left = len(codes) - int(judged.sum())
    if n_left == len(codes):
        raise ValueError(f"y has no label, so there is nothing to score: {_HOW}.")
    if n_left:
        warn_caller(
            f"{n_left} of {len(codes)} rows to score have no label and do not count: {_HOW}, which "
            "tests labelled rows only and learns from all others.",
            UnlabeledScoreWarning,
        )
    numbers = known.numbers(joint.classes)
    numbers[numbers < 0] = _NO_CLASS_OF_IT
    return numbers[codes[judged]], judged
