"""Who calls which row what: majority, conflicts, agreement, overlap, renamed and merged classes."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from manifoldknn.labelling.board import Board, plain_name
from manifoldknn.labelling.journal import Entry


def said(board, who, row, label, kind="label"):
    body = {"rows": [row], "kind": kind, "label": label}
    board.take(Entry(1, "now", who, "mark", body))


def test_the_majority_holds_and_a_tie_holds_nothing():
    board = Board({0: "x", 9: "y"}, ["z"])
    assert (board.classes, board.labels) == (["z", "x", "y"], {0: "x", 9: "y"})
    said(board, "Ann", 0, "a")
    assert board.labels[0] == "a"  # people before the file
    said(board, "Bob", 0, "b")
    assert 0 not in board.labels
    assert board.conflicts() == [0]
    said(board, "Cem", 0, "b")
    assert board.labels[0] == "b"
    assert board.conflicts() == [0]
    board.take(Entry(5, "now", "Cem", "settle", {"rows": [0], "label": "a"}))
    assert (board.labels[0], board.conflicts()) == ("a", [])


def test_taking_a_label_back_leaves_what_the_file_said():
    board = Board({0: "x"}, [])
    said(board, "Ann", 0, "a")
    said(board, "Ann", 0, "", "none")
    assert board.labels == {0: "x"}
    said(board, "Ann", 1, "", "unsure")
    assert 1 not in board.labels


def test_merged_classes_are_one():
    board = Board({0: "x"}, [])
    said(board, "Ann", 1, "a")
    said(board, "Bob", 1, "x")
    board.take(Entry(3, "now", "Ann", "rename", {"old": "a", "new": "x"}))
    assert (board.classes, board.labels, board.conflicts()) == (["x"], {0: "x", 1: "x"}, [])


def test_agreement_is_cohens_kappa():
    rng, board = np.random.default_rng(0), Board({}, [])
    ann, bob = rng.integers(3, size=(2, 60)).astype(str)
    bob[:30] = ann[:30]
    for row in range(60):
        said(board, "Ann", row, ann[row])
        said(board, "Bob", row, bob[row])
    (told,) = board.agreement()
    assert told["rows"] == 60
    assert told["alike"] == (ann == bob).sum()
    assert told["kappa"] == pytest.approx(cohen_kappa_score(ann, bob))


@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
def test_a_share_of_rows_is_shown_to_two(overlap):
    board, n = Board({0: "x"}, []), 2000
    for row in range(1, n):
        said(board, "Ann", row, "a")
    assert not any(board.wants(row, "Ann", overlap) for row in range(n))
    again = [board.wants(row, "Bob", overlap) for row in range(1, n)]
    assert np.mean(again) == pytest.approx(overlap, abs=0.02)
    said(board, "Bob", n, "", "skip")
    assert not board.wants(n, "Bob", overlap)
    assert board.wants(n, "Ann", overlap)


def settled(marks):
    """Return a board where Cem settled what Ann and Bob said, and then people said more."""
    board = Board({}, [])
    said(board, "Ann", 0, "a")
    said(board, "Bob", 0, "b")
    board.take(Entry(3, "now", "Cem", "settle", {"rows": [0], "label": "a"}))
    assert (board.labels, board.conflicts(), board.wants(0, "Dan", 1.0)) == ({0: "a"}, [], False)
    for who, label, kind in marks:
        said(board, who, 0, label, kind)
    return board


@pytest.mark.parametrize(
    ("marks", "label", "conflicts"),
    [
        ([("Ann", "b", "label")], "b", []),  # all agree now
        ([("Dan", "b", "label")], "a", []),  # others still differ
        ([("Cem", "c", "label")], "c", []),  # corrected by who settled it
        ([("Cem", "c", "label"), ("Bob", "c", "label"), ("Ann", "c", "label")], "c", []),
        ([("Cem", "", "unsure")], None, [0]),
        ([("Cem", "", "none")], None, [0]),
        ([("Ann", "", "none")], "a", []),
        ([("Ann", "", "none"), ("Bob", "b", "label")], "a", []),  # one alone is no agreement
    ],
)
def test_what_was_settled_can_be_corrected(marks, label, conflicts):
    board = settled(marks)
    assert (board.labels.get(0), board.conflicts()) == (label, conflicts)


def test_who_labels_a_second_time_is_blind():
    board = Board({}, [])
    said(board, "Ann", 0, "a")
    said(board, "Ann", 1, "", "skip")
    blind = {(row, who): board.blind(row, who, 1.0) for row in (0, 1) for who in ("Ann", "Bob")}
    assert [key for key, is_blind in blind.items() if is_blind] == [(0, "Bob")]
    assert not board.blind(0, "Bob", 0.0)
    said(board, "Bob", 0, "a")
    assert not board.blind(0, "Cem", 1.0)  # nobody else is asked


def test_rows_passed_over_are_known():
    board = Board({}, [])
    said(board, "Ann", 0, "", "skip")
    said(board, "Ann", 1, "", "unsure")
    said(board, "Ann", 2, "", "skip")
    said(board, "Bob", 2, "b")
    assert board.passed("Ann") == {0: "skip", 1: "unsure"}
    assert board.passed("Bob") == {}


@pytest.mark.parametrize(
    "text",
    ["", " \xa0", "a\x07", "a\nb", "a\u2028b", "a\u202eb", "a\u2066b", "\u200c", "\ud800", None],
)
def test_what_is_no_name(text):
    assert plain_name(text) == ""


@pytest.mark.parametrize("text", ["a b", "می\u200cخواهم", "\U0001f469\u200d\U0001f680", "<b>x</b>"])
def test_names_stay_as_they_are(text):
    assert plain_name(text.replace(" ", "\xa0")) == text
