"""From walk weights to answers: the vote, and rows that nobody votes for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base.samples import check_new_samples
from manifoldknn.base.tensors import as_numpy, chosen_rows
from manifoldknn.exceptions import UnreachedError, UnreachedWarning, warn_caller
from manifoldknn.extend.reconstruct import Reconstruction, extended, reconstruction
from manifoldknn.model.state import FittedState
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.vote.similarities import Similarities
from manifoldknn.vote.votes import winners


class AnsweringMixin(FittedState):
    """Votes, abstentions and answers for new rows."""

    @abstractmethod
    def predict(self, X: Any) -> NDArray[Any]:
        """Classify new rows."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of new rows that get their label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
            New rows.
        y : array-like of shape (n_queries,)
            Their labels.
        sample_weight : array-like of shape (n_queries,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy.
        """
        weights = as_numpy(sample_weight)
        return float(accuracy_score(as_numpy(y), self.predict(X), sample_weight=weights))

    def _new_rows(self, X: Any) -> Any:
        """Return a user's rows in the form of the fitted ones."""
        check_is_fitted(self)
        return check_new_samples(self, as_numpy(X), self.fitted_.index.template)

    def _rows_to_predict(self, X: Any) -> Any:
        """Return the same where the votes are taken."""
        check_is_fitted(self)
        return self.fitted_.steps.new_rows(self, X, self.fitted_.index.template)

    def _made(self, X: Any) -> Reconstruction:
        """Reconstruct new rows."""
        width = min(self.graph_neighbors, self.fitted_.index.n_samples)
        return reconstruction(X, self.fitted_.index, n_neighbors=width, n_jobs=self.n_jobs)

    def _predicted(
        self, X: Any, *, with_shares: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return shares (or none) and class numbers of new rows, chunk by chunk.

        What a chunk leaves behind is a class number per row, and shares if wanted.
        """
        n, n_classes = X.shape[0], len(self.classes_)
        codes, unreached = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.bool_)
        shares = np.empty((n if with_shares else 0, n_classes))
        for part, votes, nobody in self.fitted_.steps.votes(self, X):
            codes[part], unreached[part] = winners(votes), nobody
            if with_shares:
                shares[part] = votes
        if unreached.any():
            self._resolve_unreached(X, unreached, shares, codes)
        return shares, codes

    def _answer(
        self, found: Similarities, X: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.bool_]]:
        """Return shares, class numbers and the unreached rows."""
        shares = self.fitted_.vote.shares(found.logs)
        codes = winners(shares)
        unreached = found.unreached
        if found is self.fitted_.walk.similarities and not self.fitted_.walk.converged:
            # The unfinished walk, warned about already, also leaves connected rows without weights.
            starved = unreached & self.fitted_.graph.reached(self.labeled_indices_)
            self._ask_nearest(X, starved, shares, codes)
            unreached &= ~starved
        if unreached.any():
            self._resolve_unreached(X, unreached, shares, codes)
        return shares, codes, unreached

    def _ask_nearest(
        self,
        X: Any,
        rows: NDArray[np.bool_],
        shares: NDArray[np.float64],
        codes: NDArray[np.intp],
    ) -> None:
        """Answer some rows by their nearest labelled sample."""
        if rows.any():
            labeled = self.labeled_indices_
            search = ExactIndex(
                self.fitted_.index.rows(labeled), metric=self.metric, n_jobs=self.n_jobs
            )
            nearest = search.query(chosen_rows(X, rows), 1).indices[:, 0]
            codes[rows] = self.fitted_.labels.codes[labeled[nearest]]
            if len(shares):
                shares[rows] = np.eye(len(self.classes_))[codes[rows]]

    def _resolve_unreached(
        self,
        X: Any,
        unreached: NDArray[np.bool_],
        shares: NDArray[np.float64],
        codes: NDArray[np.intp],
    ) -> None:
        message = (
            f"{unreached.sum()} of {len(unreached)} rows are connected to no labelled sample "
            f"(the first is row {np.argmax(unreached)})"
        )
        advice = "label a row near them, or raise graph_neighbors"
        if self.graph != "pruned":
            advice = "label a row near them, raise graph_neighbors, or use graph='pruned'"
        if self.on_unreached == "raise":
            raise UnreachedError(f"{message}: {advice}, or set on_unreached='nearest'.")
        if self.on_unreached == "abstain":
            if len(shares):
                shares[unreached] = 1.0 / len(self.classes_)
            codes[unreached] = -1
            done = "they stay unlabelled"
        else:
            self._ask_nearest(X, unreached, shares, codes)
            done = "they got the class of the nearest labelled sample"
        warn_caller(f"{message}; {done}. To avoid this, {advice}.", UnreachedWarning)


def answers_to(
    classifier: AnsweringMixin, X: Any
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.bool_]]:
    """Return shares, class numbers and which rows nobody reaches, for new rows."""
    rows, fitted = classifier._new_rows(X), classifier.fitted_
    width = min(classifier.graph_neighbors, fitted.index.n_samples)
    known = fitted.walk.similarities
    found = extended(rows, fitted.index, known, n_neighbors=width, n_jobs=classifier.n_jobs)
    return classifier._answer(found, rows)
