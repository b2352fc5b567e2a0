"""What is written can be read again, in every format; Label Studio's JSON too."""

import io
import json

import numpy as np
import pytest
from pyarrow import parquet

from manifoldknn.labelling.board import Board, Mark
from manifoldknn.labelling.exchange import FORMATS, imported, records, written
from manifoldknn.labelling.journal import Entry
from manifoldknn.labelling.learner import Answers

IDS = ["p", "q", "=1+1", 'a "quoted", id', "t"]


def board():
    made = Board({4: "x"}, [])
    made.take(
        Entry(1, "2024-01-01", "Ann", "mark", {"rows": [0, 2], "kind": "label", "label": "b"})
    )
    made.take(
        Entry(2, "2024-01-02", "Bob", "mark", {"rows": [0], "kind": "label", "label": "ü, ö"})
    )
    made.take(Entry(3, "2024-01-03", "Bob", "mark", {"rows": [1], "kind": "unsure"}))
    return made


def answers():
    shares = np.tile(np.array([[0.25, 0.75]], dtype=np.float32), (5, 1))
    return Answers(3, ["b", "x"], np.ones(5, dtype=np.intp), shares)


@pytest.mark.parametrize("form", FORMATS)
def test_there_and_back(form):
    content = written(records(IDS, board(), answers()), form)
    marks, lost = imported(content, IDS, "nobody")
    assert lost == []
    assert sorted(marks, key=str) == sorted(
        [
            (0, Mark("label", "b", "Ann", "2024-01-01")),
            (0, Mark("label", "ü, ö", "Bob", "2024-01-02")),
            (2, Mark("label", "b", "Ann", "2024-01-01")),
            (1, Mark("unsure", "", "Bob", "2024-01-03")),
        ],
        key=str,
    )


def test_it_says_who_said_it():
    found = list(records(IDS, board(), answers()))
    assert {(one["row"], one["source"]) for one in found} == {
        (1, "person"), (2, "person"), (2, "model"), (3, "person"), (4, "model"), (5, "file"),
    }  # fmt: skip
    assert [one["confidence"] for one in found if one["source"] == "model"] == [0.75, 0.75]
    assert [one["holds"] for one in found if one["row"] == 1] == [False, False]  # a tie
    table = parquet.read_table(io.BytesIO(written(found, "parquet"))).to_pylist()
    assert table == found


def test_label_studio():
    tasks = [
        {
            "id": 7,
            "data": {"id": "q", "text": "x"},
            "annotations": [
                {
                    "completed_by": {"id": 3, "email": "ann@example.org"},
                    "created_at": "2024-05-01T10:00:00Z",
                    "was_cancelled": False,
                    "result": [
                        {"type": "choices", "from_name": "c", "value": {"choices": ["cat"]}}
                    ],
                },
                {"completed_by": 4, "was_cancelled": True, "result": []},
            ],
        },
        {"id": 8, "inner_id": 3, "data": {}, "annotations": [
            {"completed_by": 4, "result": [{"value": {"choices": ["dog", "cat"]}}]}]},
        {"id": 9, "data": {"id": "who?"}, "annotations": [
            {"completed_by": 4, "result": [{"value": {"choices": ["dog"]}}]}]},
    ]  # fmt: skip
    marks, lost = imported(json.dumps(tasks).encode(), IDS, "me")
    assert marks == [
        (1, Mark("label", "cat", "ann@example.org", "2024-05-01T10:00:00Z")),
        (1, Mark("skip", "", "4", "")),
        (2, Mark("label", "dog", "4", "")),
    ]
    assert lost == ["who?"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"[1, 2]", b'{"a": ', b"PAR1 and no more", b"[", b"row,label\n", b"{}x"],
)
def test_what_is_no_export_is_refused(content):
    with pytest.raises(ValueError, match="nothing to import was found"):
        imported(content, IDS, "me")


def test_it_says_which_label_holds():
    made = board()
    made.take(Entry(4, "2024-01-04", "Cem", "settle", {"rows": [0], "label": "b"}))
    found = [one for one in records(IDS, made, answers()) if one["row"] == 1]
    assert [(one["labeller"], one["holds"]) for one in found] == [
        ("Ann", True), ("Bob", False), ("Cem", True),
    ]  # fmt: skip


def test_an_unknown_id_is_lost_and_named():
    lines = [
        {"id": "NOT-IN-THIS-FILE", "row": 5, "label": "x"},
        {"id": "", "row": 2, "label": "x"},
        {"id": None, "row": 77, "label": "x"},
        {"id": 0, "row": 1, "label": "x"},
        {"id": "t", "row": 1, "label": "a\xa0b"},
    ]
    marks, lost = imported("\n".join(map(json.dumps, lines)).encode(), IDS, "me")
    assert [(row, mark.label) for row, mark in marks] == [(1, "x"), (4, "a b")]
    assert lost == ["NOT-IN-THIS-FILE", "row 77", "0"]
    task = {"inner_id": 5, "data": {"id": "NOT-IN-THIS-FILE", "row": 5}, "annotations": [
        {"result": [{"value": {"choices": ["dog"]}}]}]}  # fmt: skip
    assert imported(json.dumps([task]).encode(), IDS, "me") == ([], ["NOT-IN-THIS-FILE"])
