"""Learning anew for every question, from the training rows and those asked about."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from manifoldknn.base import Array, Ints
from manifoldknn.base.labels import encode_labels
from manifoldknn.model.fitted import all_or_nothing


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
