"""What the columns of a table hold, found out in one pass of little memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.table import Column, Table

__all__ = ["MOST_CATEGORIES", "Profile", "Use", "profile_columns"]

MOST_CATEGORIES = 30
KINDS = ("number", "boolean", "date", "category")  # that become features
_EXACT = 2.0**53  # whole numbers beyond are rounded
_CLEARLY = 0.8  # share of cells that makes a column one of numbers to people
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
    count: cells.NumberCells = field(default_factory=cells.NumberCells)  # of text, as numbers
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
            self.take_numbers(cells.without(column, na))
            return self.kind == "number"
        if self.kind == "number":
            values, count = cells.read_numbers(column, self.mark, na)
            self.count.add(count)
            self.take_numbers(cells.without(values, na))
            return self.count.words.total() <= self.count.n_numbers
        boolean = self.kind == "boolean"
        found = cells.booleans(column, na) if boolean else cells.dates(column, self.order, na)
        if found is not None:
            self.take_numbers(found)
        return found is not None

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
        why = self.unusable(insist)
        count, warning = self.count, ""
        clear = count.n_numbers - count.n_glued  # 12a is no clear number
        if self.kind != "number" and clear >= max(5, _CLEARLY * count.present):
            odd = (count.words + count.unread) or count.units
            listed = ", ".join(repr(text[:20]) for text, _ in odd.most_common(3))
            warning = (
                f"{self.name!r} is {'left out' if why else 'taken as categories'}, though "
                f"{count.n_numbers:,} of {count.present:,} cells are numbers: correct the others "
                f"({listed}), or name those that mean missing with --na"
            )
        plain = self.n_missing == self.n_rows or "rows" in why
        return Use(self.name, not why, "" if why else self.kind, why or self._how(), warning, plain)

    def _how(self) -> str:
        """Return what was done to the cells."""
        count, told = self.count, []
        if self.kind == "category":
            told.append(f"{len(self.categories)} different")
        if self.kind == "date" and self.order != "ymd":
            told.append(f"{'day' if self.order == 'dmy' else 'month'} first")
        if self.kind == "number":
            if count.n_bounds:
                told.append(f"{count.n_bounds:,} cells with < or >, read as the number")
            for unit, n_cells in count.units.items():
                told.append(f"{n_cells:,} cells with the unit {unit}")
            if count.n_thousands:
                told.append(f"{count.n_thousands:,} cells with marks between thousands")
            if count.unread:
                told.append(f"{count.unread.total():,} cells not read, so missing ({self.odd})")
        if self.has_long_tail:
            told.append("long tail, so scaled by rank")
        n_gone = self.n_missing - (count.unread.total() if self.kind == "number" else 0)
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

    @property
    def odd(self) -> str:
        """Some of the cells that could not be read."""
        return ", ".join(repr(text[:20]) for text, _ in self.count.unread.most_common(3))

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
                of_numbers = profile.kind == "number"
                profile.take_numbers(cells.without(column, na) if of_numbers else column)
                continue
            if isinstance(column, list):
                profile.take_texts(column, na)
            possible = readings[profile.name]
            readings[profile.name] = [one for one in possible if one.takes(column, table, na)]
    return [_settled(p, readings[p.name]) if p.name in readings else p for p in profiles]


def _settled(text: Profile, readings: list[Profile]) -> Profile:
    """Return the first reading that holds for the whole column; else text, or categories."""
    if readings and readings[0].kind == "number":
        count = text.count = readings[0].count
        # Words that mean "no number" need a number beside them, or may be categories.
        if not (count.are_numbers and (count.n_numbers or text.n_missing == text.n_rows)):
            readings = readings[1:]
    if not readings:
        text.kind = "category" if len(text.categories) <= MOST_CATEGORIES else "text"
        return text
    orders = [reading.order for reading in readings if reading.kind == "date"]
    readings[0].is_guess = readings[0].kind == "date" and orders == ["dmy", "mdy"]
    return readings[0]
