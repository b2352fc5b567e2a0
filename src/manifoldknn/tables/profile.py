"""What the columns of a table hold, found out in one pass of little memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.table import Column, Table

__all__ = [
    "KINDS", "MOST_CATEGORIES", "Profile", "Use", "profile_columns", "unread_notes",
    "unread_warning",
]  # fmt: skip

MOST_CATEGORIES = 30
KINDS = ("number", "boolean", "date", "category")  # that become features
_FIRST = 2000  # cells that are tried before all others are read
_EXACT = 2.0**53  # whole numbers beyond are rounded
_CLEARLY = 0.8  # share of cells that makes a column one of numbers to people
_MANY = 0.05  # share of cells that could not be read, beyond which that must not be overlooked
_DRAWN = 10_000  # rows whose numbers are kept, to rank others by
_LONG = 8.0  # times the distance of the 5 % and 95 % quantiles: a longer range has a long tail


@dataclass(frozen=True)
class Use:
    """What became of a column: a line of the table that users see."""

    name: str
    used: bool
    kind: str  # what it is used as, or "" if it is not
    how: str  # what was done to its cells, or why it is left out
    warning: str = ""  # what must not be overlooked
    plain: bool = False  # whether it had nothing to tell rows apart


@dataclass
class Profile:
    """What is known about a column."""

    name: str
    kind: str  # "number", "boolean", "date", "category", "text", or why it cannot be used
    low: float = np.inf  # smallest number
    high: float = -np.inf  # largest number
    n_missing: int = 0
    n_rows: int = 0
    categories: set[str] = field(default_factory=set)  # different texts, at most 31 of them
    is_counter: bool = True  # whether it numbers the rows one by one
    is_flag: bool = True  # whether all its numbers are 0 or 1
    mark: str | None = None  # the decimal mark; of text it is found out from the first cells
    order: str = "ymd"  # of day, month and year in dates
    is_guess: bool = False  # whether another order would do as well
    count: cells.Count = field(default_factory=cells.Count)  # how cells were read
    drawn: NDArray[np.intp] | None = None  # rows, ascending, whose numbers are kept
    kept: list[NDArray[np.float64]] = field(default_factory=list)  # these numbers

    def take_numbers(self, values: NDArray[np.float64]) -> None:
        """Learn from more values, NaN where missing."""
        present = values[~np.isnan(values)]
        self.n_missing += len(values) - len(present)
        if self.drawn is not None:
            first, last = np.searchsorted(self.drawn, [self.n_rows, self.n_rows + len(values)])
            self.kept.append(values[self.drawn[first:last] - self.n_rows])
        if present.size:
            first = self.low if self.n_rows else float(present[0])
            steps = first + self.n_rows + np.arange(len(values), dtype=np.float64)
            self.is_counter &= len(present) == len(values) and bool((values == steps).all())
            self.is_flag &= bool(((present == 0) | (present == 1)).all())
            self.low = min(self.low, float(present.min()))
            self.high = max(self.high, float(present.max()))
        else:
            self.is_counter = False
        self.n_rows += len(values)

    def takes(self, column: Column, table: Table, na: Collection[str]) -> bool:
        """Learn from more cells if they can be read as what this column holds."""
        if self.mark is None:
            text = column if isinstance(column, list) and self.kind == "number" else ()
            self.mark = cells.decimal_mark(text) or table.decimal
        if not isinstance(column, list):
            self.take_array(column, na)
            return self.kind == "number"
        how: dict[str, Any] = {"na": na, "mark": self.mark, "order": self.order}
        how["unit"] = next(iter(self.count.units), "")
        values, count = cells.read(column[:_FIRST], self.kind, **how)
        if len(column) > _FIRST and self._may_be(count):
            values, count = cells.read(column, self.kind, **how)
        self.count.add(count)
        self.take_numbers(values)
        return self._may_be(self.count)

    def _may_be(self, count: cells.Count) -> bool:
        """Tell whether cells, as far as they are counted, can be what this column holds."""
        return count.n_odd <= (0 if self.kind == "boolean" else count.n_read)

    def take_array(self, column: NDArray[np.float64], na: Collection[str]) -> None:
        """Learn from more numbers, of which some may mean missing."""
        values, count = cells.read_array(column, na)
        self.count.add(count)
        self.take_numbers(values)

    def take_texts(self, texts: list[str], na: Collection[str]) -> None:
        """Learn from more texts."""
        for text, count in Counter(texts).items():
            if cells.is_missing(text, na):
                self.n_missing += count
            elif len(self.categories) <= MOST_CATEGORIES:
                self.categories.add(text.strip())
        self.n_rows += len(texts)

    def use(self, insist: bool) -> Use:
        """Return what becomes of the column; with `insist` it is used if that is possible."""
        why, count, warning = self.unusable(insist), self.count, ""
        n_clear = count.n_read + count.n_foreign
        if self.kind not in ("category", "text"):
            warning = "" if why else unread_warning(self.name, count)
        elif n_clear >= max(5, _CLEARLY * count.present):
            warning = (
                f"{self.name!r} is {'left out' if why else 'taken as categories'}, though "
                f"{n_clear:,} of {count.present:,} cells are numbers: correct the others "
                f"({count.examples}), or name those that mean missing with --na"
            )
        plain = self.n_missing == self.n_rows or "rows" in why
        return Use(self.name, not why, "" if why else self.kind, why or self._how(), warning, plain)

    @property
    def notes(self) -> list[str]:
        """What to say of a column that was not plain to read."""
        told, units = [], self.count.units
        if not unread_warning(self.name, self.count):
            told = unread_notes(self.name, self.count)
        if 0 < units["%"] < self.count.n_read:
            told.append(
                f"{self.name!r}: {units['%']:,} of {self.count.n_read:,} numbers have a % sign; "
                "5 % is read as 5, so write all alike"
            )
        if self.is_guess:
            told.append(
                f"{self.name!r}: is the day or the month first? No day is above 12, so the day is "
                "taken to be; write dates as 2024-01-31 if that is wrong"
            )
        return told

    def _how(self) -> str:
        """Return what was done to the cells."""
        told = []
        if self.kind == "category":
            told.append(f"{len(self.categories)} different")
        if self.kind == "date" and self.order != "ymd":
            told.append(f"{'day' if self.order == 'dmy' else 'month'} first")
        n_gone = self.n_missing
        if self.kind in ("number", "date"):
            told += self.count.told
            n_gone -= self.count.n_odd
        if self.has_long_tail:
            told.append("long tail, so scaled by rank")
        return "; ".join([*told, f"{n_gone:,} missing"] if n_gone else told)

    @property
    def sample(self) -> NDArray[np.float64]:
        """The numbers that were kept, ascending."""
        values = np.concatenate([np.empty(0), *self.kept])
        return np.sort(values[~np.isnan(values)])

    @property
    def has_long_tail(self) -> bool:
        """Whether a few numbers are so far out that the others would be squeezed together."""
        sample = self.sample
        flag = self.kind == "number" and self.is_flag
        if flag or not sample.size or not np.isfinite([self.low, self.high]).all():
            return False
        low, high = np.quantile(sample, (0.05, 0.95))
        return bool(self.high - self.low > _LONG * (high - low))

    def unusable(self, insist: bool) -> str:
        """Return why the column cannot be a feature; "" if it can, or if the user insists on it."""
        if self.kind not in (*KINDS, "text"):
            return self.kind
        if self.n_missing == self.n_rows:
            return "empty: it has only missing values"
        if self.kind == "text":
            return f"text with more than {MOST_CATEGORIES} different values"
        distinct = len(self.categories)
        if self.kind == "category" and distinct == self.n_rows - self.n_missing > 2 and not insist:
            return "text that differs in every row"
        several = len(self.categories) > 1 if self.kind == "category" else self.high > self.low
        if not several and not self.n_missing:
            if self.kind == "number" and abs(self.low) >= _EXACT:
                return (
                    "numbers so large that they are the same as far as 15 digits tell; if it "
                    f"names the rows, say --id {self.name}"
                )
            return "the same in all rows"
        if self.kind == "number" and self.is_counter and self.n_rows > 2 and not insist:
            return "only numbers the rows; name it with --features to use it"
        return ""


def profile_columns(
    table: Table, names: list[str], na: Collection[str] = (), ranked: Collection[str] = ()
) -> list[Profile]:
    """Find out what columns hold: text is what it can be read as, numbers before others.

    `na` are further texts that mean missing, in lower case. Of columns that may be `ranked` some
    numbers are kept.
    """
    order = np.random.default_rng(0).permutation(table.n_rows if ranked else 0)
    some = np.sort(order[:_DRAWN])
    drawn = dict.fromkeys(ranked, some)
    profiles = [Profile(name, table.kind(name), drawn=drawn.get(name)) for name in names]
    readable = [p for p in profiles if p.kind in (*KINDS, "text")]
    readings = {
        p.name: [
            Profile(p.name, "number", drawn=p.drawn),
            Profile(p.name, "boolean"),
            *(Profile(p.name, "date", order=order, drawn=p.drawn) for order in cells.ORDERS),
        ]
        for p in readable
        if p.kind == "text"
    }
    for chunk in table.chunks([p.name for p in readable]):
        for profile, column in zip(readable, chunk):
            if profile.kind != "text":
                assert not isinstance(column, list)
                if profile.kind == "number":
                    profile.take_array(column, na)
                else:
                    profile.take_numbers(column)
                continue
            if isinstance(column, list):
                profile.take_texts(column, na)
            possible = readings[profile.name]
            readings[profile.name] = [one for one in possible if one.takes(column, table, na)]
    return [_settled(p, readings[p.name]) if p.name in readings else p for p in profiles]


def _settled(text: Profile, readings: list[Profile]) -> Profile:
    """Return the first reading that holds for the whole column; else text, or categories."""
    numbers = next((one for one in readings if one.kind == "number"), None)
    # Words that mean "no value" need a value beside them, or may be categories.
    empty = text.n_missing == text.n_rows
    sound = [one for one in readings if one.count.is_sound and (one.count.n_read or empty)]
    dates = [one for one in sound if one.kind == "date"]
    if sound and sound[0] not in dates:
        return sound[0]
    if dates:
        best = max(dates, key=lambda one: one.count.n_read)
        as_good = [one.order for one in dates if one.count.n_read == best.count.n_read]
        best.is_guess = as_good == ["dmy", "mdy"]
        return best
    if numbers:
        text.count = numbers.count
    text.kind = "category" if len(text.categories) <= MOST_CATEGORIES else "text"
    return text


def unread_notes(name: str, count: cells.Count) -> list[str]:
    """Return what to say of cells that could not be read, if there are any."""
    return [
        f"{name!r}: {count.n_odd:,} of {cells.counted(count.present, 'cell')} could not be read, "
        f"so missing ({count.examples})"
    ] * bool(count.n_odd)


def unread_warning(name: str, count: cells.Count) -> str:
    """Return a warning if many cells could not be read."""
    if count.n_odd <= _MANY * count.present:
        return ""
    return unread_notes(name, count)[0] + ": correct them, or name what means missing with --na"
