"""What became of the columns of a table, told to people: what is used, how, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manifoldknn.tables.cells import counted
from manifoldknn.tables.profile import Use
from manifoldknn.tables.table import Table, said_name

__all__ = ["alarms", "every_use", "grouped", "left_out_notes", "manner_notes", "manner_text"]

_MOST_ROWS = 40  # of the table of columns; more are put together
_NAMED = 3  # columns that are named of many


def every_use(table: Table, uses: Sequence[Use], special: Mapping[str | None, str]) -> list[Use]:
    """Return what became of all columns, in the order of the file.

    `special` tells what label and id are; other columns that are not among `uses` were not wanted.
    """
    known = {use.name: use for use in uses}
    known |= {name: Use(name, True, what, "") for name, what in special.items() if name is not None}
    not_wanted = {
        name: "the index of a frame" if name in table.index_names else "not wanted"
        for name in table.names
    }
    return [known.get(name) or Use(name, False, "", not_wanted[name]) for name in table.names]


def grouped(uses: Sequence[Use]) -> list[list[str]]:
    """Return rows of a table of columns: name, what it is used as, and how, or why not.

    Examples
    --------
    >>> from manifoldknn.tables.profile import Use
    >>> from manifoldknn.tables.column_uses import grouped
    >>> grouped([Use("a", True, "number", "2 missing"), Use("b", False, "", "empty")])
    [['a', 'number', '2 missing'], ['b', 'left out', 'empty']]
    """
    rows: dict[Any, list[str]] = {}
    for place, use in enumerate(uses):
        alike = (use.used, use.kind, use.how) if len(uses) > _MOST_ROWS else place
        rows.setdefault(alike, []).append(use.name)
    found = {names[0]: names for names in rows.values()}
    return [
        [_several(found[use.name]), use.kind if use.used else "left out", use.how]
        for use in uses
        if use.name in found
    ]


def _several(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = [name.strip() or "(no name)" for name in (names[:_NAMED] if more > 1 else names)]
    return ", ".join(shown) + (f" and {more} more" if more > 1 else "")


def alarms(uses: Sequence[Use]) -> list[str]:
    """Return warnings: columns of numbers that are not used as such, or hardly any column used."""
    told = [use.warning for use in uses if use.warning]
    lost = [use for use in uses if not (use.used or use.plain or use.how == "not wanted")]
    n_used = sum(use.used and use.kind not in ("label", "id") for use in uses)
    if len(lost) > max(n_used, 1):
        told.append(
            f"only {counted(n_used, 'column')} used, and {len(lost)} left out "
            f"({_several([use.name for use in lost])}): look whether they should be"
        )
    return told


def left_out_notes(left_out: Sequence[tuple[str, str]]) -> list[str]:
    """Return what to say of columns that are not used, in one line for many of one reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in left_out:
        by_reason.setdefault(why, []).append(name)
    notes = []
    for why, names in by_reason.items():
        if len(names) > _NAMED + 1:
            notes.append(f"left out {len(names)} columns ({_several(names)}): {why}")
        else:
            notes += [f"left out {said_name(name)}: {why}" for name in names]
    return notes


def manner_notes(table: Table) -> list[str]:
    """Return what to say of an encoding that was found out, or of sheets that are not read."""
    manner, told = table.manner, []
    encoding = manner.get("encoding", "UTF-8")
    if encoding != "UTF-8":
        told = [
            f"the file is read and written as {encoding}; if letters look wrong, say --encoding"
        ]
    if "lines_above_header" in manner:
        told += [
            f"{manner['lines_above_header']} line(s) above the header were passed over, and stay "
            "as they are"
        ]
    if "other_sheets" in manner:
        told += [f"only the sheet {manner['sheet']!r} is read, not {manner['other_sheets']}"]
    return told


def manner_text(manner: Mapping[str, str]) -> str:
    """Return how a file is written, in words.

    Examples
    --------
    >>> from manifoldknn.tables.column_uses import manner_text
    >>> manner_text({"encoding": "UTF-8", "delimiter": ";", "decimal_mark": ","})
    "UTF-8, ';' between cells, decimal commas"
    """
    if "sheet" in manner:
        return f"sheet {manner['sheet']!r}"
    mark = "tabs" if manner["delimiter"] == "\t" else repr(manner["delimiter"])
    told = [manner["encoding"], f"{mark} between cells"]
    told += ["decimal commas"] if manner.get("decimal_mark") == "," else []
    return ", ".join([*told, manner["compression"]] if "compression" in manner else told)
