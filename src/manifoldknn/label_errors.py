"""Labels that their own neighbourhood contradicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.hidden import HiddenVotes, hidden_votes
from manifoldknn.rowids import fitted_row_ids
from manifoldknn.vote import winners

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

__all__ = ["LabelErrors", "find_label_errors"]


@dataclass(frozen=True)
class LabelErrors:
    """Labelled rows that the others would call something else, most suspicious first.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Names of the rows: the frame's index, or row numbers.
    rows : ndarray of shape (n,)
        Row numbers.
    given : ndarray of shape (n,)
        Their labels.
    suggested : ndarray of shape (n,)
        What the others call them.
    given_share, suggested_share : ndarray of shape (n,)
        Shares of the vote for both while the label is hidden.
    votes : HiddenVotes
        The votes for all labelled rows.
    """

    ids: NDArray[Any]
    rows: NDArray[np.intp]
    given: NDArray[Any]
    suggested: NDArray[Any]
    given_share: NDArray[np.float64]
    suggested_share: NDArray[np.float64]
    votes: HiddenVotes

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, for ``pandas.DataFrame`` and the like."""
        return {
            "id": self.ids.tolist(),
            "row": self.rows.tolist(),
            "given": self.given.tolist(),
            "suggested": self.suggested.tolist(),
            "given_share": self.given_share.tolist(),
            "suggested_share": self.suggested_share.tolist(),
        }


def find_label_errors(
    classifier: ManifoldKNNClassifier,
    *,
    index: Any = None,
    n_folds: int | None = None,
    votes: HiddenVotes | None = None,
) -> LabelErrors:
    """Find labelled rows that get another class once their own label is hidden.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    index : frame, index or array-like, optional
        Names of the fitted rows; by default the index of the fitted frame.
    n_folds : int, optional
        As in `hidden_votes`.
    votes : HiddenVotes, optional
        What `hidden_votes` found before, if it is at hand.

    Returns
    -------
    LabelErrors
        First those that are contradicted even when all contradicted labels are hidden,
        lest wrong labels accuse right ones; in each part by the lead of the other class
        over their own in both votes, the largest first. Rows that are the only ones of
        their class, or that nobody else reaches, cannot be judged and are not listed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier, find_label_errors
    >>> X, y = load_iris(return_X_y=True)
    >>> y[::3] = -1
    >>> y[10] = 2  # a setosa that somebody called virginica
    >>> found = find_label_errors(ManifoldKNNClassifier().fit(X, y))
    >>> int(found.rows[0]), int(found.given[0]), int(found.suggested[0])
    (10, 2, 0)
    """
    ids = fitted_row_ids(classifier, index)
    if votes is None:
        votes = hidden_votes(classifier, n_folds=n_folds)
    at = np.arange(len(votes.rows))
    own = votes.shares[at, votes.given]
    other = votes.shares[at, np.maximum(votes.found, 0)]
    lead = other - own + votes.second.max(axis=1) - votes.second[at, votes.given]
    cleared = winners(votes.second) == votes.given
    suspicious = (votes.found != votes.given) & ~votes.alone & (votes.shares.sum(axis=1) > 0)
    order = np.lexsort((votes.rows, -lead, cleared))
    order = order[suspicious[order]]
    rows = votes.rows[order]
    return LabelErrors(
        ids[rows],
        rows,
        classifier.classes_[votes.given[order]],
        classifier.classes_[votes.found[order]],
        own[order],
        other[order],
        votes,
    )
