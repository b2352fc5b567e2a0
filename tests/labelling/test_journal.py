"""Undo and redo against a literal list; nothing that was acknowledged is ever lost."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from manifoldknn.labelling.board import Board
from manifoldknn.labelling.journal import Entry, History, Journal, JournalError
from manifoldknn.tables.table import TableError

PEOPLE, ROWS, CLASSES = ("Ann", "Bob"), range(6), ("a", "b", "c")


class AgainstLists(RuleBasedStateMachine):
    """Everybody has a list of what they did, and one of what they undid."""

    def __init__(self):
        super().__init__()
        self.entries = []
        self.history = History()
        self.done = {who: [] for who in PEOPLE}
        self.undone = {who: [] for who in PEOPLE}

    def add(self, who, kind, body=None):
        entry = Entry(len(self.entries) + 1, "", who, kind, body or {})
        self.entries.append(entry)
        self.history.take(entry)
        return entry

    @rule(
        who=st.sampled_from(PEOPLE),
        rows=st.lists(st.sampled_from(ROWS), min_size=1, max_size=3, unique=True),
        label=st.sampled_from(CLASSES),
    )
    def label(self, who, rows, label):
        entry = self.add(who, "mark", {"rows": rows, "kind": "label", "label": label})
        self.done[who] = [*self.done[who], entry]
        self.undone[who] = []

    @rule(who=st.sampled_from(PEOPLE), old=st.sampled_from(CLASSES), new=st.sampled_from(CLASSES))
    def rename(self, who, old, new):
        entry = self.add(who, "rename", {"old": old, "new": new})
        self.done[who] = [*self.done[who], entry]
        self.undone[who] = []

    @rule(who=st.sampled_from(PEOPLE))
    def undo(self, who):
        expected = self.done[who][-1] if self.done[who] else None
        assert self.history.last(who, "undo") == expected
        if expected:
            self.add(who, "undo")
            self.done[who], self.undone[who] = (
                self.done[who][:-1],
                [*self.undone[who], expected],
            )

    @rule(who=st.sampled_from(PEOPLE))
    def redo(self, who):
        expected = self.undone[who][-1] if self.undone[who] else None
        assert self.history.last(who, "redo") == expected
        if expected:
            self.add(who, "redo")
            self.undone[who], self.done[who] = (
                self.undone[who][:-1],
                [*self.done[who], expected],
            )

    @precondition(lambda self: self.entries)
    @invariant()
    def what_stands_is_what_the_lists_say(self):
        stands = sorted(self.done["Ann"] + self.done["Bob"], key=lambda entry: entry.number)
        assert self.history.standing() == stands == History(self.entries).standing()
        board, said = Board({}, ()), {}
        for entry in stands:
            board.take(entry)
            if entry.kind == "rename":
                renamed = entry.body["old"], entry.body["new"]
                said = {k: renamed[1] if v == renamed[0] else v for k, v in said.items()}
            else:
                said |= {(row, entry.who): entry.body["label"] for row in entry.body["rows"]}
        for row in ROWS:
            assert board.said(row) == {who: x for (of, who), x in said.items() if of == row}
            different = set(board.said(row).values())
            assert board.labels.get(row) == (different.pop() if len(different) == 1 else None)


AgainstLists.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestAgainstLists = AgainstLists.TestCase


def test_what_was_written_is_there_again(tmp_path):
    path = tmp_path / "j.sqlite"
    journal = Journal(path, "f", "a.csv")
    assert journal.queue() is None
    did = [journal.add("Ann", "mark", {"rows": [k], "kind": "skip"}) for k in range(5)]
    did.append(journal.add("Ann", "undo", {"of": 5}))
    journal.keep_queue({"number": 6, "rows": [3], "why": ["so"]})
    journal.keep_queue({"number": 6, "rows": [4], "why": ["so"]})
    journal.close()
    again = Journal(path, "f", "a.csv")
    assert again.entries == did
    assert again.history.standing() == did[:4]
    assert again.queue()["rows"] == [4]
    again.close()


def test_a_journal_of_another_file_is_refused_by_name(tmp_path):
    path = tmp_path / "j.sqlite"
    Journal(path, "one", "flowers.csv").close()
    with pytest.raises(TableError, match=r"belongs to another file, flowers\.csv"):
        Journal(path, "two", "trees.csv")


def test_what_is_no_journal_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("a few notes of mine, which nobody should lose" * 100)
    before = path.read_bytes()
    with pytest.raises(TableError, match="no journal"):
        Journal(path, "f", "a.csv")
    assert path.read_bytes() == before
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (x)")
    file.close()
    before = other.read_bytes()
    with pytest.raises(TableError, match="no journal"):
        Journal(other, "f", "a.csv")
    assert other.read_bytes() == before
    with pytest.raises(TableError, match="cannot be written"):
        Journal(tmp_path / "none" / "j.sqlite", "f", "a.csv")


def test_one_at_a_time(tmp_path):
    first = Journal(tmp_path / "j.sqlite", "f", "a.csv")
    with pytest.raises(TableError, match="open in another `manifoldknn label`"):
        Journal(tmp_path / "j.sqlite", "f", "a.csv")
    first.close()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path):
    path = tmp_path / "j.sqlite"
    journal = Journal(path, "f", "a.csv")
    (pages,) = journal._file.execute("PRAGMA page_count").fetchone()
    journal._file.execute(f"PRAGMA max_page_count={pages + 3}")
    written = 0
    with pytest.raises(JournalError, match="free some space"):  # noqa: PT012
        while written < 1000:
            journal.add("Ann", "mark", {"rows": list(range(200)), "kind": "skip"})
            written += 1
    assert len(journal.entries) == written > 0
    journal.close()
    assert len(Journal(path, "f", "a.csv").entries) == written


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_killed_after_an_acknowledgement(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from manifoldknn.labelling.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]), 'f', 'a.csv')\n"
        "for k in range(17): journal.add('Ann', 'add', {'name': str(k)})\n"
        "print('done', flush=True); time.sleep(60)"
    )
    path = str(tmp_path / "j.sqlite")
    source = str(Path(__file__).parents[2] / "src")
    env = os.environ | {"PYTHONPATH": source}
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True, env=env
    ) as worker:
        assert worker.stdout.readline() == "done\n"
        worker.kill()
    journal = Journal(Path(path), "f", "a.csv")
    assert [entry.body["name"] for entry in journal.entries] == [str(k) for k in range(17)]
    journal.close()


@pytest.mark.parametrize(
    ("kind", "body"), [("undo", '{"of": 1}'), ("mark", "cut o"), ("mark", "[")]
)
def test_a_damaged_journal_is_refused_in_plain_words(tmp_path, kind, body):
    path = tmp_path / "j.sqlite"
    Journal(path, "f", "a.csv").close()
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO entries VALUES (1, '2026', 'Ann', ?, ?)", (kind, body))
    with pytest.raises(TableError, match=r"j\.sqlite is damaged: bring a copy back"):
        Journal(path, "f", "a.csv")
