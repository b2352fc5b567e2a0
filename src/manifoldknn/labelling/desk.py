"""The desk at which people label: every question of the page, and its answer.

Questions and answers are what JSON holds, so the page may be in a browser or in a notebook.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.base.render import COLORS, SHAPES
from manifoldknn.classifier import ManifoldKNNClassifier
from manifoldknn.labelling.board import Board
from manifoldknn.labelling.exchange import imported, records, written
from manifoldknn.labelling.journal import Entry, Journal
from manifoldknn.labelling.learner import Learner, little_changes
from manifoldknn.labelling.rows import Rows

_AHEAD = 1  # rows that are sent with every answer
_RESERVED = 60.0  # seconds that a row is kept for who sees it
_NEAREST = 3
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
        self._reserved: dict[int, tuple[str, float]] = {}
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

    def labels(self) -> tuple[int, dict[int, str]]:
        """Return the number of the last entry, and the labels that hold."""
        with self._lock:
            return len(self._journal.entries), dict(self._board.labels)

    def export(self, form: str) -> bytes:
        """Return all labels as a file."""
        with self._lock:
            found = list(records(self.rows.ids, self._board, self._learner.news.answers))
        return written(found, form)

    def column(self, *, guessed: bool) -> list[str | None]:
        """Return a label for every row, None without one; if `guessed`, also those of the model."""
        with self._lock:
            labels, answers = self._board.labels, self._learner.news.answers
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
            body["label"] = _name(request.get("label"), "label")
        self._add(request, "mark", body)
        return self._next(request)

    def _settle(self, request: dict[str, Any]) -> dict[str, Any]:
        label = _name(request.get("label"), "label")
        self._add(request, "settle", {"rows": self._named_rows(request), "label": label})
        return self._review(request)

    def _classes(self, request: dict[str, Any]) -> dict[str, Any]:
        if "old" in request:
            old, new = _name(request["old"], "old"), _name(request.get("new"), "new")
            if old not in self._board.classes:
                raise ValueError(f"there is no class {old!r}")
            self._add(request, "rename", {"old": old, "new": new})
        else:
            self._add(request, "add", {"name": _name(request.get("name"), "name")})
        return self._progress(request)

    def _import(self, request: dict[str, Any]) -> dict[str, Any]:
        content = base64.b64decode(str(request.get("data", "")))
        marks, lost = imported(content, self.rows.ids, _name(request.get("who"), "who"))
        if marks:
            listed = [[row, mark.kind, mark.label, mark.who, mark.at] for row, mark in marks]
            self._add(request, "import", {"marks": listed})
        return self._progress(request) | {"imported": len(marks), "lost": lost}

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

    def _rebuild(self) -> None:
        self._board = Board(self.rows.given, self._first_classes)
        for entry in self._journal.history.standing():
            self._board.take(entry)

    # What people see.

    def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "file": self.rows.name,
            "n_rows": len(self.rows),
            "columns": list(self.rows.cells),
            "colors": COLORS,
            "shapes": SHAPES,
        } | self._progress(request)

    def _next(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the rows that somebody should see next, and how things stand."""
        who = _name(request.get("who"), "who")
        now, found, wanted = time.monotonic(), [], int(request.get("n", _AHEAD))
        with self._lock:
            queue = self._learner.news.queue
            reasons = dict(zip(queue["rows"], queue["why"]))
            for row in (*queue["rows"], *self._rest(reasons)):
                by, until = self._reserved.get(row, ("", 0.0))
                busy = by != who and until > now
                if self._board.wants(row, who, self._overlap) and (self._overlap or not busy):
                    found.append(row)
                if len(found) == wanted:
                    break
            if found:
                self._reserved[found[0]] = (who, now + _RESERVED)
            rows = [self._shown(row, who, reasons.get(row)) for row in found]
        return {"rows": rows, "progress": self._progress(request)}

    def _rest(self, queue: dict[int, str]) -> list[int]:
        """Return rows that are not in the queue, if there are few in it."""
        if any(row not in self._board.marks and row not in self._board.given for row in queue):
            return []
        return [row for row in range(len(self.rows)) if row not in queue]

    def _row(self, request: dict[str, Any]) -> dict[str, Any]:
        row = self._named_rows({"rows": [request.get("row")]})[0]
        with self._lock:
            queue = self._learner.news.queue
            why = dict(zip(queue["rows"], queue["why"])).get(row)
            return self._shown(row, str(request.get("who", "")), why)

    def _shown(self, row: int, who: str, why: str | None) -> dict[str, Any]:
        marks = self._board.marks.get(row, {})
        # Who labels a row a second time does so without knowing what the first one said.
        blind = self._overlap > 0 and bool(marks) and who not in marks
        return self.rows.shown(row) | {
            "why": why,
            "guess": [] if blind else self._guess(row),
            "near": self._near(row),
            "mine": asdict(marks[who]) if who in marks else None,
            "label": None if blind else self._board.labels.get(row),
            "marks": [] if blind else [asdict(mark) for mark in marks.values()],
        }

    def _guess(self, row: int) -> list[tuple[str, float]]:
        answers = self._learner.news.answers
        if answers is None:
            return []
        best = np.argsort(-answers.shares[row], kind="stable")[:3]
        return [(answers.classes[code], float(answers.shares[row, code])) for code in best]

    def _near(self, row: int) -> list[dict[str, Any]]:
        """Return the labelled rows that are nearest."""
        labeled = np.array([one for one in self._board.labels if one != row], dtype=np.intp)
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

    def _progress(self, _request: dict[str, Any]) -> dict[str, Any]:
        news = self._learner.news
        with self._lock:
            board, number = self._board, len(self._journal.entries)
            counts = Counter(board.labels.values())
            marks = [mark for of_row in board.marks.values() for mark in of_row.values()]
            people = Counter(mark.who for mark in marks if mark.kind == "label")
            kinds = Counter(mark.kind for mark in marks)
            per_class = {name: counts[name] for name in board.classes}
            conflicts = len(board.conflicts())
        learned = news.queue["number"]
        return {
            "version": [number, news.version],
            "number": number,
            "learned": learned,
            "working": news.working or ("learning" if learned < number else ""),
            "error": news.error,
            "classes": per_class,
            "labelled": len(board.labels),
            "kinds": kinds,
            "people": people,
            "conflicts": conflicts,
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

    def _answers(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Return a class for every row, as given and as answered, by numbers among the classes."""
        news = self._learner.news
        with self._lock:
            names, labels = list(self._board.classes), dict(self._board.labels)
        number = {name: code for code, name in enumerate(names)}
        given = np.full(len(self.rows), -1)
        given[list(labels)] = [number[name] for name in labels.values()]
        said, sure = np.full(len(self.rows), -1), np.zeros(len(self.rows))
        if news.answers is not None:
            codes = np.array([number.get(name, -1) for name in news.answers.classes] + [-1])
            said = codes[news.answers.codes]
            sure = news.answers.shares.max(axis=1)
        return {
            "classes": names,
            "given": _packed(given, "<i2"),
            "said": _packed(said, "<i2"),
            "sure": _packed(np.round(255 * sure), "<u1"),
        }

    def _search(self, request: dict[str, Any]) -> dict[str, Any]:
        words = str(request.get("words", "")).strip()
        return {"found": self.rows.found(words) if words else []}

    def _review(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Return doubtful labels, conflicts and how far people agree."""
        with self._lock:
            labels = self._board.labels
            doubts = [
                doubt | {"id": self.rows.ids[doubt["row"]]}
                for doubt in self._learner.news.doubts
                if labels.get(doubt["row"]) == doubt["given"]
            ]
            conflicts = [
                {"row": row, "id": self.rows.ids[row], "said": self._board.said(row)}
                for row in self._board.conflicts()
            ]
            agreement = self._board.agreement()
        return {"doubts": doubts, "conflicts": conflicts, "agreement": agreement}

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
    name = text.strip() if isinstance(text, str) else ""
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"{what} must be a text of 1 to {_LONGEST_NAME} printable characters")
    return name


def _packed(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode()
