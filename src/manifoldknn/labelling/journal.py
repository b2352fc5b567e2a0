"""The journal of a labelling session: entries in an SQLite file, never changed, only added to.

An entry is on the disk before anybody hears of it. Undo and redo are entries too.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from manifoldknn.tables.table import TableError

_FORM = "1"
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL,
    kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE queue (one INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""


class JournalError(Exception):
    """The journal could not be written; what was acknowledged before is safe."""


@dataclass(frozen=True)
class Entry:
    """Something that somebody did."""

    number: int
    at: str
    who: str
    kind: str
    body: dict[str, Any]


class History:
    """What everybody did and may undo, or undid and may redo; the next one last."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._done: dict[str, list[Entry]] = defaultdict(list)
        self._undone: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Follow one more entry."""
        done, undone = self._done[entry.who], self._undone[entry.who]
        if entry.kind == "undo":
            undone.append(done.pop())
        elif entry.kind == "redo":
            done.append(undone.pop())
        else:
            done.append(entry)
            undone.clear()

    def last(self, who: str, kind: str) -> Entry | None:
        """Return the entry that "undo" or "redo" by somebody would be about."""
        of_one = (self._done if kind == "undo" else self._undone)[who]
        return of_one[-1] if of_one else None

    def standing(self) -> list[Entry]:
        """Return the entries that are not undone, in their order.

        >>> did = [Entry(1, "", "Ann", "add", {}), Entry(2, "", "Bob", "add", {})]
        >>> [one.number for one in History([*did, Entry(3, "", "Ann", "undo", {})]).standing()]
        [2]
        """
        everything = [entry for of_one in self._done.values() for entry in of_one]
        return sorted(everything, key=lambda entry: entry.number)


class Journal:
    """The entries of one data set, in a file.

    `fingerprint` is that of the data set: a journal of another one is refused.
    """

    def __init__(self, path: Path, fingerprint: str, name: str) -> None:
        self.path, self._lock = path, Lock()
        try:
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise TableError(_refusal(path, str(error))) from None
        try:
            self._open(fingerprint, name)
        except sqlite3.Error as error:
            self._file.close()
            raise TableError(_refusal(path, str(error))) from None
        except TableError:
            self._file.close()
            raise
        read = self._file.execute("SELECT number, at, who, kind, body FROM entries ORDER BY number")
        try:
            self.entries = [
                Entry(number, at, who, kind, dict(json.loads(body)))
                for number, at, who, kind, body in read
            ]
            self.history = History(self.entries)
        except (ValueError, LookupError, TypeError, sqlite3.Error):
            self._file.close()
            raise TableError(
                f"the journal {path} is damaged: bring a copy back, or name another with --journal"
            ) from None

    def _open(self, fingerprint: str, name: str) -> None:
        """Make the tables of a new journal, or look whose journal it is; change nothing else."""
        run = self._file.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        tables = {table for (table,) in run("SELECT name FROM sqlite_master")}
        about = dict(run("SELECT key, value FROM about").fetchall()) if tables else {}
        if tables and about.get("form") != _FORM:
            raise sqlite3.DatabaseError("another form")
        if tables and about["fingerprint"] != fingerprint:
            raise TableError(
                f"the journal {self.path} belongs to another file, {about['file']}, or {name} has "
                "changed since: bring that file back, or name another journal with --journal"
            )
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("BEGIN IMMEDIATE")
        if not tables:
            for table in _TABLES.split(";"):
                run(table)
            about = {"form": _FORM, "fingerprint": fingerprint, "file": name}
            self._file.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        run("COMMIT")

    def add(self, who: str, kind: str, body: dict[str, Any]) -> Entry:
        """Write an entry and return it once it is on the disk."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            entry = Entry(len(self.entries) + 1, at, who, kind, body)
            values = (entry.number, at, who, kind, json.dumps(body))
            self._write("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", values)
            self.entries.append(entry)
            self.history.take(entry)
        return entry

    def keep_queue(self, queue: dict[str, Any]) -> None:
        """Remember which rows come next, so that a new start goes on with the same."""
        with self._lock:
            self._write("INSERT OR REPLACE INTO queue VALUES (1, ?)", (json.dumps(queue),))

    def queue(self) -> dict[str, Any] | None:
        """Return what `keep_queue` kept."""
        with self._lock:
            found = self._file.execute("SELECT body FROM queue").fetchone()
        return json.loads(found[0]) if found else None

    def _write(self, command: str, values: tuple[Any, ...]) -> None:
        try:
            self._file.execute(command, values)
        except sqlite3.Error as error:
            raise JournalError(
                f"{self.path} cannot be written ({error}): free some space on the disk. What was "
                "labelled before is safe"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def file_fingerprint(path: Path) -> str:
    """Return what tells a file from others by its content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refusal(path: Path, why: str) -> str:
    """Return what to say of a journal that cannot be used."""
    if "locked" in why:
        return f"the journal {path} is open in another `manifoldknn label`: close that one first"
    if "unable to open" in why or "readonly" in why or "full" in why:
        return f"the journal {path} cannot be written ({why}): name another with --journal"
    return f"{path} is no journal of manifoldknn: move it away, or name another with --journal"
