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
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import BaseCrossValidator, GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from manifoldknn.base import Array, Ints
from manifoldknn.base.labels import EncodedLabels, encode_labels
from manifoldknn.base.parameters import check_integer
from manifoldknn.exceptions import TooFewLabelsError
from manifoldknn.model.fitted import all_or_nothing
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

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return the number of folds, `n_splits`, whatever is passed."""
        return self.n_splits


def _answers(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


class TransductiveClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Answer rows by learning from the training rows and these rows together.

    This is how a semi-supervised method is tested and tuned: the tested rows are part of the data,
    only their labels are hidden. With `SemiSupervisedSplit` it works in `GridSearchCV`,
    `cross_val_score` and the like, with any scorer.

    Parameters
    ----------
    estimator : classifier
        Takes unlabelled rows in ``fit``: `ManifoldKNNClassifier`, `GeodesicKNNClassifier`,
        scikit-learn's `LabelSpreading`, or a pipeline that ends with one of them.
    unlabeled : object, default="auto"
        What marks an unlabelled row in y. "auto" is the estimator's own parameter `unlabeled`
        if it has one; else -1 among integers, "" among strings. None, NaN and NA always do.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    estimator_ : classifier
        Fitted on the training rows alone; made when first asked for, since
        cross-validation never needs it.
    transduction_ : ndarray of shape (n_samples,)
        Its label for every training row.

    Notes
    -----
    `predict` costs a fit, every time. For new rows after tuning use
    ``search.best_estimator_.estimator_``, for the rows it learnt from ``transduction_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.semi_supervised import LabelSpreading
    >>> from manifoldknn.model_selection import SemiSupervisedSplit, TransductiveClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> y[np.arange(150) % 10 > 0] = -1  # five labels of each species are left
    >>> clf = TransductiveClassifier(LabelSpreading())
    >>> cross_val_score(clf, X, y, cv=SemiSupervisedSplit(5)).round(2)
    array([0.67, 0.67, 1.  , 1.  , 1.  ])
    """

    def __init__(self, estimator: Any, *, unlabeled: Any = "auto") -> None:
        self.estimator = estimator
        self.unlabeled = unlabeled

    def fit(self, X: Any, y: Any) -> Self:
        """Remember all training rows; y has the marker where there is no label."""
        with all_or_nothing(self):
            X = self._checked(X, reset=True)
            labels = encode_labels(y, unlabeled=self._marker())
            if len(labels.codes) != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, but y has {len(labels.codes)} entries.")
        self.classes_, self._labels, self._X = labels.classes, labels, X
        self._fitted = None
        return self

    def _marker(self) -> Any:
        if isinstance(self.unlabeled, str) and self.unlabeled == "auto":
            return getattr(last_step(self.estimator), "unlabeled", "auto")
        return self.unlabeled

    @property
    def estimator_(self) -> Any:
        """The estimator, fitted on the training rows alone."""
        check_is_fitted(self)
        if self._fitted is None:
            self._fitted = clone(self.estimator).fit(self._X, self._shown(self._labels.codes))
        return self._fitted

    @property
    def transduction_(self) -> Array:
        """Its label for every training row."""
        own = getattr(last_step(self.estimator_), "transduction_", None)
        return np.asarray(self.estimator_.predict(self._X) if own is None else own)

    def _shown(self, codes: Ints) -> Array:
        """Return labels as the estimator reads them."""
        y = self._labels.decode(codes)
        if y.dtype.kind == "f" and not hasattr(last_step(self.estimator), "unlabeled"):
            y[codes < 0] = -1  # scikit-learn's own mark; NaN it would refuse
        return y

    def _checked(self, X: Any, *, reset: bool) -> Any:
        # Frames stay frames: a pipeline may choose columns by name, or turn words into numbers.
        how: Any = {"skip_check_array": True}
        if not hasattr(X, "columns"):
            how = {"accept_sparse": "csr", "dtype": "numeric"}
        return validate_data(self, X, reset=reset, **how)

    def _with(self, X: Any, attribute: str, method: str) -> Array:
        """Learn from the training rows and X, and return the answers for X."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        codes = np.append(self._labels.codes, np.full(X.shape[0], -1))
        model = clone(self.estimator).fit(_stacked(self._X, X), self._shown(codes))
        own = getattr(last_step(model), attribute, None)
        return np.asarray(getattr(model, method)(X) if own is None else own[self._X.shape[0] :])

    @_answers("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Classify rows as unlabelled ones among the training rows."""
        return self._with(X, "transduction_", "predict")

    @_answers("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities of rows as unlabelled ones among the training rows."""
        return self._with(X, "label_distributions_", "predict_proba")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that get their label; y misses none."""
        truth = encode_labels(y, unlabeled=self._marker())
        if (truth.codes < 0).any():
            raise ValueError("y has unlabelled rows, which cannot be scored: leave them out.")
        right = np.asarray(self.predict(X)) == truth.decode(truth.codes)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self.estimator, "__sklearn_tags__", None) is None or (
            self.estimator.__sklearn_tags__().input_tags.sparse
        )
        return tags


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _stacked(known: Any, asked: Any) -> Any:
    """Put rows below others, in the form of the first."""
    if not hasattr(known, "columns"):
        asked = asked.to_numpy() if hasattr(asked, "columns") else asked
        if sparse.issparse(known) or sparse.issparse(asked):
            return sparse.vstack([known, asked], format="csr")
        return np.vstack([known, asked])
    if not hasattr(asked, "columns"):  # an array below a frame
        asked = type(known)(asked, columns=known.columns)
    if hasattr(known, "vstack"):  # polars
        return known.vstack(asked)
    from pandas import concat

    return concat([known, asked], ignore_index=True)


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
