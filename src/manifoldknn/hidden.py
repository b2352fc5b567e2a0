"""What a labelled row would be called if its label were hidden.

A label works through its edges: 1 to its own class, 0 to every other. An honest
estimate must therefore take the label *and these edges* away and walk again.
Neighbours and the pairs that carry an edge do not depend on labels and are those
of the fit. And because w̄_ij = w̄_ji, the votes for a hidden row i are the column of i
in the walk over the graph without its label: one column per label, as many as a
fit computes, however labels are shared out over folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manifoldknn.graph import (
    ConstrainedGraph,
    full_constrained_graph,
    sparse_constrained_graph,
)
from manifoldknn.neighbors import ExactIndex
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.progress import countdown
from manifoldknn.reduction import ReducedGraph
from manifoldknn.rowids import check_all_walked
from manifoldknn.threads import in_threads
from manifoldknn.tree import tree_edges
from manifoldknn.vote import class_shares, normalized, winners
from manifoldknn.walk import log_label_weights, prepared_graph

if TYPE_CHECKING:
    from manifoldknn.classifier import ManifoldKNNClassifier

__all__ = ["HiddenVotes", "RebuiltGraph", "fold_numbers", "hidden_votes"]

_EACH_ALONE = 40  # up to so many labels, each is hidden alone
_MANY_ROWS = 20_000
_FOLDS, _FOLDS_OF_MANY = 20, 5
_BLOCK = 16
# Up to so many labels of not too many rows, columns are solved one by one: each accurate by itself.
# Beyond, several together: accurate to a share of the largest of them, so that share is smaller.
_SINGLE = 100
_FINER = 0.1


@dataclass(frozen=True)
class HiddenVotes:
    """Votes for every labelled row while its own label is hidden.

    Attributes
    ----------
    rows : ndarray of shape (n_labeled,)
        Labelled rows.
    given : ndarray of shape (n_labeled,)
        Class numbers of their labels.
    found : ndarray of shape (n_labeled,)
        Class numbers that the others give them; -1 where nobody reaches the row.
    shares : ndarray of shape (n_labeled, n_classes)
        Class shares of the vote; zeros where nobody reaches the row.
    alone : ndarray of bool of shape (n_labeled,)
        Rows that are the only ones of their class: once hidden, nobody can name it.
    n_folds : int
        How many groups of labels were hidden, one after the other.
    """

    rows: NDArray[np.intp]
    given: NDArray[np.intp]
    found: NDArray[np.intp]
    shares: NDArray[np.float64]
    alone: NDArray[np.bool_]
    n_folds: int

    @property
    def accuracy(self) -> float:
        """Share of labelled rows, less those alone in their class, that get their label back."""
        judged = ~self.alone
        if not judged.any():
            return float("nan")
        return float((self.found[judged] == self.given[judged]).mean())


def hidden_votes(
    classifier: ManifoldKNNClassifier,
    *,
    n_folds: int | None = None,
    random_state: int = 0,
) -> HiddenVotes:
    """Let the others vote for every labelled row, its own label and links hidden.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    n_folds : int, optional
        Into how many groups the labels are divided; those of one group are hidden
        together. By default each is hidden alone if there are at most 40 of them and
        20,000 rows; else 20 groups, or 5 for more rows.
    random_state : int, default=0
        Seed of the division.

    Returns
    -------
    HiddenVotes
        Answers as `fit` without the hidden labels would give them, with the kernel
        width and the class-mass factors of the fit.

    Notes
    -----
    Cost: per group a graph and one walk column per label in it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> from manifoldknn.hidden import hidden_votes
    >>> X, y = load_iris(return_X_y=True)
    >>> y[25:50] = y[75:100] = y[125:] = -1
    >>> round(hidden_votes(ManifoldKNNClassifier().fit(X, y)).accuracy, 2)
    0.95
    """
    check_all_walked(classifier)
    codes = classifier._labels.codes
    rows = classifier.labeled_indices_
    given = codes[rows]
    folds = fold_numbers(given, _fold_count(len(codes), len(rows), n_folds), random_state)
    shares = np.zeros((len(rows), len(classifier.classes_)))
    found = np.full(len(rows), -1, dtype=np.intp)
    n_groups = int(folds.max()) + 1
    if n_groups > 1:
        rebuilt = RebuiltGraph(classifier)
        groups = (np.flatnonzero(folds == fold) for fold in range(n_groups))
        for group in countdown(groups, n_groups, "groups of hidden labels"):
            shares[group] = rebuilt.shares_without(rows[group])
            found[group] = rebuilt.answers(rows[group], shares[group])
    alone = np.bincount(given, minlength=len(classifier.classes_))[given] == 1
    return HiddenVotes(rows, given, found, shares, alone, n_groups)


def _fold_count(n_samples: int, n_labeled: int, wanted: int | None) -> int:
    if wanted is None:
        if n_samples > _MANY_ROWS:
            wanted = _FOLDS_OF_MANY
        else:
            wanted = n_labeled if n_labeled <= _EACH_ALONE else _FOLDS
        return min(wanted, n_labeled)
    if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer) or wanted < 2:
        raise ValueError(f"n_folds={wanted!r} must be a whole number, at least 2, or None.")
    return min(int(wanted), n_labeled)


def fold_numbers(codes: NDArray[np.intp], n_folds: int, random_state: int) -> NDArray[np.intp]:
    """Divide labels into groups such that every group holds its share of every class.

    Parameters
    ----------
    codes : ndarray of shape (n_labeled,)
        Class numbers.
    n_folds : int
        Number of groups; at least 2 if no class is to vanish.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_labeled,)
        Number of the group of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.hidden import fold_numbers
    >>> folds = fold_numbers(np.array([0, 0, 0, 0, 1, 1]), 2, random_state=0)
    >>> np.bincount(folds[:4]), np.bincount(folds[4:])
    (array([2, 2]), array([1, 1]))
    """
    rng = np.random.default_rng(random_state)
    # Shuffled within classes, classes one after the other, then dealt out like cards.
    order = np.lexsort((rng.permutation(len(codes)), codes))
    folds = np.empty(len(codes), dtype=np.intp)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds


class RebuiltGraph:
    """The graph of a classifier with some labels hidden; neighbours and pairs are those of the fit.

    Parameters
    ----------
    classifier : ManifoldKNNClassifier
        Fitted.
    """

    def __init__(self, classifier: ManifoldKNNClassifier) -> None:
        self._clf = clf = classifier
        k = min(clf.graph_neighbors, clf._graph.n_samples - 1)
        self._nearest = clf._lists.indices[:, :k]

    def graph(self, codes: NDArray[np.intp]) -> ConstrainedGraph:
        """Return the graph for other labels: class numbers, -1 where hidden."""
        clf = self._clf
        tree = tree_edges(self._nearest, np.flatnonzero(codes >= 0), clf.tree_depth)
        if clf.graph == "full":
            return full_constrained_graph(
                clf._index.X, codes, clf.sigma_, tree=tree, theta=clf.theta, metric=clf.metric
            )
        return sparse_constrained_graph(clf._edges, codes, clf.sigma_, tree=tree, theta=clf.theta)

    def shares_without(self, hidden: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the class shares of hidden rows."""
        clf = self._clf
        codes = clf._labels.codes.copy()
        codes[hidden] = -1
        voters = np.flatnonzero(codes >= 0)
        logs = self._log_weights(self.graph(codes), hidden, voters)
        order = np.argsort(-logs, axis=1, kind="stable")[:, : clf.n_neighbors]
        logs = np.take_along_axis(logs, order, axis=1)
        top = np.where(np.isneginf(logs[:, :1]), 0.0, logs[:, :1])
        shares = class_shares(
            np.exp(logs - top), codes[voters][order], clf.n_neighbors, len(clf.classes_)
        )
        return normalized(shares * clf._class_factors)

    def _log_weights(
        self, graph: ConstrainedGraph, hidden: NDArray[np.intp], voters: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return log w̄ between hidden rows and voters, from the columns of the hidden rows."""
        clf = self._clf
        n_labeled = len(hidden) + len(voters)
        ready = prepared_graph(NormalizedGraph(graph), hidden, clf.alpha, n_columns=len(hidden))
        core = ready.core if isinstance(ready, ReducedGraph) else ready
        core.restrict(core.parts(np.arange(core.n_samples))[0])  # made before threads ask for it
        exact = core.factorize or not graph.is_sparse
        alone = n_labeled <= _SINGLE and graph.n_samples <= _MANY_ROWS and not exact
        size, tol = (1, clf.tol) if alone else (_BLOCK, _FINER * clf.tol)
        blocks = np.array_split(hidden, -(-len(hidden) // size))

        def solve(block: NDArray[np.intp]) -> NDArray[np.float64]:
            found = log_label_weights(
                ready, block, clf.alpha, tol=tol, max_iter=clf.max_iter, rows=voters
            )
            return found.log_values.T

        return np.concatenate(list(in_threads(solve, blocks, clf.n_jobs)))

    def answers(self, hidden: NDArray[np.intp], shares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the winning classes; unreached rows as `on_unreached` has it."""
        clf = self._clf
        codes = winners(shares)
        lost = np.flatnonzero(shares.sum(axis=1) == 0)
        codes[lost] = -1
        if lost.size and clf.on_unreached == "nearest":
            voters = np.setdiff1d(clf.labeled_indices_, hidden)
            X = clf._index.X
            search = ExactIndex(X[voters], metric=clf.metric, n_jobs=clf.n_jobs)
            nearest = search.query(X[hidden[lost]], 1).indices[:, 0]
            codes[lost] = clf._labels.codes[voters[nearest]]
        return codes
