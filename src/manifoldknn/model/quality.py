"""The classifier's methods that judge how well rows fit in: scores, flags, errors."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base.distances import row_norms
from manifoldknn.extend.offmanifold import (
    ReconstructionError,
    checked_rows,
    oddities,
    relative_error,
    usual_limit,
)
from manifoldknn.extend.reconstruct import Reconstruction, coordinates, reconstruction
from manifoldknn.model.answering import AnsweringMixin
from manifoldknn.search.neighbors import Neighbors
from manifoldknn.vote.similarities import combined, row_chunks


class QualityMixin(AnsweringMixin):
    """How well rows are reconstructed from their neighbours."""

    def score_samples(self, X: Any = None) -> NDArray[np.float64]:
        """Score how well rows fit between the rows of the model; lower is odder.

        The score is -max(r / (r̄ + s̄), s / 2s̄): r the residual of the row's reconstruction,
        s its distance to the nearest sample, r̄ the root mean square of its neighbours'
        residuals, s̄ the mean of their distances to their nearest samples that differ. It is 0 for a
        row that repeats one of the model and some -0.5 for one as odd as its neighbours are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model, each judged without itself and its
            copies.

        Returns
        -------
        ndarray of shape (n_queries,)
            Scores, not positive.

        Notes
        -----
        Costs a prediction, and once the reconstruction of every neighbour involved.
        """
        if X is None:
            check_is_fitted(self)
            n, d = self.fitted_.index.n_samples, self.fitted_.index.template.shape[1]
            parts = row_chunks(n, d)
            return -np.concatenate([self._own_oddities(np.arange(n)[part]) for part in parts])
        X = self._new_rows(X)
        scores = np.empty(X.shape[0])
        for part in row_chunks(X.shape[0], X.shape[1]):
            scores[part] = -self._oddities(self._made(X[part]))
        return scores

    def is_off_manifold(self, X: Any = None) -> NDArray[np.bool_]:
        """Tell which rows are far from everything the model has seen.

        Their class is a guess: the walk says nothing about where they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model.

        Returns
        -------
        ndarray of bool of shape (n_queries,)
            True where ``score_samples(X)`` is below that of 99 % of the model's own rows
            (each judged without itself; 512 of them are looked at), and below -0.5.
        """
        return self.score_samples(X) < -self._limit()

    def reconstruction_error(self, X: Any = None) -> ReconstructionError:
        """Measure what reconstruction from neighbours gets wrong (section 6 of the paper).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            New rows; without it the rows of the model that the last walk went over, each
            reconstructed without itself.

        Returns
        -------
        ReconstructionError
            `samples` and `weights`, the paper's RMSE in percent, and `residuals`, one
            number per row. Weights are class densities where classes vote.

        Notes
        -----
        True weights of new rows are those of a walk over the graph grown by them: with
        X this costs a fit, though the model stays as it is.
        """
        check_is_fitted(self)
        known, walked = self.fitted_.walk.similarities, self.n_walked_
        if X is None:
            chosen = np.arange(walked)
            made, X = self._own_reconstruction(chosen), self.fitted_.index.rows(chosen)
            truth = known.rows(slice(0, walked))
        else:
            X = self._new_rows(X)
            made = self._made(X)
            grown: Any = copy(self)
            grown.partial_fit(X, refresh=True)
            truth = grown.fitted_.walk.similarities.rows(slice(self.fitted_.index.n_samples, None))
        rebuilt = combined(made.z, made.indices, known)
        size = 0.0
        for part in row_chunks(X.shape[0], X.shape[1]):
            size += float(np.square(row_norms(coordinates(X[part], self.metric))).sum())
        left = float(np.square(made.residuals).sum())
        return ReconstructionError(
            samples=100.0 * left / size if size else 0.0,
            weights=relative_error(truth, rebuilt),
            residuals=made.residuals,
        )

    def _own_reconstruction(self, rows: NDArray[np.intp]) -> Reconstruction:
        """Reconstruct rows that the graph has from neighbours in it that differ from them."""
        width = min(self.graph_neighbors, self.fitted_.lists.indices.shape[1])
        near, away = (
            self.fitted_.lists.indices[rows].astype(np.intp),
            self.fitted_.lists.distances[rows],
        )
        copies = np.flatnonzero(away[:, 0] == 0)
        if copies.size:  # to the end of the list with them
            order = np.argsort(away[copies] == 0, axis=1, kind="stable")
            near[copies] = np.take_along_axis(near[copies], order, axis=1)
            away[copies] = np.take_along_axis(away[copies], order, axis=1)
        found = Neighbors(near[:, :width], away[:, :width])
        return reconstruction(
            self.fitted_.index.rows(rows),
            self.fitted_.index,
            n_neighbors=width,
            found=found,
            n_jobs=self.n_jobs,
        )

    def _own_values(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return residuals, spacings and gaps of rows of the model, without themselves."""
        walked = self.n_walked_
        flat = rows.ravel()
        late = flat >= walked
        out = np.empty((len(flat), 3))
        out[~late] = self.fitted_.own.of(flat[~late], self._own_reconstruction)
        if late.any():
            assert self.fitted_.arrivals is not None
            out[late, 0] = self.fitted_.arrivals.residuals.values[flat[late] - walked]
            out[late, 1] = self.fitted_.arrivals.spacings.values[flat[late] - walked]
            out[late, 2] = self.fitted_.arrivals.gaps.values[flat[late] - walked]
        return out.reshape(*rows.shape, 3)

    def _oddities(self, made: Reconstruction) -> NDArray[np.float64]:
        return self._odd(made.residuals, made.spacings, made.indices)

    def _odd(
        self,
        residuals: NDArray[np.float64],
        spacings: NDArray[np.float64],
        near: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        return oddities(residuals, spacings, self._own_values(near), typical=self.sigma_)

    def _limit(self) -> float:
        """Return the oddity beyond which a row is off the manifold."""
        if self.fitted_.own.limit is None:
            rows = checked_rows(self.n_walked_)
            self.fitted_.own.limit = usual_limit(self._own_oddities(rows))
        return self.fitted_.own.limit

    def _own_oddities(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the oddities of rows of the model, without themselves and their copies."""
        walked = self.n_walked_
        late = rows >= walked
        width = min(self.graph_neighbors, self.fitted_.lists.indices.shape[1])
        own, odd = self._own_values(rows), np.empty(len(rows))
        near = self.fitted_.lists.indices[rows[~late], :width].astype(np.intp)
        odd[~late] = self._odd(own[~late, 0], own[~late, 1], near)
        if late.any():
            assert self.fitted_.arrivals is not None
            near = self.fitted_.arrivals.indices.values[rows[late] - walked]
            odd[late] = self._odd(own[late, 0], own[late, 1], near)
        return odd


def off_manifold_limit(classifier: QualityMixin) -> float:
    """Return the oddity, a negative score, beyond which a row is off the manifold."""
    return classifier._limit()
