"""Columns of a table as numbers between 0 and 1, by a step that can be written down.

- Numbers and dates are shifted and scaled to [0, 1] by the smallest and largest
  value; columns that were one matrix share both, so that its geometry stays.
- Those with a long tail, a range of more than eight times the distance between their 5 %
  and 95 % quantiles, become ranks: the share of rows with less, and half of those with as much.
  Else a few values far out would make all others look the same.
- Booleans are 0 and 0.25, and so are numbers of which all are 0 or 1, if scaled.
- Categories, up to 30 of them, become one column each, 0 or 0.25/√2: two different
  categories are then 0.25 apart, a quarter of the range of a number.
- A missing value becomes the median, and a column of its own (0 or 0.25) says that
  it was.
- A category that was never seen is a whole range away from every fitted row, in a direction in
  which fitted rows do not differ. Nearest rows and their combination stay, and so does the answer;
  its confidence does not (see `manifoldknn.extend.belonging`).

Why a quarter: neighbours differ by a small part of the range in each number. A whole
range between two categories would be a wall that no walk crosses, and the graph would
fall into as many islands as there are combinations of categories.

All that was learned is a few numbers and words per column: JSON holds it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.tables import cells
from manifoldknn.tables.profile import (
    KINDS,
    Profile,
    Use,
    profile_columns,
    unread_notes,
    unread_warning,
)
from manifoldknn.tables.table import Column, Table, TableError

_MARKS = ("", ".", ",")
_STEP = 0.25
_MOST_KNOTS = 256  # of ranks; between them they are interpolated
_ONE_HOT = _STEP * float(np.sqrt(0.5))
_UNSEEN = 1.0  # the distance between a new category and every known one
_SOME = 10  # cells that cannot be read, and none that can: the column holds something else


@dataclass
class Plan:
    """How one column becomes features."""

    name: str
    kind: str  # "number", "boolean", "date" or "category"
    low: float = 0.0  # becomes 0
    high: float = 1.0  # becomes 1
    fill: float = 0.0  # what a missing value becomes, after scaling
    flag: bool = False  # whether a feature says that the value was missing
    categories: list[str] = field(default_factory=list)  # sorted
    mark: str = ""  # the decimal mark of numbers that are text; "": either
    unit: str = ""  # the only one that may follow a number
    order: str = "ymd"  # of day, month and year in dates
    knots: list[float] = field(default_factory=list)  # values of some ranks, ascending, if ranked
    ranks: list[float] = field(default_factory=list)  # what these become

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        if self.kind == "category":
            names = [f"{self.name}={category}" for category in self.categories]
        else:
            names = [self.name]
        return [*names, f"{self.name} is missing"] if self.flag else names

    def scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers by range or by rank; those outside go on beyond the ends, by range."""
        span = self.high - self.low
        by_range = (values - self.low) / (span if span > 0 else 1.0)
        if not self.knots:
            return by_range
        ranked = np.interp(values, self.knots, self.ranks)
        return ranked + np.minimum(by_range, 0.0) + np.maximum(by_range - 1.0, 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """What the smallest and the largest fitted value become, if scaled."""
        if self.knots:
            return self.ranks[0], self.ranks[-1]
        return 0.0, min(self.high - self.low, 1.0) and 1.0  # the same in all rows: only 0


@dataclass
class FeatureStep:
    """How a table becomes a matrix."""

    plans: list[Plan]  # one per column used
    scale: bool  # whether numbers and dates are scaled to [0, 1]
    na: list[str] = field(default_factory=list)  # further texts that mean missing, in lower case
    decimal: str = ""  # the decimal mark of the table that was learned from
    uses: list[Use] = field(default_factory=list)  # what became of every column
    notes: list[str] = field(default_factory=list)  # what the user should know

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """Columns that are not used, and why."""
        return [(use.name, use.how) for use in self.uses if not use.used]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [name for plan in self.plans for name in plan.features]

    @classmethod
    def fit(
        cls,
        table: Table,
        names: list[str],
        *,
        scale: bool = True,
        insist: bool = False,
        na: Sequence[str] = (),
    ) -> tuple[FeatureStep, NDArray[Any]]:
        """Learn how some columns become features, and make them: float32 if scaled, else float64.

        With `insist`, which means that the user named these columns, none may be left out. `na` are
        further texts that mean missing. TableError if nothing is left.
        """
        gone = sorted({text.strip().lower() for text in na})
        alone = [name for name in names if name not in table.together]
        profiles = profile_columns(table, names, gone, ranked=alone if scale else ())
        uses = [profile.use(insist) for profile in profiles]
        plans = [_planned(profile) for profile, use in zip(profiles, uses) if use.used]
        notes = [note for profile, use in zip(profiles, uses) if use.used for note in profile.notes]
        step = cls(plans, scale, gone, table.decimal, uses, notes)
        if insist and step.left_out:
            name, reason = step.left_out[0]
            raise TableError(f"column {name!r} cannot be a feature ({reason}): leave it out")
        if not plans:
            some = "; ".join(use.warning or f"{use.name}: {use.how}" for use in uses[:3])
            raise TableError(
                f"no column is left to tell rows apart ({some or 'no other columns'}): texts and "
                "pictures need embeddings as columns"
            )
        joint = [plan for plan in plans if plan.name in set(table.together)]
        if joint:
            of_joint = [p for p in profiles if p.name in {plan.name for plan in joint}]
            low, high = min(p.low for p in of_joint), max(p.high for p in of_joint)
            for plan in joint:
                plan.low, plan.high = low, high
        X = step.matrix(table)
        step.notes += step.notes_of_empty_rows(X)
        step.learn_fill(X)
        return step, X

    def transform(self, table: Table) -> tuple[NDArray[Any], list[Use], list[str]]:
        """Make the features of another table that has these columns; tell how they were read.

        Cells that cannot be read count as missing. The notes tell of them, and of values that are
        missing or were never seen before.
        """
        wanted = [plan.name for plan in self.plans]
        absent = [name for name in wanted if name not in table.names]
        if absent:
            near = difflib.get_close_matches(absent[0], table.names, 1, 0.6)
            hint = f" (is it {near[0]!r}?)" if near else ""
            raise TableError(
                f"the model was fitted with {len(absent)} column(s) that are missing here: "
                f"{', '.join(map(repr, absent[:5]))}{hint}; add or rename them"
            )
        notes = [note for plan in self.plans for note in _check_kind(plan, table.kind(plan.name))]
        counts = {plan.name: cells.Count() for plan in self.plans}
        X, uses = self.matrix(table, counts), []
        for plan, block in self._blocks(X):
            count = counts[plan.name]
            if count.n_odd >= _SOME and not count.n_read:
                unit = f" with the unit {plan.unit}" if plan.unit else ""
                raise TableError(
                    f"column {plan.name!r} must hold {_PLURALS[plan.kind]}{unit}, as when the "
                    f"model was fitted, and no cell does ({count.examples}): correct it"
                )
            uses.append(_use(plan, block, count))
            if not uses[-1].warning:
                notes += unread_notes(plan.name, count)
            notes += _filled(block, plan, count.n_odd)
        return X, uses, notes

    def outside(self, X: NDArray[Any]) -> dict[str, int]:
        """Count, by column of numbers or dates, the values outside the range of the fitted rows."""
        counts = {}
        for plan, block in self._blocks(X):
            if plan.kind in ("number", "date"):
                low, high = plan.ends if self.scale else (plan.low, plan.high)
                n_outside = int(((block[:, 0] < low) | (block[:, 0] > high)).sum())
                if n_outside:
                    counts[plan.name] = n_outside
        return counts

    def _blocks(self, X: NDArray[Any]) -> Iterator[tuple[Plan, NDArray[Any]]]:
        """Yield every plan with a view of its features."""
        at = 0
        for plan in self.plans:
            width = len(plan.features)
            yield plan, X[:, at : at + width]
            at += width

    def matrix(self, table: Table, counts: dict[str, cells.Count] | None = None) -> NDArray[Any]:
        """Make the features, NaN where a number is missing; add to `counts` how cells were read."""
        X = np.zeros((table.n_rows, len(self.features)), np.float32 if self.scale else np.float64)
        start = 0
        marks = {plan.name: self._mark(plan, table) for plan in self.plans}
        # Cells that are no numbers here, but might be elsewhere, are wanted as they are written.
        as_text = [
            p.name for p in self.plans if p.kind != "number" or marks[p.name] != table.decimal
        ]
        for chunk in table.chunks([plan.name for plan in self.plans], as_text):
            stop = start + len(chunk[0])
            for (plan, block), column in zip(self._blocks(X[start:stop]), chunk):
                if plan.kind == "category":
                    _put_categories(block, plan, column, self.na)
                    continue
                values, count = _parsed(plan, column, marks[plan.name], self.na)
                self._put(block, plan, values)
                if counts is not None:
                    counts[plan.name].add(count)
            start = stop
        return X

    def _mark(self, plan: Plan, table: Table) -> str:
        """Return the decimal mark of a column: as it was learned, unless this file has another."""
        return plan.mark if table.decimal in ("", self.decimal) else table.decimal

    def _put(self, out: NDArray[Any], plan: Plan, values: NDArray[np.float64]) -> None:
        if plan.flag:
            out[:, 1] = _STEP * np.isnan(values)
        if plan.kind == "boolean":
            values = _STEP * values
        elif self.scale:
            values = plan.scaled(values)
        out[:, 0] = values

    def notes_of_empty_rows(self, X: NDArray[Any]) -> list[str]:
        """Say how many rows have nothing in any column, before medians take its place."""
        empty = np.ones(len(X), dtype=bool)
        for plan, block in self._blocks(X):
            number = plan.kind != "category"
            empty &= np.isnan(block[:, 0]) if number else ~block.any(axis=1)
        told = f"{empty.sum()} row(s) have no value in any column used: their answers are guesses"
        return [told] if empty.any() and len(self.plans) > 1 else []  # of one, the column tells

    def learn_fill(self, X: NDArray[Any]) -> None:
        """Learn the medians, and put them in place of what is missing."""
        for plan, block in self._blocks(X):
            if plan.kind != "category":
                column = block[:, 0]
                gone = np.isnan(column)
                plan.fill = float(np.median(column[~gone]))
                column[gone] = plan.fill

    def to_plain(self) -> dict[str, Any]:
        """Return the step as data that JSON can hold."""
        plans = [asdict(plan) for plan in self.plans]
        return {"scale": self.scale, "na": self.na, "decimal": self.decimal, "plans": plans}

    @classmethod
    def from_plain(cls, plain: Any) -> FeatureStep:
        """Return the step that `to_plain` wrote down; ValueError if it is none."""
        try:
            plans = [Plan(**plan) for plan in plain["plans"]]
            if not plans or not all(map(_is_sound, plans)) or type(plain["scale"]) is not bool:
                raise ValueError
            if len({plan.name for plan in plans}) < len(plans):
                raise ValueError
            na, decimal = plain.get("na", []), plain.get("decimal", "")  # not in older files
            if decimal not in _MARKS or type(na) is not list or {*map(type, na)} - {str}:
                raise ValueError
        except (TypeError, KeyError, ValueError, OverflowError):
            raise ValueError("no description of features") from None
        return cls(plans, plain["scale"], na, decimal)


def _is_sound(plan: Plan) -> bool:
    """Tell whether everything in a plan read from a file is of its type and makes sense."""
    numbers = plan.low, plan.high, plan.fill
    return (
        type(plan.categories) is list
        and all(isinstance(text, str) for text in (plan.name, plan.unit, *plan.categories))
        and plan.mark in _MARKS
        and plan.order in cells.ORDERS
        and type(plan.flag) is bool
        and all(type(x) in (int, float) and np.isfinite(float(x)) for x in numbers)
        and len(set(plan.categories)) == len(plan.categories)
        and plan.low <= plan.high
        and _is_ascending(plan.knots)
        and _is_ascending(plan.ranks)
        and len(plan.knots) == len(plan.ranks)
        and plan.kind in KINDS
        and bool(plan.categories) == (plan.kind == "category")
    )


def _is_ascending(numbers: Any) -> bool:
    """Tell whether something read from a file is a list of finite numbers, each above the last."""
    finite = type(numbers) is list and all(type(x) in (int, float) for x in numbers)
    return finite and bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).all())


