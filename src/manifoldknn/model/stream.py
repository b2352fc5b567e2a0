"""Learning from a stream: rows and labels that come after the fit (section 5 of the paper).

Unlabelled rows are classified by reconstruction and join the model at once:
later rows lean on them. Their price is that of a prediction. A label changes
the graph (a class is tied together by it, others cut apart, degrees and with
them every step of the walk change), so a label means a walk over the grown
graph; who is near whom is not searched again, unless later rows crowd a search
that is not exact.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldknn.base import Array, Bools, Floats, Ints
from manifoldknn.base.labels import EncodedLabels, encode_further, encode_labels
from manifoldknn.base.tensors import as_numpy
from manifoldknn.model.answering import answered, reconstructed
from manifoldknn.model.arrivals import UNKNOWN, Arrivals
from manifoldknn.model.fitted import Fitted
from manifoldknn.model.geometry import lists_were_brought, reopened
from manifoldknn.model.quality import off_manifold_limit, own_oddities
from manifoldknn.model.rowids import own_names, row_numbers
from manifoldknn.search.growing import GrowingArray
from manifoldknn.vote.similarities import combined
from manifoldknn.vote.votes import ClassVote

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_REFRESH_SHARE = 5  # refresh when a fifth as many rows have come as the walk went over,
_LEAST_ODD = 10  # or when this many, and one in a hundred of those, were off the manifold
_ODD_SHARE_OF_WALKED = 100
_ODD_SHARE_OF_ARRIVALS = 10  # and more than a tenth of all that came


def check_first_labels(y: Any, classes: Any, unlabeled: Any) -> None:
    """Raise ValueError if the first chunk of a stream has no labels, or others than announced."""
    if y is None:
        raise ValueError(
            "y is None, but the first chunk needs at least one labelled row: pass y, with -1 "
            "(or None) where a row is unlabelled, or call fit."
        )
    _check_announced(encode_labels(y, unlabeled=unlabeled).classes, classes, unlabeled)


def further_labels(
    model: ManifoldKNNClassifier, y: Any, n_rows: int, classes: Any
) -> tuple[EncodedLabels, bool]:
    """Return the labels of the model and of new rows, and whether any of these has one."""
    known = model.fitted_.labels
    codes = np.full(n_rows, -1, dtype=np.intp)
    if y is not None:
        known, codes = encode_further(y, known, unlabeled=model.unlabeled)
        if len(codes) != n_rows:
            raise ValueError(
                f"X and y have inconsistent numbers of samples: {n_rows} rows and {len(codes)} "
                "labels. Pass one entry of y per row of X, -1 (or None) where it is unlabelled."
            )
        used = known.classes[np.unique(codes[codes >= 0])]
        _check_announced(used, classes, model.unlabeled)
    return replace(known, codes=np.concatenate([known.codes, codes])), bool((codes >= 0).any())


def changed_labels(model: ManifoldKNNClassifier, indices: Any, y: Any) -> EncodedLabels | None:
    """Return the labels of all rows with those of some given, corrected or withdrawn.

    None if no row is named.
    """
    fitted, n = model.fitted_, model.fitted_.index.n_samples
    asked = as_numpy(getattr(indices, "ids", indices))
    rows, y = _named_rows(asked, n, own_names(fitted.row_index, n)), as_numpy(y)
    single = y is None or np.ndim(y) == 0
    if isinstance(y, np.ndarray) and single:
        y = y[()]
    known, codes = encode_further(
        [y] * len(rows) if single else y, fitted.labels, unlabeled=model.unlabeled
    )
    if len(codes) != len(rows):
        raise ValueError(
            f"indices and y have different lengths, {len(rows)} and {len(codes)}: pass one "
            "label per row, or a single one for all."
        )
    if not len(rows):
        return None
    joint = known.codes.copy()
    joint[rows] = codes
    return known.relabeled(joint)


def _named_rows(indices: Any, n: int, names: Array | None) -> Ints:
    rows: Array = np.empty(0)
    with suppress(ValueError):  # names of several levels make no array
        rows = np.atleast_1d(np.asarray(indices))
    if rows.dtype == np.bool_ and rows.shape == (n,):
        return np.flatnonzero(rows)
    if names is not None:
        rows = row_numbers("indices", indices, names)
    if rows.shape == (0,):
        return np.empty(0, dtype=np.intp)
    whole = rows.ndim == 1 and rows.dtype.kind in "iu"
    if not whole or ((rows < 0) | (rows >= n)).any():
        told = f"indices must hold row numbers from 0 to {n - 1}, or be a mask of all {n} rows."
        if names is None and rows.dtype.kind in "OUS":
            told += (
                " Rows have names only if the classifier was fitted on a pandas frame, as "
                'TableEncoder().set_output(transform="pandas") makes one in a pipeline.'
            )
        raise ValueError(told)
    if len(np.unique(rows)) < len(rows):
        raise ValueError("indices names a row twice: give every row one label.")
    return rows.astype(np.intp)


def _check_announced(used: Array, classes: Any, unlabeled: Any) -> None:
    """Raise ValueError if `classes` was given and lacks one that is used."""
    if classes is None or not len(used):
        return
    announced = encode_labels(classes, unlabeled=unlabeled).classes
    missing = np.setdiff1d(used, announced)
    if missing.size:
        raise ValueError(
            f"y holds {missing.tolist()[0]!r}, which classes does not: name all classes there, or "
            "leave classes out, since new ones are welcome."
        )


def taken_in(
    model: ManifoldKNNClassifier, X: Any, labels: EncodedLabels
) -> tuple[Fitted, Array, Bools]:
    """Let unlabelled rows join: return the grown model, their answers and who was unreached.

    `labels` are those of all rows, these included.
    """
    fitted = model.fitted_
    made = reconstructed(model, X)
    found = combined(made.z, made.indices, fitted.walk.similarities)
    belongs = fitted.belonging.of_new(made.z, made.indices, made.spacings)
    shares, codes, unreached = answered(model, found, X, belongs)
    arrivals = fitted.arrivals
    if arrivals is None:
        arrivals = Arrivals.none(
            fitted.walk.similarities, model.label_distributions_, model.graph_neighbors
        )
    odd = np.full(len(codes), UNKNOWN, dtype=np.int8)  # dear, so only when somebody asks
    arrivals = arrivals.joined_by(made, found, shares, odd)
    index = fitted.index.appended(X)
    if index.is_crowded and not lists_were_brought(model):
        index = reopened(model, index.X)
    grown = replace(
        fitted,
        arrivals=arrivals,
        index=index,
        walk=replace(fitted.walk, similarities=arrivals.similarities),
        belonging=fitted.belonging.joined_by(made.gaps, belongs),
        labels=labels,
    )
    return grown, fitted.labels.decode(codes), unreached


def refresh_is_due(n_walked: int, n_arrived: int, n_odd: int) -> bool:
    """Tell whether ``refresh="auto"`` walks again, `n_odd` arrivals having been off the manifold.

    It does when the model has grown by a fifth, so that walks cost a constant share of time per row
    however long the stream is; or when the stream has moved: more than a tenth of what came, at
    least 10 rows and a hundredth of what was walked, was off the manifold.

    >>> refresh_is_due(1000, 199, 0), refresh_is_due(1000, 200, 0)
    (False, True)
    >>> refresh_is_due(1000, 100, 10), refresh_is_due(1000, 99, 10)
    (False, True)
    """
    if _REFRESH_SHARE * n_arrived >= n_walked:
        return n_arrived > 0
    least = max(_LEAST_ODD, n_walked / _ODD_SHARE_OF_WALKED)
    return n_odd >= least and _ODD_SHARE_OF_ARRIVALS * n_odd > n_arrived


def judged_arrivals(model: ManifoldKNNClassifier) -> tuple[Fitted, bool]:
    """Return the model, its arrivals judged if that is needed, and whether a walk is due."""
    fitted, arrivals = model.fitted_, model.fitted_.arrivals
    if arrivals is None:
        return fitted, False
    if refresh_is_due(arrivals.n_walked, len(arrivals), 0):
        return fitted, True
    odd = arrivals.off_manifold.values
    unknown = np.flatnonzero(odd == UNKNOWN)
    if unknown.size:
        odd = odd.copy()
        limit = off_manifold_limit(model)
        odd[unknown] = own_oddities(model, arrivals.n_walked + unknown) > limit
        fitted = replace(fitted, arrivals=replace(arrivals, off_manifold=GrowingArray(odd)))
    return fitted, refresh_is_due(arrivals.n_walked, len(arrivals), int(odd.sum()))


def first_guess(model: ManifoldKNNClassifier, labels: EncodedLabels) -> Floats | None:
    """Return log f as the model knows it, for the classes there are now."""
    known = model.fitted_.walk.similarities
    if not isinstance(model.fitted_.vote, ClassVote):
        return None
    guess = np.full((len(labels.codes), len(labels.classes)), -np.inf)
    place = {name: column for column, name in enumerate(model.classes_.tolist())}
    for column, name in enumerate(labels.classes.tolist()):
        if name in place:
            guess[: len(known.logs), column] = known.logs[:, place[name]] + known.log_scale
    return guess
