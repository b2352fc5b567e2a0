"""Samples that are tensors on a device: checked there, as those on the CPU are."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from manifoldknn.base.samples import LARGEST, check_range, check_same_length
from manifoldknn.base.tensors import check_dense

_SMALL = frozenset({"bool", "uint8", "int8", "int16", "uint16", "float16", "bfloat16"})


def check_tensor(estimator: Any, X: Any, y: Any) -> Any:
    """Return the training samples as a tensor of float32 or float64, X itself if it is one.

    The estimator gets ``n_features_in_``; y is looked at for its length only.
    """
    X = _matrix(estimator, X, ensure_min_samples=2)
    check_same_length(estimator, X.shape[0], y)
    X = _as_float(X)
    high, low = (side.cpu().double().numpy() for side in (X.amax(dim=0), X.amin(dim=0)))
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        check_finite(X)
    check_range(high, low)
    return X


def check_new_tensor(estimator: Any, X: Any, template: Any) -> Any:
    """Return new samples, if finite, as a tensor of the dtype that the fitted ones have."""
    X = _as_float(_matrix(estimator, X, reset=False))
    check_finite(X)
    X = X.to(torch.float32 if template.dtype == np.float32 else torch.float64)
    check_size(X)
    return X


def _matrix(estimator: Any, X: Any, **options: Any) -> Any:
    check_dense(X)
    if X.is_complex():
        raise ValueError(
            f"X must hold real numbers for {type(estimator).__name__}, not {X.dtype}: pass, for "
            "example, X.real and X.imag side by side."
        )
    # An array of its shape, of a single number, so that scikit-learn says what it does of arrays.
    stand_in = np.broadcast_to(0.0, tuple(X.shape))
    validate_data(estimator, stand_in, ensure_all_finite=False, **options)
    return X.detach()


def _as_float(X: Any) -> Any:
    if X.dtype in (torch.float32, torch.float64):
        return X
    small = str(X.dtype).removeprefix("torch.") in _SMALL or "float8" in str(X.dtype)
    return X.to(torch.float32 if small else torch.float64)


def check_size(X: Any) -> None:
    """Raise ValueError if some value is too large for squares, or was for its dtype."""
    if not (float(X.amax()) <= LARGEST and float(X.amin()) >= -LARGEST):
        raise ValueError("X has values too large to measure distances with: rescale the features.")


def check_finite(X: Any) -> None:
    """Raise ValueError if some value of a tensor is NaN or infinite.

    Extremes show either, and need no memory: a NaN makes them NaN.
    """
    extremes = np.array([float(X.amax()), float(X.amin())])
    if np.isfinite(extremes).all():
        return
    what = "NaN" if np.isnan(extremes).any() else "infinity"
    raise ValueError(f"Input X contains {what}. Remove or replace these rows or values.")