def _use(plan: Plan, block: NDArray[Any], count: cells.Count) -> Use:
    """Return how a column was read, before what is missing is filled in."""
    gone = block[:, -1] > 0 if plan.flag else np.isnan(block[:, 0])
    n_gone = int(gone.sum()) - count.n_odd
    how = "; ".join([*count.told, f"{n_gone:,} missing"] if n_gone else count.told)
    return Use(plan.name, True, plan.kind, how, unread_warning(plan.name, count))


def _filled(block: NDArray[Any], plan: Plan, n_odd: int) -> list[str]:
    """Fill missing numbers and new categories in place; return what to tell."""
    gone = np.isnan(block[:, 0])
    block[gone, 0] = 0.0 if plan.kind == "category" else plan.fill
    told, n_gone = [], int(gone.sum()) - n_odd
    if n_gone > 0 and not plan.flag:
        told = [f"{plan.name!r}: {cells.counted(n_gone, 'value')} missing, and none was before"]
    new = (block == 0).all(axis=1) & ~gone & (plan.kind == "category")
    if unknown := int(new.sum()):
        block[new] = _unseen(plan)
        known = ", ".join(map(repr, plan.categories[:5]))
        known += " ..." if len(plan.categories) > 5 else ""
        told.append(
            f"{plan.name!r}: {unknown} of {len(block)} rows hold a new category (the model knows "
            f"{known})"
        )
    return told


