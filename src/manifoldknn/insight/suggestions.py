"""Which rows to label next: uncertain ones, spread over the data.

The most uncertain rows lie side by side: labelling twenty of them is labelling
one of them twenty times. So all unlabelled rows are divided into as many groups
as labels are wanted, by k-means weighted with uncertainty, which puts the groups
where uncertainty is; and each group is spoken for by a row that is uncertain and
near its centre.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from manifoldknn.insight.inspection import hops_from_labels
from manifoldknn.model.rowids import check_all_walked, fitted_row_ids
from manifoldknn.search.repeated import equal_rows

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_EVERY_ROW = 0.01  # weight of a row about which nothing is uncertain
_MOST_ROWS = 20_000  # that k-means is run on
_STARTS = 3
_SOME = 0.05  # share of a class that casts doubt
_NEARBY = 2  # edges


@dataclass(frozen=True)
class Suggestions:
    """Rows to label next, the most useful first.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Names of the rows: the frame's index, or row numbers.
    rows : ndarray of shape (n,)
        Row numbers.
    uncertainty : ndarray of shape (n,)
        1 minus the margin between the two strongest classes; 1 where no label reaches.
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
        return iter(self.ids.tolist())

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, for ``pandas.DataFrame`` and the like."""
        return {
            "id": self.ids.tolist(),
            "row": self.rows.tolist(),
            "uncertainty": self.uncertainty.tolist(),
            "speaks_for": self.speaks_for.tolist(),
            "reason": list(self.reasons),
        }


def suggest(
    classifier: ManifoldKNNClassifier, n: int = 10, *, index: Any = None, random_state: int = 0
) -> Suggestions:
    """Return the rows whose labels would help most.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    n : int, default=10
        How many rows; fewer come back if there are fewer distinct unlabelled rows.
    index : frame, index or array-like, optional
        Names of the fitted rows; by default the index of the fitted frame.
    random_state : int, default=0
        Seed of k-means.

    Returns
    -------
    Suggestions
        Never a labelled row, never two equal rows.

    Notes
    -----
    Groups minimise Σ u_i ‖x_i - m_c(i)‖² with u = 0.01 + uncertainty; of each group
    the row with the least ‖x - m‖ / √u is taken. Cost: k-means on at most 20,000
    rows, drawn with the weights u where there are more.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from manifoldknn import ManifoldKNNClassifier, suggest
    >>> X, truth = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> y[:10] = truth[:10]
    >>> found = suggest(ManifoldKNNClassifier().fit(X, y), 4)
    >>> len(set(found.rows.tolist()) - set(range(10)))
    4
    """
    check_all_walked(classifier)
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number, at least 1.")
    ids = fitted_row_ids(classifier, index)
    doubt = uncertainty(classifier)
    weight = doubt + _EVERY_ROW
    rng = np.random.default_rng(random_state)
    unlabeled = np.flatnonzero(classifier.fitted_.labels.codes < 0)
    rows = speaks_for = np.empty(0, dtype=np.intp)
    if len(unlabeled):
        rows, speaks_for = _spread(classifier, unlabeled, weight, int(n), rng)
        rows, speaks_for = _filled_up(classifier, unlabeled, rows, speaks_for, weight, int(n))
    hops = _hops(classifier, rows)
    reasons = [_reason(classifier, *of_row) for of_row in zip(rows, speaks_for, hops)]
    return Suggestions(ids[rows], rows, doubt[rows], speaks_for, reasons)


def uncertainty(classifier: ManifoldKNNClassifier) -> NDArray[np.float64]:
    """Return 1 minus the margin between the two strongest classes of every fitted row.

    From 0, all voters agree, to 1, a tie or a row that no label reaches.
    """
    shares = classifier.label_distributions_
    doubt = np.zeros(len(shares))
    if shares.shape[1] > 1:
        top = np.partition(shares, -2, axis=1)[:, -2:]
        doubt = np.clip(1.0 - (top[:, 1] - top[:, 0]), 0.0, 1.0)
    doubt[classifier.unreached_] = 1.0
    return doubt


def _spread(
    classifier: ManifoldKNNClassifier,
    unlabeled: NDArray[np.intp],
    weight: NDArray[np.float64],
    n: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one row of each group, heaviest group first, and the sizes of the groups."""
    candidates, weights = unlabeled, weight[unlabeled]
    if len(unlabeled) > _MOST_ROWS:
        chance = weights / weights.sum()
        candidates = np.sort(rng.choice(unlabeled, _MOST_ROWS, replace=False, p=chance))
        weights = np.ones(_MOST_ROWS)  # drawn with the weights, a sample carries them already
    n = min(n, len(candidates))
    points = classifier.fitted_.index.X[candidates]
    if classifier.metric == "cosine":
        points = normalize(points)
    search = KMeans(n, n_init=_STARTS, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than groups
        search.fit(points, sample_weight=weights)
    group = search.labels_
    distance = _distances(points, search.cluster_centers_[group])
    order = np.argsort(distance / np.sqrt(weight[candidates]), kind="stable")
    sizes = np.bincount(group, minlength=n) * (len(unlabeled) / len(candidates))
    chosen: list[int] = []
    closed = _Closed(classifier)
    for number in np.argsort(-np.bincount(group, weights, minlength=n), kind="stable"):
        members = order[group[order] == number]
        free = members[~closed.rows[candidates[members]]]
        if free.size:
            chosen.append(int(free[0]))
            closed.add(candidates[free[0]])
    return candidates[chosen], np.round(sizes).astype(np.intp)[group[chosen]]


class _Closed:
    """Rows that were chosen, and those beside them: linked with them, or equal."""

    def __init__(self, classifier: ManifoldKNNClassifier) -> None:
        self._X, self._graph = classifier.fitted_.index.X, classifier.fitted_.graph
        self.rows = np.zeros(self._graph.n_samples, dtype=bool)

    def add(self, row: int) -> None:
        self.rows[row] = True
        if not sparse.issparse(self._X):
            # The first column tells most rows apart, so that few are compared whole.
            near = np.flatnonzero(self._X[:, 0] == self._X[row, 0])
            self.rows[near[(self._X[near] == self._X[row]).all(axis=1)]] = True
        if self._graph.is_sparse:
            W = self._graph.log_weights
            self.rows[W.indices[W.indptr[row] : W.indptr[row + 1]]] = True


def _filled_up(
    classifier: ManifoldKNNClassifier,
    unlabeled: NDArray[np.intp],
    rows: NDArray[np.intp],
    speaks_for: NDArray[np.intp],
    weight: NDArray[np.float64],
    n: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Add rows until there are `n`: heaviest first, beside no chosen one while there are such."""
    X = classifier.fitted_.index.X
    if len(rows) >= n and not sparse.issparse(X):
        return rows, speaks_for
    kinds = equal_rows(X)[1].tolist()
    first_of = {kinds[row]: place for place, row in reversed(list(enumerate(rows)))}
    kept = np.array(sorted(first_of.values()), dtype=np.intp)  # sparse rows may be copies
    rows, speaks_for = rows[kept], speaks_for[kept]
    closed, taken = _Closed(classifier), set(first_of)
    more: list[int] = []
    for row in rows:
        closed.add(row)
    heaviest = unlabeled[np.argsort(-weight[unlabeled], kind="stable")].tolist()
    for may_be_beside in (False, True):
        for row in heaviest:
            if len(rows) + len(more) >= n:
                break
            if kinds[row] in taken or (closed.rows[row] and not may_be_beside):
                continue
            taken.add(kinds[row])
            more.append(row)
            if not may_be_beside:
                closed.add(row)
    alone = np.ones(len(more), dtype=np.intp)
    return np.append(rows, more).astype(np.intp), np.append(speaks_for, alone)


def _hops(classifier: ManifoldKNNClassifier, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many edges some rows are away from a label; -1 where that is unknown."""
    W, labeled = classifier.fitted_.graph.log_weights, classifier.labeled_indices_
    if classifier.fitted_.graph.is_sparse:
        return hops_from_labels(W, labeled)[rows]
    return np.where(np.isfinite(W[np.ix_(rows, labeled)]).any(axis=1), 1, -1)


def _distances(points: Any, centers: NDArray[Any]) -> NDArray[np.float64]:
    if sparse.issparse(points):
        points = points.toarray()
    difference = np.subtract(points, centers, dtype=np.float64)
    distances: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return distances


def _reason(classifier: ManifoldKNNClassifier, row: int, speaks_for: int, hops: int) -> str:
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
