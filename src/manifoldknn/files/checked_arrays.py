"""Arrays from a model file, of which none is trusted: ValueError for what cannot be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def require(condition: Any, what: str) -> None:
    """Raise ValueError that names `what` unless the condition holds."""
    if not condition:
        raise ValueError(f"its {what} cannot be")


def floats(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of finite numbers of a known shape."""
    array = arrays[name]
    require(array.shape == shape and array.dtype == np.float64, name)
    require(np.isfinite(array).all(), name)
    return array


def logarithms(arrays: Arrays, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array of logarithms, in which -inf may stand for 0."""
    array = arrays[name]
    require(array.shape == shape and array.dtype == dtype, name)
    require(not (np.isnan(array) | np.isposinf(array)).any(), name)
    return array


def numbers(arrays: Arrays, name: str, below: int, *, least: int = 0) -> NDArray[Any]:
    """Return an array of row or class numbers, which compiled code would trust."""
    array = arrays[name]
    require(array.dtype.kind == "i" and array.ndim > 0, name)
    require((array >= least).all() and (array < below).all(), name)
    return array
