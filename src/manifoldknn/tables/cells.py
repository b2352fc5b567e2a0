"""Cells of a text file as numbers, booleans or dates, if all of a column are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["READERS", "booleans", "dates", "is_missing", "number_column", "numbers", "with_points"]

_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "missing", "?", "-"})
_SPELLED = sorted({*_MISSING, *map(str.upper, _MISSING), *map(str.title, _MISSING), "NaN", "NaT"})
# Blanks and digits are those that Python knows: of all scripts.
_BLANKS = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_DECIMAL_COMMA = rf"^({_BLANKS}[+-]?\p{{Nd}}*),(\p{{Nd}}+([eE][+-]?\p{{Nd}}+)?{_BLANKS})$"
_TRUE = frozenset({"true", "t", "yes", "y"})
_FALSE = frozenset({"false", "f", "no", "n"})
_DAY = 86400.0
_NAN = float("nan")


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that there is no value: empty, NA, NaN, null, none, ? or -."""
    return cell.strip().lower() in _MISSING


def numbers(cells: list[str]) -> NDArray[np.float64] | None:
    """Return cells as numbers, NaN where missing; None if some are no numbers.

    Parameters
    ----------
    cells : list of str
        Cells of one column.

    Returns
    -------
    ndarray of float64 or None
        Infinite values are left for the caller to judge.

    Examples
    --------
    >>> from manifoldknn.tables.cells import numbers
    >>> numbers(["1", " 2.5e3", "NA", ""])
    array([1.0e+00, 2.5e+03,     nan,     nan])
    >>> numbers(["1", "x"]) is None
    True
    """
    try:
        found = list(map(float, cells))
    except ValueError:
        found = []
        for cell in cells:
            try:
                found.append(_NAN if is_missing(cell) else float(cell))
            except ValueError:
                return None
    if "_" in "".join(cells):  # Python takes 1_000 for a number; other programs do not
        return None
    return np.array(found, dtype=np.float64)


def number_column(column: Any) -> NDArray[np.float64] | None:
    """Return a column of Arrow text as `numbers` does, which reads what Arrow does not know.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from manifoldknn.tables.cells import number_column
    >>> number_column(pa.array(["1", " 2.5e3", "NA", ""]))
    array([1.0e+00, 2.5e+03,     nan,     nan])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        values = column.cast(pa.float64())
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim_whitespace(column)
        gone = pc.is_in(trimmed, value_set=pa.array(_SPELLED))
        try:
            values = pc.if_else(gone, pa.scalar(None, column.type), trimmed).cast(pa.float64())
        except pa.ArrowInvalid:
            return numbers(column.to_pylist())
    found: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
    odd = np.isnan(found)  # Arrow takes nan(1) for NaN; Python does not
    if odd.any() and numbers(column.filter(pa.array(odd)).to_pylist()) is None:
        return None
    return found


def with_points(column: Any) -> Any:
    """Return Arrow text with a point in numbers that have a decimal comma; other cells as they are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from manifoldknn.tables.cells import with_points
    >>> with_points(pa.array(["1,5", "-,25e1", "1.000,5", "x,1"])).to_pylist()
    ['1.5', '-.25e1', '1.000,5', 'x,1']
    """
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring(column, ",")).as_py():
        return column
    return pc.replace_substring_regex(column, _DECIMAL_COMMA, r"\1.\2")


def booleans(cells: list[str]) -> NDArray[np.float64] | None:
    """Return cells such as true and false, yes and no as 1 and 0; None if some are neither.

    Examples
    --------
    >>> from manifoldknn.tables.cells import booleans
    >>> booleans(["True", "no", "?"])
    array([ 1.,  0., nan])
    """
    found = np.empty(len(cells))
    for i, cell in enumerate(cells):
        word = cell.strip().lower()
        if word in _TRUE or word in _FALSE:
            found[i] = word in _TRUE
        elif word in _MISSING:
            found[i] = _NAN
        else:
            return None
    return found


def dates(cells: list[str]) -> NDArray[np.float64] | None:
    """Return ISO dates and times as days since 1970, in UTC; None if some are none.

    Examples
    --------
    >>> from manifoldknn.tables.cells import dates
    >>> dates(["1970-01-02", "1970-01-02T12:00:00", "", "1970-01-02 01:00+01:00"])
    array([1. , 1.5, nan, 1. ])
    """
    found = np.empty(len(cells))
    for i, cell in enumerate(cells):
        if is_missing(cell):
            found[i] = _NAN
            continue
        try:
            moment = datetime.fromisoformat(cell.strip())
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found[i] = moment.timestamp() / _DAY
    return found


READERS = {"number": numbers, "boolean": booleans, "date": dates}  # by what a column may hold
