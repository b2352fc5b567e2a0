"""What the entries of a journal say together: who calls which row what, and what holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from unicodedata import bidirectional, category

from manifoldknn.labelling.journal import Entry

_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}  # categories of characters that no name has
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@dataclass(frozen=True)
class Mark:
    """What somebody says of a row."""

    kind: str  # "label", "skip" or "unsure"
    label: str  # "" unless it is a label
    who: str
    at: str


class Board:
    """Labels, classes and people, after any number of entries.

    `given` are labels that came with the file; what people say holds before them. Where people
    differ the majority holds, and nobody where there is none, until somebody settles it. That holds
    until a later label makes all who label the row agree, or until who settled it says something
    else: another label holds instead, anything else opens the row again.
    """

    def __init__(self, given: Mapping[int, str], classes: Iterable[str]) -> None:
        self.given = dict(given)
        self.classes = list(dict.fromkeys(classes))
        self.marks: dict[int, dict[str, Mark]] = {}
        self.settled: dict[int, Mark] = {}
        self.labels = dict(given)  # what holds
        self._know(sorted(set(given.values())))

    def take(self, entry: Entry) -> list[int]:
        """Follow one more entry, which is no undo or redo; return the rows that it is about."""
        body, rows = entry.body, list(entry.body.get("rows", ()))
        if entry.kind == "mark":
            mark = Mark(body["kind"], body.get("label", ""), entry.who, entry.at)
            self._know([mark.label])
            for row in rows:
                self._put(row, mark)
        elif entry.kind == "settle":
            self._know([body["label"]])
            mark = Mark("label", body["label"], entry.who, entry.at)
            self.settled.update(dict.fromkeys(rows, mark))
        elif entry.kind == "import":
            marks = [(row, Mark(*values)) for row, *values in body["marks"]]
            self._know([mark.label for _, mark in marks])
            for row, mark in marks:
                self._put(row, mark)
            rows = [row for row, _ in marks]
        elif entry.kind == "add":
            self._know([body["name"]])
        elif entry.kind == "rename":
            rows = self._rename(body["old"], body["new"])
        for row in rows:
            self._hold(row)
        return rows

    def _know(self, names: Iterable[str]) -> None:
        self.classes += [name for name in dict.fromkeys(names) if name and name not in self.classes]

    def _put(self, row: int, mark: Mark) -> None:
        of_row = self.marks.setdefault(row, {})
        of_row.pop(mark.who, None)
        if mark.kind != "none":
            of_row[mark.who] = mark
        if row not in self.settled:
            return
        said = list(self.said(row).values())
        if mark.who == self.settled[row].who:
            del self.settled[row]
            if mark.kind == "label":
                self.settled[row] = mark
        elif mark.kind == "label" and len(said) > 1 and len(set(said)) == 1:
            del self.settled[row]

    def _rename(self, old: str, new: str) -> list[int]:
        """Give a class another name, perhaps that of another class."""
        names = [new if name == old else name for name in self.classes]
        self.classes = list(dict.fromkeys(names))
        rows = {row for row, label in self.given.items() if label == old}
        self.given.update(dict.fromkeys(rows, new))
        for row, of_row in self.marks.items():
            for who, mark in of_row.items():
                if mark.label == old:
                    of_row[who] = Mark(mark.kind, new, mark.who, mark.at)
                    rows.add(row)
        for row, mark in self.settled.items():
            if mark.label == old:
                self.settled[row] = Mark(mark.kind, new, mark.who, mark.at)
                rows.add(row)
        return sorted(rows)

    def _hold(self, row: int) -> None:
        counts = Counter(self.said(row).values()).most_common(2)
        if row in self.settled:
            self.labels[row] = self.settled[row].label
        elif len(counts) == 1 or (len(counts) == 2 and counts[0][1] > counts[1][1]):
            self.labels[row] = counts[0][0]
        elif not counts and row in self.given:
            self.labels[row] = self.given[row]
        else:
            self.labels.pop(row, None)

    def said(self, row: int) -> dict[str, str]:
        """Return the labels that people gave a row."""
        of_row = self.marks.get(row, {})
        return {who: mark.label for who, mark in of_row.items() if mark.kind == "label"}

    def conflicts(self) -> list[int]:
        """Return rows that people call differently and nobody has settled, ascending."""
        return sorted(
            row
            for row in self.marks
            if row not in self.settled and len(set(self.said(row).values())) > 1
        )

    def passed(self, who: str) -> dict[int, str]:
        """Return the rows without a label that somebody skipped or is unsure of, and which."""
        return {
            row: of_row[who].kind
            for row, of_row in self.marks.items()
            if row not in self.labels and who in of_row and of_row[who].kind != "label"
        }

    def agreement(self) -> list[dict[str, Any]]:
        """Return for any two people how many rows both labelled, how many alike, and Cohen's κ.

        κ is 0 for two that agree by chance and 1 for two that always do; None where both use one
        class only.
        """
        both: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for row in self.marks:
            for (a, of_a), (b, of_b) in combinations(sorted(self.said(row).items()), 2):
                both[a, b].append((of_a, of_b))
        told = []
        for (a, b), pairs in sorted(both.items()):
            n, alike = len(pairs), sum(x == y for x, y in pairs)
            first, second = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
            chance = sum(first[name] * second[name] for name in first) / n**2
            kappa = None if chance == 1 else (alike / n - chance) / (1 - chance)
            told.append({"people": [a, b], "rows": n, "alike": alike, "kappa": kappa})
        return told

    def wants(self, row: int, who: str, overlap: float) -> bool:
        """Tell whether a row should be shown to somebody who labels.

        A share of rows, the `overlap`, gets labels of two people.
        """
        of_row = self.marks.get(row, {})
        if who in of_row or row in self.given or row in self.settled:
            return False
        shared = (row * 2654435761) % 2**32 < overlap * 2**32
        return len(self.said(row)) < (2 if shared else 1)

    def blind(self, row: int, who: str, overlap: float) -> bool:
        """Tell whether somebody should label a row without knowing what others called it."""
        return overlap > 0 and bool(self.said(row)) and self.wants(row, who, overlap)


def plain_name(text: object) -> str:
    r"""Return a name of a class or a person with plain blanks, "" if it is none.

    Marks that join letters are part of names; those that turn the direction of writing are not.

    >>> plain_name(" a\xa0b"), plain_name("می\u200cخواهم"), plain_name("a\tb"), plain_name("\u200c")
    ('a b', 'می\u200cخواهم', '', '')
    """
    if not isinstance(text, str):
        return ""
    name = "".join(" " if category(letter) == "Zs" else letter for letter in text).strip()
    kinds = {category(letter) for letter in name}
    turns = {bidirectional(letter) for letter in name} & _TURNS
    return "" if turns or kinds & _CONTROLS or not kinds - {"Cf"} else name
