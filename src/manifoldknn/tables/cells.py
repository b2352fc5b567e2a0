"""Cells of a text file as numbers, booleans or dates, in the ways that people write them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ORDERS", "Count", "counted", "decimal_mark", "is_missing", "number_column", "numbers", "read",
    "read_array", "read_booleans", "read_dates", "read_numbers", "with_points",
]  # fmt: skip

_MISSING = frozenset({
    "", "na", "n/a", "#n/a", "nan", "null", "none", "nat", "missing", "?", "-", ".", "<na>",
    "n.a.", "n.d.", "k.a.", "#nv", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!", "#num!",
    "#zahl!", "#name?", "#null!",
})  # fmt: skip
# Words that mean "no value" only where everything else is numbers or dates.
_NO_NUMBER = frozenset({
    "nd", "n.d", "n. d.", "n. a.", "k. a.", "n.b.", "n.n.", "bdl", "b.d.l.", "lod", "<lod", "< lod",
    "loq", "<loq", "< loq", "--", "---", "–", "—", "...", "…", "*", "not detected", "unknown",
    "err", "error", "fehler", "overflow", "ovrflw", "out of range", "not available", "(null)",
    "(blank)", "unbekannt", "keine angabe",
})  # fmt: skip
_SPELLED = sorted({*_MISSING, *map(str.upper, _MISSING), *map(str.title, _MISSING), "NaN", "NaT"})
# Blanks and digits are those that Python knows: of all scripts.
_BLANKS = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_DECIMAL_COMMA = rf"^({_BLANKS}[+-]?\p{{Nd}}*),(\p{{Nd}}+([eE][+-]?\p{{Nd}}+)?{_BLANKS})$"
_GAP = "\u2009\u202f\xa0 '’"  # between groups of three digits
_NUMBER = re.compile(
    rf"""\s*(?P<bound>[<>≤≥~≈]=?|[Cc]a\.?)?\s*(?P<money>[€$£¥])?\s*(?P<sign>[+\-−–﹣－]?)\s?
    (?P<body>[.,]?\d(?:[\d{_GAP}.,]*[\d.,])?)(?P<power>[eE][+\-−]?\d+)?
    \s*(?P<unit>[^\W\d_](?:[^\W\d_]|[/²³·^.%-]){{0,11}}[23]?|[%‰°€$£¥"][\w/]*)?\s*""",
    re.VERBOSE,
)
_GROUPED = re.compile(rf"(\d{{1,3}})((?:[{_GAP}]\d{{3}})+)((?:[.,]\d*)?)")
_THOUSANDS = re.compile(r"\d{1,3}(?:(?:,\d{3})+(?:\.\d*)?|(?:\.\d{3})+(?:,\d*)?)")
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")  # a thousand, or one and some thousandths
_PLAIN = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_ENOUGH = 1000  # numbers that tell the decimal mark
_MOST_UNREAD = 0.1  # of cells that are not missing
_BOOLEANS = dict.fromkeys(("true", "t", "yes", "y"), 1.0)
_BOOLEANS |= dict.fromkeys(("false", "f", "no", "n"), 0.0)
_DAY = 86400.0
_NAN, _INFINITE = float("nan"), float("inf")


def is_missing(cell: str, na: Collection[str] = ()) -> bool:
    """Tell whether a cell says that there is no value: empty, NA, n.d., ?, #DIV/0! and the like.

    `na` are further texts that say so, in lower case.
    """
    text = cell.strip().lower()
    return text in _MISSING or text in na


def numbers(cells: list[str]) -> NDArray[np.float64] | None:
    """Return cells of a column as numbers, NaN where missing; None if some are no numbers.

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


@dataclass
class Count:
    """How the cells of a column were read, counted."""

    n_read: int = 0
    n_bounds: int = 0  # with < or the like, read as the number
    n_thousands: int = 0  # with marks between groups of three digits
    n_foreign: int = 0  # not read, as they have another unit than the others
    units: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)  # odd cells, which count as missing

    def add(self, other: Count) -> None:
        """Add what was counted in more cells."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)

    @property
    def n_odd(self) -> int:
        """How many cells could not be read."""
        return self.unread.total()

    @property
    def present(self) -> int:
        """How many cells are not missing."""
        return self.n_read + self.n_odd

    @property
    def is_sound(self) -> bool:
        """Whether nearly all cells could be read."""
        return self.n_odd <= _MOST_UNREAD * self.present

    @property
    def examples(self) -> str:
        """Up to three cells that could not be read."""
        return ", ".join(repr(text[:20]) for text, _ in self.unread.most_common(3))

    @property
    def told(self) -> list[str]:
        """What was done to the cells."""
        marks = [
            (self.n_bounds, "with <, > or ca., read as the number"),
            *((n_cells, f"with the unit {unit}") for unit, n_cells in self.units.items()),
            (self.n_thousands, "with marks between thousands"),
            (self.n_odd, f"not read, so missing ({self.examples})"),
        ]
        return [f"{counted(number, 'cell')} {what}" for number, what in marks if number]


def counted(number: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "cell"), counted(2000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def read(
    cells: list[str],
    kind: str,
    *,
    na: Collection[str] = (),
    mark: str = "",
    unit: str = "",
    order: str = "ymd",
) -> tuple[NDArray[np.float64], Count]:
    """Return cells as "number", "boolean" or "date", NaN where there is none, and a count."""
    if kind == "number":
        values, count = read_numbers(cells, mark, na, unit)
        return _without(values, na), count
    return read_dates(cells, order, na) if kind == "date" else read_booleans(cells, na)


def read_numbers(
    cells: list[str], mark: str = "", na: Collection[str] = (), unit: str = ""
) -> tuple[NDArray[np.float64], Count]:
    """Return cells as numbers, however they are written, NaN where there is none, and a count.

    Parameters
    ----------
    cells : list of str
        Cells of one column.
    mark : {".", ",", ""}
        What is meant by 1.234 and 1,234: the decimal mark. "": either is.
    na : collection of str
        Further texts that mean missing, in lower case.
    unit : str
        The only one that may follow a number; by default the one that most of them have.

    Examples
    --------
    >>> from manifoldknn.tables.cells import read_numbers
    >>> values, found = read_numbers(["<0,5", "1.234,5 mg", "n.d.", "−2", "1.2.3"], ",")
    >>> values
    array([ 5.0000e-01,  1.2345e+03,         nan, -2.0000e+00,         nan])
    >>> found.n_bounds, dict(found.units), dict(found.unread)
    (1, {'mg': 1}, {'1.2.3': 1})
    """
    values, count = list[float](), Count()
    other = {".": ",", ",": "."}.get(mark, "\0")  # may mean thousands
    for cell in cells:
        try:
            if other in cell or "_" in cell:
                raise ValueError
            value = float(cell.replace(",", ".", 1))
            if abs(value) == _INFINITE:
                raise ValueError
            count.n_read += value == value
        except ValueError:
            value = _spelled(cell, mark, na, unit, count)
        values.append(value)
    if len(count.units) > 1:
        return read_numbers(cells, mark, na, count.units.most_common(1)[0][0])
    return np.array(values, dtype=np.float64), count


def _spelled(cell: str, mark: str, na: Collection[str], unit: str, count: Count) -> float:
    """Return the number that a cell spells in some unusual way, NaN if none, and count it."""
    if is_missing(cell, na) or cell.strip().lower() in _NO_NUMBER:
        return _NAN
    found = _NUMBER.fullmatch(cell)
    digits = _digits(found["body"], mark, bool(found["power"])) if found else ""
    value = _NAN
    if found and digits:
        minus = "-" if found["sign"] not in ("", "+") else ""
        value = float(f"{minus}{digits}{(found['power'] or '').replace('−', '-')}")
    named = (found["unit"] or found["money"] or "") if found else ""
    foreign = bool(named and unit and named != unit)
    if not found or not math.isfinite(value) or foreign:
        count.unread[cell.strip()] += 1
        # 12b beside 12a is rather the number of a house.
        glued = named[:1].isalpha() and cell[found.start("unit") - 1].isalnum() if found else True
        count.n_foreign += foreign and not glued
        return _NAN
    count.n_read += 1
    count.n_bounds += bool(found["bound"])
    count.n_thousands += sum(map(found["body"].count, ",." + _GAP)) > ("." in digits)
    if named:
        count.units[named] += 1
    return value


def _digits(body: str, mark: str, plain: bool = False) -> str:
    """Return digits with a point, of digits with any marks; "" if the marks make no sense.

    `plain` digits have no thousands: a power of ten follows.
    """
    grouped = _GROUPED.fullmatch(body)
    if grouped:
        body = grouped[1] + re.sub(rf"[{_GAP}]", "", grouped[2]) + grouped[3]
    signs = [sign for sign in body if sign in ",."]
    if len(signs) > 1:
        thousands = _THOUSANDS.fullmatch(body)
    else:
        sure = not mark or signs == [mark] or plain or grouped
        thousands = None if sure else _EITHER.fullmatch(body)
    if thousands:
        body = body.replace(signs[0], "")
    body = body.replace(",", ".")
    return body if _PLAIN.fullmatch(body) else ""


def read_array(
    values: NDArray[np.float64], na: Collection[str]
) -> tuple[NDArray[np.float64], Count]:
    """Return numbers with NaN for infinite ones and those that `na` names, and a count."""
    values = _without(values, na)
    count = Count(n_read=int(np.isfinite(values).sum()))
    infinite = np.isinf(values)
    if infinite.any():
        values = np.where(infinite, _NAN, values)
        if "inf" not in na:
            count.unread["inf"] = int(infinite.sum())
    return values, count


def _without(values: NDArray[np.float64], na: Collection[str]) -> NDArray[np.float64]:
    """Return numbers with NaN for those that `na` names, such as "-999"."""
    gone = [number for text in na if (number := read_numbers([text])[0][0]) == number]
    return np.where(np.isin(values, gone), _NAN, values) if gone else values


def decimal_mark(cells: Iterable[str]) -> str:
    """Return "," or ".", whichever more of the numbers among cells have; "" if they do not tell.

    Examples
    --------
    >>> from manifoldknn.tables.cells import decimal_mark
    >>> decimal_mark(["1,5", "1.234,5", "7"]), decimal_mark(["1.234", "9"]), decimal_mark(["0.123"])
    (',', '', '.')
    """
    votes = Counter[str]()
    for cell in cells:
        found = _NUMBER.fullmatch(cell) if "," in cell or "." in cell else None
        body = found["body"] if found else ""
        signs = [sign for sign in body if sign in ",."]
        if not signs or not _digits(body, ".") or _EITHER.fullmatch(body) or body[-1] in ",.":
            continue
        grouping = len(signs) > 1 and signs[0] == signs[-1]
        votes[{",": ".", ".": ","}[signs[-1]] if grouping else signs[-1]] += 1
        if votes.total() == _ENOUGH:
            break
    return "" if votes[","] == votes["."] else max(votes, key=votes.__getitem__)


def read_booleans(cells: list[str], na: Collection[str] = ()) -> tuple[NDArray[np.float64], Count]:
    """Return cells such as true and false, yes and no as 1 and 0, and a count.

    Examples
    --------
    >>> from manifoldknn.tables.cells import read_booleans
    >>> read_booleans(["True", "no", "?"])[0]
    array([ 1.,  0., nan])
    """
    return _each(cells, na, lambda text: _BOOLEANS[text.lower()])


def _each(
    cells: list[str], na: Collection[str], value_of: Callable[[str], float]
) -> tuple[NDArray[np.float64], Count]:
    """Return the values of cells, NaN where there is none, and a count."""
    values, count = np.full(len(cells), _NAN), Count()
    for i, cell in enumerate(cells):
        text = cell.strip()
        if is_missing(text, na):
            continue
        try:
            values[i] = value_of(text)
        except (ValueError, KeyError):
            count.unread[text] += 1
    count.n_read = int(np.isfinite(values).sum())
    return values, count


ORDERS = ("ymd", "dmy", "mdy")  # of day, month and year
_TIME = (
    r"(?:(?:T|,?\s+)(?P<h>\d{1,2}):(?P<min>\d\d)(?::(?P<s>\d\d)(?:[.,]\d+)?)?\s*(?P<half>[ap]m)?)?"
)
_ORDERED = {
    "ymd": re.compile(r"(?P<y>\d{4})([./-])(?P<m>\d{1,2})\2(?P<d>\d{1,2})" + _TIME, re.I),
    "dmy": re.compile(r"(?P<d>\d{1,2})([./-])(?P<m>\d{1,2})\2(?P<y>\d{4}|\d\d)" + _TIME, re.I),
    "mdy": re.compile(r"(?P<m>\d{1,2})([/-])(?P<d>\d{1,2})\2(?P<y>\d{4}|\d\d)" + _TIME, re.I),
}


_MONTHS = {  # by their first letters, in English and German
    "jan": 1, "feb": 2, "mar": 3, "mär": 3, "mrz": 3, "apr": 4, "may": 5, "mai": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "okt": 10, "nov": 11, "dec": 12, "dez": 12,
}  # fmt: skip
_NAMED = re.compile(
    r"(?P<d>\d{1,2})[.\s-]+(?P<m>[^\W\d_]{3,9})[.\s-]+(?P<y>\d{4}|\d\d)" + _TIME, re.I
)


def read_dates(
    cells: list[str], order: str = "ymd", na: Collection[str] = ()
) -> tuple[NDArray[np.float64], Count]:
    """Return dates and times as days since 1970, in UTC, and a count.

    ISO dates and 5-Jan-2024 are read in any order; 05.01.24, 5/1/2024 2:30 pm and the like in that
    of the column.

    Examples
    --------
    >>> from manifoldknn.tables.cells import read_dates
    >>> read_dates(["1970-01-02T12:00", "", "1970-01-02 01:00+01:00", "3 Jan 1970"])[0]
    array([1.5, nan, 1. , 2. ])
    >>> read_dates(["05.01.1970 12:00", "soon"], "dmy")[0], read_dates(["5/1/1970"], "mdy")[0]
    (array([4.5, nan]), array([120.]))
    """
    gone = {*na, *_NO_NUMBER}
    return _each(cells, gone, lambda text: _moment(text, order).timestamp() / _DAY)


def _moment(text: str, order: str) -> datetime:
    match = _ORDERED[order].fullmatch(text) or _NAMED.fullmatch(text)
    if not match or order == "ymd":
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not match:
        raise ValueError
    parts: list[Any] = [match[part] or 0 for part in _PARTS]
    if not parts[1].isdigit():
        parts[1] = _MONTHS[parts[1][:3].lower()]
    year, month, day, hour, minute, second = map(int, parts)
    if len(match["y"]) == 2:
        year += 2000 if year < 69 else 1900
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "pm")
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


_PARTS = ("y", "m", "d", "h", "min", "s")