def _unseen(plan: Plan) -> NDArray[np.float64]:
    """Return the features of a category that is none of the known ones.

    With all rows of the fit they have one scalar product, and one distance to those whose value is
    known.

    >>> unseen = _unseen(Plan("site", "category", flag=True, categories=["A", "B"]))
    >>> fitted = np.array([[_ONE_HOT, 0, 0], [0, _ONE_HOT, 0], [0, 0, _STEP]])
    >>> (fitted @ unseen).round(6), np.linalg.norm(fitted - unseen, axis=1).round(2)
    (array([-0.09825, -0.09825, -0.09825]), array([1.  , 1.  , 1.02]))
    """
    along = np.append(np.ones(len(plan.categories)), [_ONE_HOT / _STEP] * plan.flag)
    length = along @ along
    return along * (_ONE_HOT - np.sqrt(_ONE_HOT**2 + length * (_UNSEEN**2 - _ONE_HOT**2))) / length


def _check_kind(plan: Plan, found: str) -> list[str]:
    """Compare what a typed column holds with what the model was fitted on.

    Text is fine for now: each cell is read as what it must be. Numbers may name categories;
    that is told.
    """
    if found in ("text", plan.kind):
        return []
    if plan.kind == "category" and found == "number":
        known = ", ".join(map(repr, plan.categories[:5]))
        return [f"{plan.name!r}: the model expects a category such as {known}, and found numbers"]
    seen = _PLURALS.get(found, found.removeprefix("holds "))
    raise TableError(
        f"column {plan.name!r} must hold {_PLURALS[plan.kind]}, as when the model was fitted, and "
        f"holds {seen}: correct its type"
    )


