"""How well rows fit between their neighbours in a fitted classifier: oddities and errors."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Floats, Ints
from manifoldknn.base.distances import row_norms
from manifoldknn.extend.offmanifold import (
    ReconstructionError,
    checked_rows,
    oddities,
    relative_error,
    usual_limit,
)
from manifoldknn.extend.reconstruct import Reconstruction, coordinates, reconstruction
from manifoldknn.model.answering import new_rows, reconstructed
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.similarities import combined, row_chunks

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier


def oddities_of(model: ManifoldKNNClassifier, X: Any = None) -> Floats:
    """Return the oddities of new rows, or of the model's own."""
    if X is None:
        check_is_fitted(model)
        shape = model.fitted_.index.n_samples, model.fitted_.index.template.shape[1]
        rows = np.arange(shape[0])
        return np.concatenate([own_oddities(model, rows[part]) for part in row_chunks(*shape)])
    X = new_rows(model, X)
    out = np.empty(X.shape[0])
    for part in row_chunks(X.shape[0], X.shape[1]):
        made = reconstructed(model, X[part])
        out[part] = _odd(model, made.residuals, made.spacings, made.indices)
    return out


def off_manifold_limit(model: ManifoldKNNClassifier) -> float:
    """Return the oddity beyond which a row is off the manifold."""
    own = model.fitted_.own
    if own.limit is None:
        own.limit = usual_limit(own_oddities(model, checked_rows(model.n_walked_)))
    return own.limit


def own_oddities(model: ManifoldKNNClassifier, rows: Ints) -> Floats:
    """Return the oddities of rows of the model, without themselves and their copies."""
    late = rows >= model.n_walked_
    own, odd = _own_values(model, rows), np.empty(len(rows))
    near = model.fitted_.lists.indices[rows[~late], : model.graph_neighbors].astype(np.intp)
    odd[~late] = _odd(model, own[~late, 0], own[~late, 1], near)
    if late.any():
        assert model.fitted_.arrivals is not None
        near = model.fitted_.arrivals.indices.values[rows[late] - model.n_walked_]
        odd[late] = _odd(model, own[late, 0], own[late, 1], near)
    return odd


def errors_of(model: ManifoldKNNClassifier, X: Any = None) -> ReconstructionError:
    """Measure what reconstruction gets wrong of new rows, or of those the walk went over."""
    check_is_fitted(model)
    known, n = model.fitted_.walk.similarities, model.fitted_.index.n_samples
    if X is None:
        walked = np.arange(model.n_walked_)
        made, X = _own_reconstruction(model, walked), model.fitted_.index.rows(walked)
        truth = known.rows(slice(0, model.n_walked_))
    else:
        X = new_rows(model, X)
        made = reconstructed(model, X)
        grown = copy(model).partial_fit(X, refresh=True)
        truth = grown.fitted_.walk.similarities.rows(slice(n, None))
    size = 0.0
    for part in row_chunks(X.shape[0], X.shape[1]):
        size += float(np.square(row_norms(coordinates(X[part], model.metric))).sum())
    left = float(np.square(made.residuals).sum())
    return ReconstructionError(
        samples=100.0 * left / size if size else 0.0,
        weights=relative_error(truth, combined(made.z, made.indices, known)),
        residuals=made.residuals,
    )


def _odd(model: ManifoldKNNClassifier, residuals: Floats, spacings: Floats, near: Ints) -> Floats:
    return oddities(residuals, spacings, _own_values(model, near), typical=model.sigma_)


def _own_values(model: ManifoldKNNClassifier, rows: Ints) -> Floats:
    """Return residuals, spacings and gaps of rows of the model, without themselves."""
    flat, arrivals = rows.ravel(), model.fitted_.arrivals
    late = flat >= model.n_walked_
    out = np.empty((len(flat), 3))
    out[~late] = model.fitted_.own.of(flat[~late], lambda new: _own_reconstruction(model, new))
    if late.any():
        assert arrivals is not None
        for place, column in enumerate((arrivals.residuals, arrivals.spacings, arrivals.gaps)):
            out[late, place] = column.values[flat[late] - model.n_walked_]
    return out.reshape(*rows.shape, 3)


def _own_reconstruction(model: ManifoldKNNClassifier, rows: Ints) -> Reconstruction:
    """Reconstruct rows that the graph has from neighbours in it that differ from them."""
    lists, index = model.fitted_.lists, model.fitted_.index
    k = min(model.graph_neighbors, lists.indices.shape[1])
    near, away = lists.indices[rows].astype(np.intp), lists.distances[rows]
    copies = np.flatnonzero(away[:, 0] == 0)
    if copies.size:  # to the end of the list with them
        order = np.argsort(away[copies] == 0, axis=1, kind="stable")
        near[copies] = np.take_along_axis(near[copies], order, axis=1)
        away[copies] = np.take_along_axis(away[copies], order, axis=1)
    found = Neighbors(near[:, :k], away[:, :k])
    rows = index.rows(rows)
    return reconstruction(rows, index, n_neighbors=k, found=found, n_jobs=model.n_jobs)
