"""Single values as JSON can hold them, and back, with their types."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MISSING_NAMES = ("NAType", "NaTType")
_LONGEST_INT = 4000  # digits
_MOST_BYTES = 1 << 25  # of an array of labels
_WRITERS: dict[type, Callable[[Any], Any]] = {  # a bool is an int as well, and comes first
    bool: bool,
    int: str,
    float: float.hex,
    bytes: bytes.hex,
}
_READERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float.fromhex,
    "text": str,
    "str": lambda value: bytes.fromhex(value).decode("utf-8", "surrogatepass"),
    "bytes": bytes.fromhex,
}


def to_plain(value: Any) -> dict[str, Any]:
    """Return a value as a dictionary that JSON can hold and `from_plain` understands.

    None, bool, int, float, str or bytes, or a NumPy scalar of these kinds; pandas' NA and NaT count
    as None. TypeError for any other.

    >>> to_plain(2**70)
    {'type': 'int', 'value': '1180591620717411303424'}
    >>> from_plain(to_plain(b"ab"))
    b'ab'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in _MISSING_NAMES:
        return {"type": "none", "value": None}
    if isinstance(value, str):
        if any(0xD800 <= ord(c) <= 0xDFFF for c in value):  # no valid Unicode: kept as escapes
            return {"type": "str", "value": value.encode("utf-8", "surrogatepass").hex()}
        return {"type": "text", "value": value}
    for kind, written in _WRITERS.items():
        if isinstance(value, kind):
            return {"type": kind.__name__, "value": written(value)}
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written")


def from_plain(plain: Any) -> Any:
    """Return the value that `to_plain` was given; ValueError if it is no such dictionary."""
    try:
        kind, value = plain["type"], plain["value"]
        if (kind == "none" and value is None) or (kind == "bool" and isinstance(value, bool)):
            return value
        if isinstance(value, str) and not (kind == "int" and len(value) >= _LONGEST_INT):
            return _READERS[kind](value)
    except (TypeError, KeyError, ValueError, OverflowError):
        pass
    raise ValueError("not a value of a known type")


def array_to_plain(array: NDArray[Any]) -> dict[str, Any]:
    """Return a one-dimensional array of labels as a dictionary that JSON can hold."""
    _check_size(len(array), array.dtype)
    return {"dtype": array.dtype.str, "values": [to_plain(value) for value in array.tolist()]}


def _check_size(n: int, dtype: np.dtype[Any]) -> None:
    """Refuse text as wide as its longest, where a few bytes could ask for all memory."""
    if n * dtype.itemsize > _MOST_BYTES:
        raise ValueError("too many labels as long as the longest: shorten that")


def array_from_plain(plain: Any) -> NDArray[Any]:
    """Return the array that `array_to_plain` was given; ValueError if it is no such dictionary."""
    try:
        values, dtype = plain["values"], np.dtype(str(plain["dtype"]))
    except (TypeError, KeyError):
        raise ValueError("not an array") from None
    if dtype.kind not in "biufUSO" or dtype.names is not None or not isinstance(values, list):
        raise ValueError("not an array of labels")
    scalars = [from_plain(value) for value in values]
    longest = max((len(s) for s in scalars if isinstance(s, str | bytes)), default=1)
    if not 0 <= dtype.itemsize <= 8 * max(8, longest):  # below 0 in NumPy 2.1: it overflows
        raise ValueError("not the dtype of these labels")
    _check_size(len(scalars), dtype)
    array = np.empty(len(scalars), dtype=dtype)
    for i, scalar in enumerate(scalars):
        array[i] = scalar
        kept = array[i]
        if kept != scalar and not (isinstance(scalar, float) and math.isnan(scalar)):
            raise ValueError("not the dtype of these labels")
    return array