_PLURALS = {
    "number": "numbers", "boolean": "booleans", "date": "dates", "category": "categories",
}  # fmt: skip


def _planned(profile: Profile) -> Plan:
    plan = Plan(profile.name, profile.kind, flag=profile.n_missing > 0, order=profile.order)
    if profile.kind == "category":
        plan.categories = sorted(profile.categories)
    elif profile.kind != "boolean":
        plan.low, plan.high = profile.low, profile.high
        plan.mark, plan.unit = profile.mark or "", next(iter(profile.count.units), "")
        if profile.kind == "number" and profile.is_flag and profile.high > profile.low:
            plan.high = 1 / _STEP  # yes and no in other words
        if profile.has_long_tail:
            plan.knots, plan.ranks = _ranks(profile)
    return plan


def _ranks(profile: Profile) -> tuple[list[float], list[float]]:
    """Return some values, the smallest and the largest among them, and their ranks from 0 to 1."""
    sample = profile.sample
    values, counts = np.unique(sample, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(sample)
    some = np.unique(np.searchsorted(ranks[:-1], np.linspace(0, 1, _MOST_KNOTS)))
    knots, levels = values[some].tolist(), ranks[some].tolist()
    if profile.low < knots[0]:  # it was not drawn
        knots, levels = [profile.low, *knots], [0.0, *levels]
    if profile.high > knots[-1]:
        knots, levels = [*knots, profile.high], [*levels, 1.0]
    return knots, levels


def _put_categories(out: NDArray[Any], plan: Plan, column: Column, na: list[str]) -> None:
    place = {category: i for i, category in enumerate(plan.categories)}
    for row, cell in enumerate(column):
        text = cell.strip() if isinstance(cell, str) else f"{cell:.17g}"
        at = place.get(text)
        if at is not None:
            out[row, at] = _ONE_HOT
        elif cells.is_missing(text, na):
            # Without a feature for it, which `fit` sees to, a mark that `transform` takes away.
            out[row, -1 if plan.flag else 0] = _STEP if plan.flag else np.nan


def _parsed(
    plan: Plan, column: Column, mark: str, na: list[str]
) -> tuple[NDArray[np.float64], cells.Count]:
    """Return the values of a column that is no category, and how they were read."""
    if isinstance(column, list):
        return cells.read(column, plan.kind, na=na, mark=mark, unit=plan.unit, order=plan.order)
    return cells.read_array(column, na if plan.kind == "number" else ())
