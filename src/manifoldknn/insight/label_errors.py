"""Labels that their own neighbourhood contradicts.

A wrong label does harm through its links: it pulls its neighbours over to its
class and pushes the right labels away. So here *all* links of all labels are
taken away and the walk goes over the bare graph, where a label counts only as a
vote. Each labelled row is then judged by the votes of the others; its own label is
nowhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.insight.listing import Listing, listed
from manifoldknn.model.fitted import fitted_recipe
from manifoldknn.model.rowids import check_all_walked, fitted_row_ids
from manifoldknn.vote.densities import DensityWalk
from manifoldknn.vote.hidden import fold_numbers
from manifoldknn.vote.shared_graph import ready_graph
from manifoldknn.vote.sharpness import usual_sharpness
from manifoldknn.vote.votes import ClassVote, winners
from manifoldknn.walk.choose import chosen_way
from manifoldknn.walk.normalized import NormalizedGraph

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

_GROUPS, _FEW_GROUPS = 20, 5  # of labels that are judged together, by all others
_MANY_ROWS = 100_000  # more are walked over for few groups: each takes a column per class
_BLOCK = 16  # labels that are walked from together
# Classes are compared here, nobody is answered. Tolerance: times that of the fit, and at most.
_LOOSER, _LOOSEST = 100.0, 0.1


@dataclass(frozen=True)
class LabelErrors(Listing):
    """Labelled rows that the others would call something else, most suspicious first.

    ``to_frame()`` is a pandas frame of it, and a notebook shows it as a table.

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
        How probable the others make both.
    n_judged, n_labeled : int
        How many labels could be judged, and how many there are.
    """

    ids: NDArray[Any]
    rows: NDArray[np.intp]
    given: NDArray[Any]
    suggested: NDArray[Any]
    given_share: NDArray[np.float64]
    suggested_share: NDArray[np.float64]
    n_judged: int
    n_labeled: int

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(listed(self.ids))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of a table, by name."""
        return {
            "id": listed(self.ids),
            "row": self.rows.tolist(),
            "given": self.given.tolist(),
            "suggested": self.suggested.tolist(),
            "given_share": self.given_share.tolist(),
            "suggested_share": self.suggested_share.tolist(),
        }


def find_label_errors(classifier: ManifoldKNNClassifier, *, index: Any = None) -> LabelErrors:
    """Find labelled rows that the other labelled rows would call something else.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    index : frame, index or array-like, optional
        Names of the fitted rows; by default the index of the fitted frame.

    Returns
    -------
    LabelErrors
        By the lead of the other class over their own, the largest first. Rows that are
        the only ones of their class, or that nobody else reaches, cannot be judged and
        are not listed.

    Notes
    -----
    Classes vote as densities, on the graph without the links of labels; labels are judged in
    20 groups (5 where there are over 100,000 rows), each by all other labels. Cost: 20·C + 1
    columns of the walk, or one more than there are labels.

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
    check_all_walked(classifier)
    ids = fitted_row_ids(classifier, index)
    rows = classifier.labeled_indices_
    given = classifier.fitted_.labels.codes[rows]
    shares = unlinked_shares(classifier)
    at = np.arange(len(rows))
    found = winners(shares)
    own, other = shares[at, given], shares[at, found]
    alone = np.bincount(given)[given] == 1
    judged = ~alone & (shares.sum(axis=1) > 0)
    order = np.lexsort((rows, own - other))
    order = order[(judged & (found != given))[order]]
    chosen = rows[order]
    return LabelErrors(
        ids[chosen],
        chosen,
        classifier.classes_[given[order]],
        classifier.classes_[found[order]],
        own[order],
        other[order],
        int(judged.sum()),
        len(rows),
    )


def unlinked_shares(classifier: ManifoldKNNClassifier) -> NDArray[np.float64]:
    """Return what the other labelled rows say of each, on the graph without links of labels.

    Probabilities of classes; zeros where no other labelled row is reached.
    """
    rows, alpha = classifier.labeled_indices_, classifier.alpha_
    codes, n_classes = classifier.fitted_.labels.codes[rows], len(classifier.classes_)
    graph = (
        fitted_recipe(classifier)
        .without_links_of(rows)
        .constrained(np.full(classifier.n_walked_, -1, dtype=np.intp))
    )
    n_groups = min(_GROUPS if classifier.n_walked_ <= _MANY_ROWS else _FEW_GROUPS, len(rows))
    way = chosen_way(NormalizedGraph(graph), alpha, n_columns=n_groups * n_classes + 1)
    ready = ready_graph(graph, rows, alpha, way, n_jobs=classifier.n_jobs)
    tol = max(classifier.tol, min(_LOOSER * classifier.tol, _LOOSEST))
    walk = DensityWalk(ready, rows, alpha, tol=tol, max_iter=classifier.max_iter, settle=True)
    groups = fold_numbers(codes, n_groups, random_state=0)
    if len(rows) <= n_groups * n_classes:
        logs = _by_label(walk, rows, codes, groups, n_classes)
    else:
        logs = np.full((len(rows), n_classes), -np.inf)
        reach = classifier.fitted_.walk.reach
        for group in range(int(groups.max()) + 1):
            others, hidden = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
            some = rows[hidden]
            found = walk.densities(others, codes[others], n_classes, rows=some, reach=reach)
            logs[hidden] = found.log_values
    equal = np.full(n_classes, 1.0 / n_classes)
    return ClassVote(equal, usual_sharpness(logs)).shares(logs)


def _by_label(
    walk: DensityWalk,
    rows: NDArray[np.intp],
    codes: NDArray[np.intp],
    groups: NDArray[np.intp],
    n_classes: int,
) -> NDArray[np.float64]:
    """Return log f of labelled rows, each by the labels of other groups: a column per label."""
    logs, counts = np.full((len(rows), n_classes), -np.inf), np.zeros((len(rows), n_classes))
    for some in np.array_split(np.arange(len(rows)), -(-len(rows) // _BLOCK)):
        numbers = np.arange(len(some))
        found = walk.densities(some, numbers, len(some), rows=rows, reach=np.inf).log_values
        for label, said in zip(some, found.T):
            others, c = groups != groups[label], codes[label]
            logs[others, c] = np.logaddexp(logs[others, c], said[others])
            counts[others, c] += 1
    return np.asarray(logs - np.log(np.maximum(counts, 1.0)))
