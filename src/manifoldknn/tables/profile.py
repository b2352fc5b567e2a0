"""What the columns of a table hold, found out in one or two passes of little memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.table import Table, TableError

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

    def take_texts(self, texts: list[str]) -> None:
        """Learn from more texts."""
        for text in texts:
            if cells.is_missing(text):
                self.n_missing += 1
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
    """Find out what columns hold.

    Text is first taken for numbers, which most of it is; a second pass looks only at columns that
    are something else.
    """
    profiles = [Profile(name, table.kind(name)) for name in names]
    readable = [p for p in profiles if p.kind in ("text", "number", "boolean", "date")]
    unclear = [p for p in readable if p.kind == "text"]
    for chunk in table.chunks([p.name for p in readable]):
        for profile, column in zip(readable, chunk):
            if not isinstance(column, list):
                profile.take_numbers(column)
            elif profile in unclear:
                values = cells.numbers(column)
                if values is None:
                    unclear.remove(profile)
                else:
                    profile.take_numbers(values)
    for profile in unclear:
        profile.kind = "number"
    others = [p for p in readable if p.kind == "text"]
    if others:
        _profile_texts(table, others)
    return profiles


def _profile_texts(table: Table, profiles: list[Profile]) -> None:
    """Tell booleans, dates, categories and other text apart."""
    kinds = {p.name: {"boolean", "date"} for p in profiles}
    ranges = {p.name: Profile(p.name, "date") for p in profiles}
    for profile in profiles:
        profile.n_missing = profile.n_rows = 0
    for chunk in table.chunks([p.name for p in profiles]):
        for profile, column in zip(profiles, chunk):
            assert isinstance(column, list)
            possible = kinds[profile.name]
            profile.take_texts(column)
            if "boolean" in possible and cells.booleans(column) is None:
                possible.discard("boolean")
            if "date" in possible:
                days = cells.dates(column)
                if days is None:
                    possible.discard("date")
                else:
                    ranges[profile.name].take_numbers(days)
    for profile in profiles:
        possible, found = kinds[profile.name], ranges[profile.name]
        if "boolean" in possible:
            profile.kind = "boolean"
            words = {word.lower()[0] for word in profile.categories}
            both = words & set("ty") and words & set("fn")
            profile.low, profile.high = 0.0, 1.0 if both else 0.0
        elif "date" in possible:
            profile.kind, profile.low, profile.high = "date", found.low, found.high
        elif len(profile.categories) <= MOST_CATEGORIES:
            profile.kind = "category"
