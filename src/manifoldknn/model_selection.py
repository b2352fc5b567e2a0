"""Cross-validation where most rows have no label.

Only labelled rows can be tested, and the unlabelled ones belong to every training set. A grid
search does the rest of the work; two things here make it fit:

- `SemiSupervisedSplit` divides the labelled rows into folds and puts every unlabelled row into
  every training set.
- scikit-learn takes the tested *rows* out of the training set, where a transductive method wants
  only their *labels* taken away. `TransductiveClassifier` puts them back: asked for rows, it learns
  from the training rows and these together, these without labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, GridSearchCV
from sklearn.utils import check_random_state

from manifoldknn.base import Ints
from manifoldknn.base.labels import EncodedLabels, encode_labels
from manifoldknn.base.parameters import check_integer
from manifoldknn.baselines.transductive import TransductiveClassifier, last_step
from manifoldknn.exceptions import TooFewLabelsError
from manifoldknn.vote.hidden import fold_numbers

__all__ = ["SemiSupervisedSplit", "TransductiveClassifier", "Tuned", "tuned"]


class SemiSupervisedSplit(BaseCrossValidator):
    """Divide the labelled rows into folds; unlabelled rows are in every training set.

    Every fold holds its share of every class, and every class keeps a label in every training set.

    Parameters
    ----------
    n_splits : int, default=2
        Number of folds, at least 2. The paper tunes with 2.
    unlabeled : object, default="auto"
        What marks an unlabelled row in y, as in `ManifoldKNNClassifier`. "auto": -1 among
        integers; "" among strings. None, NaN and NA always do.
    random_state : int, RandomState instance or None, default=0
        Seeds the division. An int gives the same folds at every call.

    See Also
    --------
    TransductiveClassifier : Keeps the tested rows in the training set, without their labels.

    Notes
    -----
    Impossible with a class of one label: once hidden, nobody can name it. That is a
    `TooFewLabelsError`, which is a ValueError. Where every row is labelled, this is an ordinary
    stratified division.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldknn.model_selection import SemiSupervisedSplit
    >>> y = np.array([0, 0, -1, 1, 1, -1])
    >>> for train, test in SemiSupervisedSplit().split(y, y):
    ...     print(train, test)
    [0 2 4 5] [1 3]
    [1 2 3 5] [0 4]

    Tune a classifier; the tested rows stay in the graph, unlabelled:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> from manifoldknn.datasets import make_arch_and_s
    >>> from manifoldknn.model_selection import TransductiveClassifier
    >>> X, truth, labeled = make_arch_and_s(random_state=0)
    >>> y = np.full(len(X), -1)
    >>> y[labeled] = truth[labeled]
    >>> search = GridSearchCV(
    ...     TransductiveClassifier(ManifoldKNNClassifier(n_neighbors=1)),
    ...     {"estimator__sigma": [0.05, 5.0]},
    ...     cv=SemiSupervisedSplit(),
    ... ).fit(X, y)
    >>> search.best_params_
    {'estimator__sigma': 0.05}
    >>> float(np.mean(search.best_estimator_.transduction_ == truth))
    1.0
    """

    def __init__(
        self, n_splits: int = 2, *, unlabeled: Any = "auto", random_state: Any = 0
    ) -> None:
        self.n_splits = n_splits
        self.unlabeled = unlabeled
        self.random_state = random_state

    def split(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,  # noqa: ARG002 - scikit-learn's signature
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield the rows to learn from and the rows to test.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; only their number counts.
        y : array-like of shape (n_samples,)
            Labels; -1, None, NaN, NA or "" (or `unlabeled`) where there is none.
        groups : None
            Not used.

        Yields
        ------
        train : ndarray of int
            All unlabelled rows and the labelled ones of the other folds, ascending.
        test : ndarray of int
            The labelled rows of one fold, ascending.
        """
        check_integer("n_splits", self.n_splits, minimum=2)
        labels = encode_labels(y, unlabeled=self.unlabeled)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(labels.codes):
            raise ValueError(f"X has {n_rows} rows, but y has {len(labels.codes)} entries.")
        labeled = labels.labeled
        folds = self._folds(labels)
        for fold in range(self.n_splits):
            test = labeled[folds == fold]
            yield np.setdiff1d(np.arange(len(labels.codes)), test, assume_unique=True), test

    def _folds(self, labels: EncodedLabels) -> Ints:
        counts = np.bincount(labels.codes[labels.labeled])
        if counts.min() < 2:
            lonely = ", ".join(map(repr, labels.classes[counts < 2][:5].tolist()))
            raise TooFewLabelsError(
                f"y has a single label of class {lonely}: once hidden, nothing could name that "
                "class, so the labels cannot be divided into folds. Label at least two rows of "
                "every class, or keep the default parameters."
            )
        if len(labels.labeled) < self.n_splits:
            raise TooFewLabelsError(
                f"n_splits={self.n_splits}, but y has only {len(labels.labeled)} labels: lower "
                "n_splits or label more rows."
            )
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        return fold_numbers(labels.codes[labels.labeled], self.n_splits, int(seed))

    def get_n_splits(
        self,
        X: Any = None,  # noqa: ARG002 - scikit-learn's signature
        y: Any = None,  # noqa: ARG002
        groups: Any = None,  # noqa: ARG002
    ) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : None
            Not used.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits


