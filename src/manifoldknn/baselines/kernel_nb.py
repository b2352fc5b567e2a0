"""Naive Bayes with a kernel density estimate per class and feature."""

from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from manifoldknn.base import Array, Floats
from manifoldknn.base.parameters import check_positive
from manifoldknn.model.fitted import all_or_nothing
from manifoldknn.vote.votes import class_prior

_MAD_OF_NORMAL = 0.6744897501960817  # median absolute deviation of the standard normal
_CHUNK = 1 << 22  # numbers held at a time


class KernelNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes whose densities are sums of Gaussian bumps, one per sample.

    log p(c | x) = log p(c) + Σⱼ log (1/n_c Σᵢ N(xⱼ; xᵢⱼ, h_cj²)) + const, i over the n_c samples of
    class c and j over the features.

    Parameters
    ----------
    bandwidth : float, "shared" or "normal", default="shared"
        Width h of the bumps. Both rules are s·(4 / 3n_c)^(1/5), the best width for a normal
        density of deviation s. "shared": s is the standard deviation of the feature over
        all classes, which holds up when a class has three samples. "normal": of every class by
        itself, as its median absolute deviation over 0.6745.
    bandwidth_scale : float, default=1.0
        Multiplies the widths: what to tune.
    class_prior : None, "labeled", "equal" or array-like of shape (n_classes,), default="labeled"
        p(c). "labeled": shares of the training samples, as they are. None, "equal": all equal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    bandwidth_ : ndarray of shape (n_classes, n_features)
        Widths used; 0 marks features that are left out.
    class_log_prior_ : ndarray of shape (n_classes,)
        log p(c).

    Notes
    -----
    With "normal", where the deviation is 0 because most values are equal, s is the range; where all
    samples of the class are equal, the width is the shared one. A feature that is the same
    everywhere tells nothing and is left out. Densities stay logarithms throughout, so that
    rows far from every sample are still told apart.

    Cost: n_queries · n_samples · n_features exponentials, in chunks of bounded memory.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifoldknn.baselines import KernelNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> round(KernelNaiveBayes().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.95
    """

    def __init__(
        self,
        *,
        bandwidth: float | str = "shared",
        bandwidth_scale: float = 1.0,
        class_prior: Any = "labeled",
    ) -> None:
        self.bandwidth = bandwidth
        self.bandwidth_scale = bandwidth_scale
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any) -> Self:
        """Remember labelled samples and their classes, and choose the widths."""
        check_positive("bandwidth_scale", self.bandwidth_scale)
        if self.bandwidth not in ("shared", "normal"):
            check_positive("bandwidth", self.bandwidth, or_else="'shared' or 'normal'")
        with all_or_nothing(self):
            X, y = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(y)
            classes, codes = np.unique(y, return_inverse=True)
            wanted, counts = self.class_prior, np.bincount(codes)
            if isinstance(wanted, str) and wanted == "labeled":
                wanted = counts
            prior = class_prior("equal" if wanted is None else wanted, counts, classes)
        samples = [X[codes == c] for c in range(len(classes))]
        if self.bandwidth in ("shared", "normal"):
            spread = X.std(axis=0, ddof=min(1, len(X) - 1)) * (np.ptp(X, axis=0) > 0)
            widths = np.stack([spread * _normal_factor(len(rows)) for rows in samples])
        else:
            varies = np.ptp(X, axis=0) > 0
            widths = np.tile(np.where(varies, float(self.bandwidth), 0.0), (len(classes), 1))
        if self.bandwidth == "normal":
            own = np.stack([normal_bandwidths(rows) for rows in samples])
            widths = np.where(own > 0, own, widths)
        self.classes_, self._samples = classes, samples
        self.bandwidth_ = widths * self.bandwidth_scale
        self.class_log_prior_ = np.log(prior)
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return log p(c) + log p(x | c), a row per row of X, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        joint = [
            prior + _log_density(X, rows, widths)
            for prior, rows, widths in zip(self.class_log_prior_, self._samples, self.bandwidth_)
        ]
        return np.column_stack(joint)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, in the order of `classes_`."""
        joint = self.predict_joint_log_proba(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every row."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])


def normal_bandwidths(X: Floats) -> Floats:
    """Return the kernel width for every column that would be best were it normal.

    s·(4 / 3n)^(1/5); 0 where a column is constant.

    >>> normal_bandwidths(np.array([[0.0, 3.0, 0.0], [1.0, 3.0, 0.0], [2.0, 3.0, 1.0]])).round(2)
    array([1.26, 0.  , 0.85])
    """
    spread = np.median(np.abs(X - np.median(X, axis=0)), axis=0) / _MAD_OF_NORMAL
    spread = np.where(spread > 0, spread, np.ptp(X, axis=0))
    return np.asarray(spread * _normal_factor(len(X)))


def _normal_factor(n: int) -> float:
    return float((4 / (3 * n)) ** 0.2)


def _log_density(X: Floats, samples: Floats, widths: Floats) -> Floats:
    """Return the sum over features of the log kernel density estimate at the rows of X."""
    used = widths > 0
    X, samples, widths = X[:, used], samples[:, used], widths[used]
    constant = -np.log(widths * np.sqrt(2 * np.pi)).sum() - used.sum() * np.log(len(samples))
    per_row = max(1, samples.size)
    step = max(1, _CHUNK // per_row)
    density = np.empty(len(X))
    for start in range(0, len(X), step):
        away = (X[start : start + step, None, :] - samples) / widths
        exponent = -0.5 * away**2
        top = exponent.max(axis=1)  # lest every term underflow
        bumps = np.exp(exponent - top[:, None]).sum(axis=1)
        density[start : start + step] = (top + np.log(bumps)).sum(axis=1)
    return density + constant
