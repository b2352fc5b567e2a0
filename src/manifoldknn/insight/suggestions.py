"""Which rows to label next: those that cover most of what is uncertain.

The most uncertain rows lie side by side: labelling twenty of them is labelling one of them twenty
times. So every suggestion counts what labels and earlier suggestions cover (see `coverage`), and
takes the row that covers most of the uncertainty that is left. Before two classes have labels,
everything is equally uncertain: rows come first that are typical of many, far from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from manifoldknn.base.labels import encode_labels
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.insight.candidates import Candidates
from manifoldknn.insight.ground import Ground, bare_ground, walked_ground
from manifoldknn.insight.inspection import hops_from_labels
from manifoldknn.insight.listing import Listing, listed

# Rows that are walked from: so many, fewer where walks over many rows take long.
_MOST, _FEWEST, _STEPS = 2000, 100, 3e7
_SOME = 0.05  # share of a class that casts doubt
_NEARBY = 2  # edges


@dataclass(frozen=True)
class Suggestions(Listing):
    """Rows to label next, the most useful first.

    ``to_frame()`` is a pandas frame of it, and a notebook shows it as a table.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Names of the rows: the frame's index, or row numbers.
    rows : ndarray of shape (n,)
        Row numbers.
    uncertainty : ndarray of shape (n,)
        1 minus the margin between the two strongest classes; 1 where no label reaches, and
        before two classes have labels.
    speaks_for : ndarray of shape (n,)
        About how many rows the suggested one stands for.
    reasons : list of str
        Why, in words.
    """

    ids: NDArray[Any]
    rows: NDArray[np.intp]
    uncertainty: NDArray[np.float64]
    speaks_for: NDArray[np.intp]
    reasons: list[str]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(listed(self.ids))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, by name."""
        return {
            "id": listed(self.ids),
            "row": self.rows.tolist(),
            "uncertainty": self.uncertainty.tolist(),
            "speaks_for": self.speaks_for.tolist(),
            "reason": list(self.reasons),
        }


def suggest(
    source: Any,
    n: int = 10,
    *,
    y: Any = None,
    estimator: ManifoldKNNClassifier | None = None,
    must_link: Any = None,
    cannot_link: Any = None,
    index: Any = None,
    random_state: int = 0,
) -> Suggestions:
    """Return the rows whose labels would help most.

    Parameters
    ----------
    source : ManifoldKNNClassifier, or array-like or sparse matrix of shape (n_samples, n_features)
        A fitted classifier; or samples, which need no label yet.
    n : int, default=10
        How many rows; fewer come back if there are fewer distinct unlabelled rows. The first
        of many are the same as those of few.
    y : array-like of shape (n_samples,), optional
        Labels of samples, as for ``fit``, but there may be none, or one class only.
    estimator : ManifoldKNNClassifier, optional
        Parameters for samples, among them those of the graph; by default the defaults.
    must_link, cannot_link : array-like of shape (n_pairs, 2), optional
        Links between samples, as for ``fit``.
    index : frame, index or array-like, optional
        Names of the rows; by default the index of the frame.
    random_state : int, default=0
        Seed of the draw of rows that are looked at, where these are not all.

    Returns
    -------
    Suggestions
        Never a labelled row, never two equal rows.

    Notes
    -----
    Each row is the one with the largest Σ_r u_r max(0, N_rj - c_r): N_rj from 0 to 1 is how near
    rows are on the walk, c_r the largest N between r and labelled or suggested rows, u = 0.01 +
    uncertainty. Of more than 2,000 rows so many are drawn with chances u, fewer beyond 15,000 rows.
    Cost: a column of the walk for each of them, and for as many labels at most.

    Examples
    --------
    Three rows to begin with, then with labels for these what to label next.

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import suggest
    >>> X, truth = load_iris(return_X_y=True)
    >>> first = suggest(X, 3)
    >>> sorted(truth[first.rows].tolist())
    [0, 1, 2]
    >>> y = np.full(150, -1)
    >>> y[first.rows] = truth[first.rows]
    >>> len(suggest(X, 4, y=y))
    4
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number, at least 1.")
    if isinstance(source, ManifoldKNNClassifier):
        if any(given is not None for given in (y, estimator, must_link, cannot_link)):
            raise ValueError(
                "y, estimator, must_link and cannot_link go with samples: a fitted classifier has "
                "its own."
            )
        ground = walked_ground(source, uncertainty, index)
    else:
        model = ManifoldKNNClassifier() if estimator is None else clone(estimator)
        links = {"must_link": must_link, "cannot_link": cannot_link}
        labels = None if y is None else encode_labels(y, unlabeled=model.unlabeled, none=True)
        if labels is not None and len(labels.classes) > 1:
            ground = walked_ground(model.fit(source, y, **links), uncertainty, index)
        else:
            ground = bare_ground(model, source, labels, index, **links)
    most = int(np.clip(_STEPS / len(ground.doubt), _FEWEST, _MOST))
    rows, speaks_for = Candidates(ground, most, random_state).ranked(ground, int(n))
    why = reasons(ground, rows, speaks_for)
    return Suggestions(ground.names[rows], rows, ground.doubt[rows], speaks_for, why)


def uncertainty(classifier: ManifoldKNNClassifier) -> NDArray[np.float64]:
    """Return 1 minus the margin between the two strongest classes of every fitted row.

    From 0, all voters agree, to 1, a tie, a row that no label reaches, or one class for all.
    """
    shares = classifier.label_distributions_
    doubt = np.ones(len(shares))
    if shares.shape[1] > 1:
        top = np.partition(shares, -2, axis=1)[:, -2:]
        doubt = np.clip(1.0 - (top[:, 1] - top[:, 0]), 0.0, 1.0)
    doubt[classifier.unreached_] = 1.0
    return doubt


def reasons(ground: Ground, rows: NDArray[np.intp], speaks_for: NDArray[np.intp]) -> list[str]:
    """Say in words why some rows should be labelled."""
    hops = _hops(ground, rows)
    return [_reason(ground.classifier, *of_row) for of_row in zip(rows, speaks_for, hops)]


def _hops(ground: Ground, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many edges some rows are away from a label; -1 where that is unknown."""
    W = ground.graph.log_weights
    if ground.graph.is_sparse:
        return hops_from_labels(W, ground.labeled)[rows]
    return np.where(np.isfinite(W[np.ix_(rows, ground.labeled)]).any(axis=1), 1, -1)


def _reason(classifier: ManifoldKNNClassifier | None, row: int, speaks_for: int, hops: int) -> str:
    if classifier is None:
        place = "" if hops < 0 else f", {hops} edges from the nearest label"
        if speaks_for < 2:
            return f"typical of no other row{place}"
        return f"typical of about {speaks_for} rows around it{place}"
    shares = classifier.label_distributions_[row]
    like = f"; speaks for about {speaks_for} rows" if speaks_for > 1 else ""
    if classifier.unreached_[row]:
        return f"no labelled row reaches it{like}"
    first, *rest = np.argsort(-shares, kind="stable")
    name, share = classifier.classes_[first], shares[first]
    if rest and shares[rest[0]] >= _SOME:
        other = classifier.classes_[rest[0]]
        return f"undecided between {name} ({share:.0%}) and {other} ({shares[rest[0]]:.0%}){like}"
    if hops > _NEARBY:
        return (
            f"looks like {name}, without a label nearby to confirm it ({hops} edges to the "
            f"nearest){like}"
        )
    return f"looks like {name}; to confirm what its neighbours say{like}"
