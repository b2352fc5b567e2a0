"""What the columns of a table hold, found out in one pass of little memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.table import Column, Table, TableError

MOST_CATEGORIES = 30
_EXACT = 2.0**53  # whole numbers beyond are rounded


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

    def take_numbers(self, values: NDArray[np.float64]) -> None:
        """Learn from more values, NaN where missing."""
        present = values[~np.isnan(values)]
        self.n_missing += len(values) - len(present)
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

    def takes(self, column: Column) -> bool:
        """Learn from more cells if all of them can be read as what this column holds."""
        if isinstance(column, list):
            values = cells.READERS[self.kind](column)
        else:
            values = column if self.kind == "number" else None
        if values is not None:
            self.take_numbers(values)
        return values is not None

    def take_texts(self, texts: list[str]) -> None:
        """Learn from more texts."""
        for text, count in Counter(texts).items():
            if cells.is_missing(text):
                self.n_missing += count
            elif len(self.categories) <= MOST_CATEGORIES:
                self.categories.add(text.strip())
        self.n_rows += len(texts)

    def unusable(self, insist: bool) -> str:
        """Return why the column cannot be a feature; "" if it can, or if the user insists on it.

        TableError if it has only missing values, which somebody should know about.
        """
        if self.kind not in ("number", "boolean", "date", "category", "text"):
            return self.kind
        if self.n_rows and self.n_missing == self.n_rows:
            raise TableError(
                f"column {self.name!r} has only missing values: fill it in, or leave it out with "
                f"--drop {self.name}"
            )
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


def profile_columns(table: Table, names: list[str]) -> list[Profile]:
    """Find out what columns hold: text is what all of it can be read as, numbers before others."""
    profiles = [Profile(name, table.kind(name)) for name in names]
    readable = [p for p in profiles if p.kind in ("text", *cells.READERS)]
    readings = {
        p.name: [Profile(p.name, k) for k in cells.READERS] for p in readable if p.kind == "text"
    }
    for chunk in table.chunks([p.name for p in readable]):
        for profile, column in zip(readable, chunk):
            if profile.kind != "text":
                assert not isinstance(column, list)
                profile.take_numbers(column)
                continue
            if isinstance(column, list):
                profile.take_texts(column)
            possible = readings[profile.name]
            readings[profile.name] = [reading for reading in possible if reading.takes(column)]
    for profile in readable:
        if profile.kind == "text" and len(profile.categories) <= MOST_CATEGORIES:
            profile.kind = "category"
    return [next(iter(readings.get(p.name, ())), p) for p in profiles]
