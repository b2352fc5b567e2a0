"""What labelled rows would be called if their labels were hidden, and what follows from it.

A label works through its edges: 1 to its own class, 0 to every other. An honest estimate must
therefore take the label *and these edges* away and walk again. Labels are hidden in five groups;
neighbours and the pairs that carry an edge do not depend on labels and stay. A class with a
single label keeps it, or nobody could name the class.

The accuracy to expect weighs classes by the shares of rows that are answered with them: the numbers
of labels say little about that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.progress import countdown
from manifoldknn.base.threads import in_threads, thread_count
from manifoldknn.graph.constrained import GraphRecipe
from manifoldknn.vote.densities import FIRST_REACH, class_densities
from manifoldknn.vote.shared_graph import SharedGraph
from manifoldknn.vote.sharpness import FOLDS
from manifoldknn.vote.votes import Vote, winners
from manifoldknn.walk.choose import chosen_way, prepared_graph
from manifoldknn.walk.label_columns import log_label_weights
from manifoldknn.walk.normalized import NormalizedGraph

__all__ = [
    "ExpectedAccuracy",
    "HiddenLabels",
    "fold_numbers",
    "hidden_densities",
    "hidden_groups",
    "hidden_weights",
]

_ENOUGH = 1000  # hidden labels
_LOOSER, _LOOSEST = 10.0, 1e-2  # tolerance of hidden rows: times that of the fit, and at most
_BLOCK = 16
_DRAWS = 4000
_LEVEL = 0.95
_COUNTS = 0.4  # of a hidden label, in the interval of the accuracy
_BINS = 10


class ExpectedAccuracy(NamedTuple):
    """The accuracy to expect, and the ends of its 95 % interval.

    >>> str(ExpectedAccuracy(0.934, 0.871, 0.968))
    '93.4% (87% to 97%)'
    """

    accuracy: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.accuracy:.1%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class HiddenLabels:
    """Answers for labelled rows while their own labels were hidden.

    Attributes
    ----------
    rows : ndarray of shape (n_hidden,)
        Labelled rows that were hidden: those of classes with at least two labels, and of very
        many labels a part.
    given : ndarray of shape (n_hidden,)
        Class numbers of their labels.
    shares : ndarray of shape (n_hidden, n_classes)
        What the others say of them; zeros where nobody reaches the row.
    class_weights : ndarray of shape (n_classes,)
        Shares of all rows that are answered with each class.
    n_folds : int
        How many groups of labels were hidden, one after the other.
    """

    rows: NDArray[np.intp]
    given: NDArray[np.intp]
    shares: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    n_folds: int

    @property
    def found(self) -> NDArray[np.intp]:
        """Class numbers that the others give; -1 where nobody reaches the row."""
        reached = self.shares.any(axis=1)
        return np.where(reached, winners(self.shares), -1)

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether a row got its own class back."""
        return self.found == self.given

    def per_class(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return how many labels of every class were hidden, and how many of them found again."""
        n_classes = len(self.class_weights)
        return (
            np.bincount(self.given, minlength=n_classes),
            np.bincount(self.given[self.right], minlength=n_classes),
        )

    @property
    def accuracy(self) -> float:
        """Share of rows that is expected to be right: of classes, weighted; NaN if unknown."""
        hidden, found = self.per_class()
        weights = np.where(hidden > 0, self.class_weights, 0.0)
        if not weights.sum() > 0:
            return float("nan")
        return float((weights * found / np.maximum(hidden, 1)).sum() / weights.sum())

    def interval(self) -> tuple[float, float]:
        """Return what the true accuracy lies between, in about 95 of 100 cases.

        Every class's accuracy has a beta distribution: what was found of it, and one label
        more that is right as often as all are. Labels count 0.4 each: rows err in groups, and a
        fifth of the labels is missing while others are judged. As Clopper and Pearson do for a
        single share, one more label is wrong at the lower end and right at the upper one.
        Shares of classes are taken as they are.
        """
        hidden, found = self.per_class()
        if not hidden.any():
            return 0.0, 1.0
        weights = self.class_weights
        mean = (found.sum() + 0.5) / (hidden.sum() + 1.0)
        right, wrong = _COUNTS * found + mean, _COUNTS * (hidden - found) + 1.0 - mean
        rng, shape = np.random.default_rng(0), (_DRAWS, len(hidden))
        low = np.quantile(rng.beta(right, wrong + weights, shape) @ weights, 0.5 - _LEVEL / 2)
        high = np.quantile(rng.beta(right + weights, wrong, shape) @ weights, 0.5 + _LEVEL / 2)
        return float(low), float(high)

    @property
    def expected(self) -> ExpectedAccuracy:
        """The accuracy to expect, with its interval."""
        return ExpectedAccuracy(self.accuracy, *self.interval())

    def reliability(self) -> list[tuple[float, float, int, int]]:
        """Return how often answers of some confidence were right.

        Returns
        -------
        list of tuple
            Lower and upper end of a tenth of the confidence, rows answered with it, and how
            many of them were right; tenths without rows are left out.
        """
        confidence = self.shares.max(axis=1, initial=0.0)
        bins = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
        rows = np.bincount(bins, minlength=_BINS)
        right = np.bincount(bins[self.right], minlength=_BINS)
        return [
            (b / _BINS, (b + 1) / _BINS, int(rows[b]), int(right[b]))
            for b in range(_BINS)
            if rows[b]
        ]


def hidden_groups(
    codes: NDArray[np.intp], *, n_folds: int = FOLDS, random_state: int = 0
) -> list[NDArray[np.intp]]:
    """Return the labelled rows in the groups in which they are hidden, each ascending.

    No group holds all labels of a class; none are hidden if every class has a single label. There
    are fewer groups where labels are fewer, and of very many labels only as many as hold a
    thousand: more would tell the same. Class numbers `codes` are -1 where unlabelled.
    """
    labeled = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[labeled], minlength=1)
    rows = labeled[counts[codes[labeled]] > 1]
    folds = fold_numbers(codes[rows], min(n_folds, max(1, len(rows))), random_state)
    groups = [rows[folds == fold] for fold in range(int(folds.max(initial=-1)) + 1)]
    return groups[: -(-_ENOUGH // len(groups[0]))] if groups else []


def fold_numbers(codes: NDArray[np.intp], n_folds: int, random_state: int) -> NDArray[np.intp]:
    """Return the group of every label, such that each group holds its share of every class.

    With at least 2 groups no class vanishes.

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


def hidden_tolerance(tol: float) -> float:
    """Return the tolerance for densities of hidden rows, which only say how sharp a vote should be.

    >>> hidden_tolerance(1e-3), hidden_tolerance(1e-9)
    (0.01, 1e-08)
    """
    return max(tol, min(_LOOSER * tol, _LOOSEST))


def hidden_densities(
    codes: NDArray[np.intp],
    groups: list[NDArray[np.intp]],
    n_classes: int,
    shared: SharedGraph,
    **how: Any,
) -> list[NDArray[np.float64]]:
    """Return log f of rows while their labels are hidden: (n_hidden, n_classes), group by group.

    Class numbers `codes` are -1 where unlabelled, `shared` is that of the graph with all labels;
    `tol`, `max_iter`, `reach` and `n_jobs` are as in `walks_at_once`.
    """
    found = walks_at_once(codes, groups, n_classes, shared, **how)
    return [densities.log_values for densities in found]


def walks_at_once(
    codes: NDArray[np.intp],
    groups: list[NDArray[np.intp]],
    n_classes: int,
    shared: SharedGraph,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    reach: float = FIRST_REACH,
    also: Callable[[int | None], Any] | None = None,
) -> list[Any]:
    """Return the densities of rows while their labels are hidden, a walk for each group.

    Each thread has a walk of its own; those that are left over have all threads for themselves.
    The answer does not depend on their number.

    Parameters
    ----------
    codes, groups, n_classes, shared
        As in `hidden_densities`.
    tol, max_iter, reach
        As in `class_densities`.
    n_jobs : int, optional
        Threads; all cores if None.
    also : callable, optional
        Another walk, told how many threads it has. It is begun first, and is the first answer.

    Returns
    -------
    list of Densities
        Of the hidden rows, in the order of `groups`.
    """

    def solve(hidden: NDArray[np.intp] | None, inner: int | None = 1) -> Any:
        if hidden is None:
            return also(inner) if also is not None else None
        visible = codes.copy()
        visible[hidden] = -1
        labeled = np.flatnonzero(visible >= 0)
        graph = shared.recipe.without_links_of(hidden).constrained(visible)
        ready = shared.ready(graph, n_jobs=inner)
        return class_densities(
            ready, labeled, visible[labeled], n_classes, shared.alpha, tol=tol, max_iter=max_iter,
            reach=reach, rows=hidden, settle=True,
        )  # fmt: skip

    walks = [*([] if also is None else [None]), *groups]

    def solutions() -> Iterator[Any]:
        # A dense graph fills the memory by itself, and its factorisation the cores.
        threads = 1 if shared.way.name == "dense" else thread_count(n_jobs)
        alone = len(walks) % threads
        yield from in_threads(solve, walks[: len(walks) - alone], threads, pile_up=True)
        for hidden in walks[len(walks) - alone :]:
            yield solve(hidden, n_jobs)

    return list(countdown(solutions(), len(walks), "walks"))


def hidden_weights(
    recipe: GraphRecipe,
    codes: NDArray[np.intp],
    hidden: NDArray[np.intp],
    alpha: float,
    *,
    tol: float,
    max_iter: int,
) -> NDArray[np.float64]:
    """Return log w̄ between rows whose labels are hidden and all labelled rows, -inf between them.

    Columns are in the order of labelled rows. As w̄_ij = w̄_ji, walkers start from hidden rows: a
    column per hidden label.
    """
    labeled = np.flatnonzero(codes >= 0)
    visible = codes.copy()
    visible[hidden] = -1
    voters = np.flatnonzero(visible >= 0)
    normalized = NormalizedGraph(recipe.without_links_of(hidden).constrained(visible))
    way = chosen_way(normalized, alpha, n_columns=len(hidden))
    ready = prepared_graph(normalized, np.union1d(hidden, voters), alpha, way)
    out = np.full((len(hidden), len(labeled)), -np.inf)
    at = np.searchsorted(labeled, voters)
    for block in np.array_split(np.arange(len(hidden)), -(-len(hidden) // _BLOCK)):
        found = log_label_weights(
            ready, hidden[block], alpha, tol=tol, max_iter=max_iter, rows=voters, each=True
        )
        out[np.ix_(block, at)] = found.log_values.T
    return out


def answered_shares(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    """Return the share of rows that are answered with each class; abstentions do not count."""
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    return np.asarray(counts / max(1, counts.sum()), dtype=np.float64)


def judged(
    groups: list[NDArray[np.intp]],
    logs: list[NDArray[np.float64]],
    codes: NDArray[np.intp],
    vote: Vote,
    class_weights: NDArray[np.float64],
    said: Sequence[NDArray[np.float64]] = (),
    *,
    belonging: NDArray[np.float64],
) -> HiddenLabels:
    """Let the vote of a fit answer for hidden rows, by their log f or log w̄, and a partner's log s.

    `class_weights` are the shares of all rows that are answered with each class, and `belonging`
    how well all rows lie among the others.
    """
    rows = np.concatenate([*groups, np.empty(0, dtype=np.intp)])
    order = np.argsort(rows)
    voted = [
        vote.doubted(vote.shares(found, also), found.max(axis=1), belonging[group])
        for group, found, also in zip_longest(groups, logs, said)
    ]
    shares = np.concatenate(voted or [np.empty((0, 0))])
    shares = shares.reshape(len(rows), len(class_weights))
    rows = rows[order]
    return HiddenLabels(rows, codes[rows], shares[order], class_weights, len(groups))
