"""Samples as the library wants them: finite, two-dimensional, in a float type that holds them."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

# Squared distances must stay inside float64.
LARGEST = 1e100
_SMALLEST = 1e-100
# Every value of these fits float32 exactly: half the memory of float64.
_SMALL_TYPES = frozenset({"float16", "bool", "int8", "uint8", "int16", "uint16"})

_ENCODE = (
    "manifoldknn.TableEncoder makes numbers of missing values and text: "
    "make_pipeline(TableEncoder(), ManifoldKNNClassifier())."
)


def check_samples(estimator: Any, X: Any, y: Any) -> Any:
    """Return the training samples as float32 or float64, dense or CSR; the same object if possible.

    The estimator gets ``n_features_in_`` and ``feature_names_in_``; only the number of `y` counts.
    """
    X = _validated(estimator, X, ensure_min_samples=2)
    check_same_length(estimator, X.shape[0], y)
    X = _as_float(X)
    check_spread(X)
    return X


def check_same_length(estimator: Any, n_rows: int, y: Any) -> None:
    """Raise ValueError unless there are labels, one per row."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: pass "
            "one entry per row of X, -1 (or None) where a row is unlabelled."
        )
    n_labels = len(y) if hasattr(y, "__len__") else n_rows
    if n_labels != n_rows:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {n_rows} rows and {n_labels} "
            "labels. Pass one entry of y per row of X, -1 (or None) where a row is unlabelled."
        )


def check_new_samples(estimator: Any, X: Any, fitted: Any) -> Any:
    """Return new samples in the form of the fitted ones: dense or sparse, and of their dtype."""
    if not _passes_unchecked(estimator, X, fitted):
        X = _as_float(_validated(estimator, X, reset=False))
    if sparse.issparse(fitted):
        X = X if sparse.issparse(X) else sparse.csr_array(X)
    elif sparse.issparse(X):
        X = X.toarray()
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > min(LARGEST, float(np.finfo(fitted.dtype).max)):
        raise ValueError("X has values too large to measure distances with: rescale the features.")
    return X.astype(fitted.dtype, copy=False)


def _passes_unchecked(estimator: Any, X: Any, fitted: Any) -> bool:
    """Tell whether scikit-learn's checks would let X pass as it is.

    They take a third of a millisecond, as long as classifying a single row.
    """
    if type(X) is not np.ndarray or X.dtype != fitted.dtype or X.ndim != 2 or not len(X):
        return False
    if hasattr(estimator, "feature_names_in_") or X.shape[1] != estimator.n_features_in_:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))  # what overflows is left to scikit-learn


def check_unmasked(X: Any) -> None:
    """Raise ValueError if values of X are masked: nobody looks at a mask after this."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"X is a masked array, and {np.ma.getmaskarray(X).sum()} of its values are masked: "
            "fill them (X.filled(value)), or leave these rows or columns out."
        )


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    check_unmasked(X)
    try:
        return validate_data(estimator, X, accept_sparse="csr", dtype="numeric", **options)
    except ValueError as error:
        told = str(error)
        if "NaN" in told or "convert string" in told:
            raise ValueError(f"{told.splitlines()[0].rstrip('.')}. {_ENCODE}") from None
        if "infinity" not in told:
            raise
        raise ValueError(f"{told} Remove or replace these rows or values.") from None


def _as_float(X: Any) -> Any:
    if X.dtype in (np.float64, np.float32):
        return X
    return X.astype(np.float32 if X.dtype.name in _SMALL_TYPES else np.float64)


def check_spread(X: Any) -> None:
    """Raise ValueError unless the rows of X differ, by amounts whose squares floats can hold."""
    high, low = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(high):
        high, low = high.toarray(), low.toarray()
    check_range(high, low)


def check_range(high: Any, low: Any) -> None:
    """Raise ValueError unless the largest and smallest values of columns allow for distances."""
    spread = float(np.max(np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)))
    if spread == 0:
        raise ValueError(
            "All rows of X are identical, so nothing tells the classes apart: check how X was made."
        )
    if float(max(np.abs(high).max(), np.abs(low).max())) > LARGEST or spread < _SMALLEST:
        raise ValueError(
            "X has values too large or too close together to measure distances with: rescale the "
            "features, for example to [0, 1] with MinMaxScaler."
        )
