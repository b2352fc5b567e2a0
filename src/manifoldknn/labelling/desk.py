"""The desk at which people label: every question of the page, and its answer.

Questions and answers are what JSON holds, so the page may be in a browser or in a notebook.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import chain, islice
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.render import COLORS, SHAPES
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.labelling.board import Board, plain_name
from manifoldknn.labelling.exchange import imported, records, written
from manifoldknn.labelling.journal import Entry, Journal
from manifoldknn.labelling.learner import Answers, Learner, little_changes
from manifoldknn.labelling.rows import Rows

_AHEAD = 1  # rows whose numbers are sent beside the next ones
_RESERVED = 60.0  # seconds that a row is kept for who sees it
_NEAREST = 3
_NAMED = 5  # items that were lost
_LONGEST_NAME = 200
_FULL = 0xFFFF


class Desk:
    """Rows, journal and learner together."""

    def __init__(
        self,
        rows: Rows,
        journal: Journal,
        estimator: ManifoldKNNClassifier,
        *,
        classes: list[str] | None = None,
        overlap: float = 0.0,
    ) -> None:
        self.rows, self._journal, self._overlap = rows, journal, overlap
        self._first_classes = classes or []
        self._lock = RLock()
        self._seen: dict[str, tuple[int, float]] = {}  # the row of everybody, and since when
        self._rebuild()
        self._learner = Learner(rows.X, estimator, self.labels, journal.keep_queue, journal.queue())
        self._calls: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "start": self._start, "next": self._next, "row": self._row, "mark": self._mark,
            "undo": self._undo, "redo": self._undo, "classes": self._classes,
            "settle": self._settle, "progress": self._progress, "map": self._map,
            "answers": self._answers, "search": self._search, "review": self._review,
            "image": self._image, "import": self._import,
        }  # fmt: skip

    def open(self) -> None:
        """Let the learner begin."""
        self._learner.start()

    def close(self) -> None:
        """Let the learner end, and close the journal."""
        self._learner.stop()
        self._journal.close()

    def call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a question; LookupError if there is no such, ValueError if it makes no sense."""
        return self._calls[name](request | {"call": name})

    def labels(self) -> tuple[int, dict[int, str], list[int]]:
        """Return the number of the last entry, the labels that hold, and other rows seen."""
        with self._lock:
            labels = dict(self._board.labels)
            seen = [row for row, of_row in self._board.marks.items() if of_row]
            return len(self._journal.entries), labels, [row for row in seen if row not in labels]

    def export(self, form: str) -> bytes:
        """Return all labels as a file."""
        with self._lock:
            found = list(records(self.rows.ids, self._board, self._answers_now()))
        return written(found, form)

    def column(self, *, guessed: bool) -> list[str | None]:
        """Return a label for every row, None without one; if `guessed`, also those of the model."""
        with self._lock:
            labels, answers = self._board.labels, self._answers_now()
            column = [labels.get(row) for row in range(len(self.rows))]
        if guessed and answers is not None:
            names = [*answers.classes, None]
            column = [said or names[code] for said, code in zip(column, answers.codes)]
        return column

    # What people do.

    def _mark(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request.get("kind", "label")
        if kind not in ("label", "skip", "unsure", "none"):
            raise ValueError(f"there is no mark {kind!r}")
        body: dict[str, Any] = {"kind": kind, "rows": self._named_rows(request)}
        if kind == "label":
            body["label"] = self._class(request, "label")
            if request.get("known") and body["label"] not in self._board.classes:
                raise ValueError(f"there is no class {body['label']!r} any more")
        self._add(request, "mark", body)
        return self._next(request)

    def _settle(self, request: dict[str, Any]) -> dict[str, Any]:
        label = self._class(request, "label")
        self._add(request, "settle", {"rows": self._named_rows(request), "label": label})
        return self._review(request)

    def _classes(self, request: dict[str, Any]) -> dict[str, Any]:
        if "old" in request:
            old, new = self._class(request, "old"), self._class(request, "new")
            if old not in self._board.classes:
                raise ValueError(f"there is no class {old!r}")
            self._add(request, "rename", {"old": old, "new": new})
        else:
            self._add(request, "add", {"name": self._class(request, "name")})
        return self._progress(request)

    def _import(self, request: dict[str, Any]) -> dict[str, Any]:
        content = base64.b64decode(str(request.get("data", "")))
        marks, lost = imported(content, self.rows.ids, _name(request.get("who"), "who"))
        if marks:
            listed = [[row, mark.kind, mark.label, mark.who, mark.at] for row, mark in marks]
            self._add(request, "import", {"marks": listed})
        some = lost[:_NAMED]
        return self._progress(request) | {"imported": len(marks), "lost": len(lost), "some": some}

    def _undo(self, request: dict[str, Any]) -> dict[str, Any]:
        who, kind = _name(request.get("who"), "who"), request["call"]
        with self._lock:
            entry = self._journal.history.last(who, kind)
            if entry is None:
                return self._next(request) | {"nothing": True}
            self._journal.add(who, kind, {"of": entry.number})
            self._rebuild()
        self._learner.tell()
        rows = entry.body.get("rows", [])
        shown = {"shown": self._row({"row": rows[0], "who": who})} if len(rows) == 1 else {}
        return self._next(request) | shown | {"about": entry.kind, "n_rows": len(rows)}

    def _add(self, request: dict[str, Any], kind: str, body: dict[str, Any]) -> Entry:
        """Write an entry, and only then believe it."""
        with self._lock:
            entry = self._journal.add(_name(request.get("who"), "who"), kind, body)
            self._board.take(entry)
        self._learner.tell()
        return entry

    def _class(self, request: dict[str, Any], what: str) -> str:
        """Return a class as it is written already, or the name of a new one."""
        text = request.get(what)
        return str(text) if text in self._board.classes else _name(text, what)

    def _rebuild(self) -> None:
        self._board = Board(self.rows.given, self._first_classes)
        for entry in self._journal.history.standing():
            self._board.take(entry)

    # What people see.

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "file": self.rows.name,
            "n_rows": len(self.rows),
            "pixels": self.rows.pixels and self.rows.pixels.about(),
            "colors": COLORS,
            "shapes": SHAPES,
        } | self._progress(request)

    def _next(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the rows that somebody should see next, and how things stand."""
        who = _name(request.get("who"), "who")
        wanted = request.get("n", 1)
        if type(wanted) is not int or wanted < 1:
            raise ValueError("n must be a whole number, at least 1")
        with self._lock:
            board, queue = self._board, self._learner.news.queue
            reasons = dict(zip(queue["rows"], queue["why"]))
            again = (row for row in board.marks if board.blind(row, who, self._overlap))
            first = dict.fromkeys(chain(again, reasons))
            rest = (row for row in range(len(self.rows)) if row not in first)
            every, busy = chain(first, rest), self._others_see(who)
            free = (r for r in every if r not in busy and board.wants(r, who, self._overlap))
            found = list(islice(free, wanted + _AHEAD))
            self._seen[who] = (found[0] if found else -1, time.monotonic())
            rows = [self._shown(row, who, reasons.get(row)) for row in found[:wanted]]
        return {"rows": rows, "ahead": found[wanted:], "progress": self._progress(request)}

    def _others_see(self, who: str) -> set[int]:
        """Return the rows that others look at, of which everybody gets one of their own."""
        late = time.monotonic() - _RESERVED
        seen = self._seen.items()
        return {row for one, (row, at) in seen if one != who and at > late and not self._overlap}

    def _row(self, request: dict[str, Any]) -> dict[str, Any]:
        row = self._named_rows({"rows": [request.get("row")]})[0]
        with self._lock:
            queue = self._learner.news.queue
            why = dict(zip(queue["rows"], queue["why"])).get(row)
            return self._shown(row, str(request.get("who", "")), why)

    def _shown(self, row: int, who: str, why: str | None) -> dict[str, Any]:
        marks = self._board.marks.get(row, {})
        blind = self._board.blind(row, who, self._overlap)
        return self.rows.shown(row) | {
            "why": None if blind else why,
            "guess": [] if blind else self._guess(row),
            "near": self._near(row, who),
            "mine": asdict(marks[who]) if who in marks else None,
            "label": None if blind else self._board.labels.get(row),
            "marks": [] if blind else [asdict(mark) for mark in marks.values()],
        }

    def _answers_now(self) -> Answers | None:
        """Return the newest answers, by the names that classes have now."""
        answers = self._learner.news.answers
        if answers is None:
            return None
        names = answers.classes
        for entry in self._journal.entries[answers.number :]:
            if entry.kind == "rename":
                old, new = entry.body["old"], entry.body["new"]
                names = [new if name == old else name for name in names]
        return replace(answers, classes=names)

    def _guess(self, row: int) -> list[tuple[str, float]]:
        answers, shares = self._answers_now(), Counter[str]()
        if answers is not None:
            for name, share in zip(answers.classes, answers.shares[row].tolist()):
                shares[name] += share
        known = self._board.classes
        return [(name, share) for name, share in shares.most_common(3) if name in known]

    def _near(self, row: int, who: str) -> list[dict[str, Any]]:
        """Return the labelled rows that are nearest, of those whose labels somebody may know."""
        board, labels = self._board, self._board.labels
        known = [one for one in labels if one != row and not board.blind(one, who, self._overlap)]
        labeled = np.array(known, dtype=np.intp)
        if not len(labeled):
            return []
        best = self._learner.nearest(row, labeled, _NEAREST)
        return [
            {
                "row": one,
                "id": self.rows.ids[one],
                "label": self._board.labels[one],
                "brief": self.rows.brief(one),
            }
            for one in best.tolist()
        ]

    def _progress(self, request: dict[str, Any]) -> dict[str, Any]:
        news = self._learner.news
        with self._lock:
            board, number = self._board, len(self._journal.entries)
            counts = Counter(board.labels.values())
            marks = [mark for of_row in board.marks.values() for mark in of_row.values()]
            people = Counter(mark.who for mark in marks if mark.kind == "label")
            kinds = Counter(mark.kind for mark in marks)
            per_class = {name: counts[name] for name in board.classes}
            conflicts = len(board.conflicts())
            passed = len(board.passed(str(request.get("who"))))
        learned = news.queue["number"]
        return {
            "version": [number, news.version],
            "number": number,
            "learned": learned,
            "working": news.working or ("learning" if learned < number and not news.error else ""),
            "error": news.error,
            "classes": per_class,
            "labelled": len(board.labels),
            "kinds": kinds,
            "people": people,
            "conflicts": conflicts,
            "passed": passed,
            "doubts": len(news.doubts),
            "has_map": news.places is not None,
            "steps": [asdict(step) for step in news.steps[-400:]],
            "enough": little_changes(news.steps, per_class, len(self.rows)),
        }

    def _map(self, _request: dict[str, Any]) -> dict[str, Any]:
        places = self._learner.news.places
        if places is None:
            return {"places": None}
        return {"places": _packed(np.round(_FULL * places), "<u2")}

    def _answers(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a class for every row, as given and as answered, by numbers among the classes."""
        who = str(request.get("who"))
        with self._lock:
            board, answers = self._board, self._answers_now()
            names, labels = list(board.classes), dict(board.labels)
            blind = [row for row in board.marks if board.blind(row, who, self._overlap)]
        number = {name: code for code, name in enumerate(names)}
        given = np.full(len(self.rows), -1)
        given[list(labels)] = [number[name] for name in labels.values()]
        said = np.full(len(self.rows), -1)
        if answers is not None:
            codes = np.array([number.get(name, -1) for name in answers.classes] + [-1])
            said = codes[answers.codes]
        given[blind] = said[blind] = -1
        return {"classes": names, "given": _packed(given, "<i2"), "said": _packed(said, "<i2")}

    def _search(self, request: dict[str, Any]) -> dict[str, Any]:
        words = str(request.get("words", "")).strip()
        return {"found": self.rows.found(words) if words else []}

    def _review(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return doubtful labels, conflicts, how far people agree, and rows passed over."""
        who = str(request.get("who"))
        with self._lock:
            board, labels = self._board, self._board.labels
            doubts = [
                doubt | {"id": self.rows.ids[doubt["row"]]}
                for doubt in self._learner.news.doubts
                if labels.get(doubt["row"]) == doubt["given"]
                and not board.blind(doubt["row"], who, self._overlap)
            ]
            passed = [
                {"row": row, "id": self.rows.ids[row], "kind": kind}
                for row, kind in board.passed(who).items()
            ]
            conflicts = [
                {"row": row, "id": self.rows.ids[row], "said": self._board.said(row)}
                for row in self._board.conflicts()
            ]
            agreement = self._board.agreement()
        told = {"doubts": doubts, "conflicts": conflicts, "agreement": agreement}
        return told | {"passed": passed}

    def _image(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.rows.picture(self._named_rows({"rows": [request.get("row")]})[0])

    def _named_rows(self, request: dict[str, Any]) -> list[int]:
        rows = request.get("rows")
        if not isinstance(rows, list) or not rows:
            raise ValueError("rows must name at least one row")
        if not all(type(row) is int and 0 <= row < len(self.rows) for row in rows):
            raise ValueError(f"rows must hold whole numbers from 0 to {len(self.rows) - 1}")
        return sorted(set(rows))


def _name(text: Any, what: str) -> str:
    """Return a name that people gave, or say that it is none."""
    name = plain_name(text)
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError(
            f"{what} must be a text of 1 to {_LONGEST_NAME} characters without control characters"
        )
    return name


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode()