@dataclass(frozen=True)
class Tuned:
    """What a grid search on few labels came to.

    Attributes
    ----------
    estimator : classifier
        Not fitted; with the parameters chosen.
    params : dict
        Those of the grid, as chosen; empty where nothing could be tuned.
    error : float
        Cross-validation error of the choice; NaN where nothing could be tuned.
    why_default : str
        Why the estimator kept its own parameters; empty where it was tuned.
    """

    estimator: Any
    params: dict[str, Any]
    error: float
    why_default: str = ""


def tuned(
    estimator: Any,
    grid: Any,
    X: Any,
    y: Any,
    *,
    n_splits: int = 2,
    transductive: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Tuned:
    """Choose parameters by cross-validation of the labelled rows, as the paper does.

    Parameters
    ----------
    estimator : classifier
        What to tune. Its own parameters are the answer where folds are impossible.
    grid : dict or list of dicts
        Values to try, by the estimator's names. Of equal ones the first wins, and few labels mean
        many equal ones: put the usual values first.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        All rows; for a supervised estimator the labelled ones only.
    y : array-like of shape (n_samples,)
        Labels; the marker where there is none.
    n_splits : int, default=2
        Number of folds.
    transductive : bool, default=True
        Whether hidden rows stay in the training set, unlabelled. False for supervised ones.
    random_state : int, RandomState instance or None, default=0
        Seeds the folds.
    n_jobs : int, optional
        Processes of the search, as in `GridSearchCV`.

    Returns
    -------
    Tuned
        The choice, and where it was none, why.

    Examples
    --------
    >>> from manifoldknn import ManifoldKNNClassifier
    >>> from manifoldknn.model_selection import tuned
    >>> X, y = [[0.0], [0.1], [0.9], [1.0], [0.2]], [0, -1, -1, 1, -1]
    >>> choice = tuned(ManifoldKNNClassifier(), {"sigma": [0.1, 1.0]}, X, y)
    >>> choice.params, choice.why_default[:33]
    ({}, 'y has a single label of class 0, ')
    """
    unlabeled = getattr(last_step(estimator), "unlabeled", "auto") if transductive else None
    cv = SemiSupervisedSplit(n_splits, unlabeled=unlabeled, random_state=random_state)
    try:
        folds = list(cv.split(X, y))
    except TooFewLabelsError as error:
        return Tuned(clone(estimator), {}, float("nan"), str(error))
    asked, prefix = estimator, ""
    if transductive:
        asked, prefix = TransductiveClassifier(estimator), "estimator__"
    grids = [grid] if isinstance(grid, dict) else grid
    named = [{prefix + name: values for name, values in one.items()} for one in grids]
    search = GridSearchCV(
        asked, named, cv=folds, refit=False, n_jobs=n_jobs, error_score="raise"
    ).fit(X, y)
    params = {name.removeprefix(prefix): v for name, v in search.best_params_.items()}
    chosen = clone(estimator).set_params(**params)
    return Tuned(chosen, params, 1 - float(search.best_score_))
