"""From nothing to labels: the queue, several people, a new start, bad files."""

import time

import numpy as np
import pytest

from labelling_kit import flower_truth, flowers, flowers_desk, learned, opened
from manifoldknn.cli.main import main
from manifoldknn.labelling.learner import Learner
from manifoldknn.tables.table import TableError


def label_some(desk, truth, n, who="Ann"):
    for _ in range(n):
        row = desk.call("next", {"who": who})["rows"][0]
        desk.call("mark", {"who": who, "rows": [row["row"]], "label": truth[row["id"]]})


def right(desk, truth):
    return np.mean([said == truth[name] for said, name in zip(desk.column(guessed=True), truth)])


def test_from_nothing_and_on_after_a_new_start(tmp_path):
    truth = flower_truth()
    with flowers_desk(tmp_path) as desk:
        learned(desk)
        first = desk.call("next", {"who": "Ann"})["rows"][0]
        assert "typical of about" in first["why"]
        assert (first["guess"], first["near"]) == ([], [])
        label_some(desk, truth, 17)
        progress = learned(desk)
        queue = desk.call("next", {"who": "Ann", "n": 50})["rows"]
        assert progress["labelled"] == 17
        assert progress["steps"][-1]["labels"] == 17
        assert right(desk, truth) > 0.9
    with opened(tmp_path / "flowers.csv", "--id", "id") as desk:
        before = desk.call("next", {"who": "Ann", "n": 50})["rows"]  # before anything is learned
        assert [row["row"] for row in before] == [row["row"] for row in queue]
        learned(desk)
        after = desk.call("next", {"who": "Ann", "n": 50})["rows"]
        assert [(row["row"], row["why"]) for row in after] == [
            (row["row"], row["why"]) for row in queue
        ]
        label_some(desk, truth, 13)
        learned(desk)
        assert right(desk, truth) >= 0.95
        row = desk.call("next", {"who": "Ann"})["rows"][0]
        assert row["guess"][0][1] >= row["guess"][1][1]
        assert len(row["near"]) == 3


def test_undo_and_redo_reach_the_model(tmp_path):
    with flowers_desk(tmp_path, "--classes", "a,b") as desk:
        for row, name in ((0, "a"), (300, "b"), (599, "a")):
            desk.call("mark", {"who": "Ann", "rows": [row], "label": name})
        learned(desk)
        full = desk.column(guessed=True)
        assert desk.call("undo", {"who": "Bob"})["nothing"]
        told = desk.call("undo", {"who": "Ann"})
        assert (told["n_rows"], told["shown"]["row"]) == (1, 599)
        learned(desk)
        assert desk.labels()[1] == {0: "a", 300: "b"}
        desk.call("undo", {"who": "Ann"})
        desk.call("undo", {"who": "Ann"})
        learned(desk)
        assert desk.column(guessed=True) == [None] * 600
        for _ in range(3):
            desk.call("redo", {"who": "Ann"})
        assert desk.call("redo", {"who": "Ann"})["nothing"]
        learned(desk)
        assert desk.column(guessed=True) == full


def test_two_people_do_not_get_the_same_row_unless_they_should(tmp_path):
    with flowers_desk(tmp_path) as desk:
        learned(desk)
        rows = [desk.call("next", {"who": who})["rows"][0]["row"] for who in ("Ann", "Bob")]
        assert rows[0] != rows[1]
        desk.call("mark", {"who": "Ann", "rows": [rows[0]], "kind": "skip"})
        assert desk.call("next", {"who": "Ann"})["rows"][0]["row"] != rows[0]
    path = tmp_path / "other"
    path.mkdir()
    with flowers_desk(path, "--overlap", "1") as desk:
        learned(desk)
        rows = [desk.call("next", {"who": who})["rows"][0]["row"] for who in ("Ann", "Bob")]
        assert rows[0] == rows[1]
        desk.call("mark", {"who": "Ann", "rows": rows[:1], "label": "x"})
        shown = desk.call("next", {"who": "Bob"})["rows"][0]  # Bob is not told what Ann said
        assert (shown["row"], shown["label"], shown["marks"]) == (rows[0], None, [])
        desk.call("mark", {"who": "Bob", "rows": rows[:1], "label": "y"})
        shown = desk.call("row", {"who": "Bob", "row": rows[0]})
        said = [(mark["who"], mark["label"]) for mark in shown["marks"]]
        assert said == [("Ann", "x"), ("Bob", "y")]
        review = desk.call("review", {})
        assert [one["said"] for one in review["conflicts"]] == [{"Ann": "x", "Bob": "y"}]
        assert review["agreement"][0]["alike"] == 0
        review = desk.call("settle", {"who": "Ann", "rows": rows[:1], "label": "y"})
        assert review["conflicts"] == []
        assert desk.labels()[1] == {rows[0]: "y"}


def test_doubtful_labels_come_up_for_review(tmp_path):
    truth = flower_truth()
    names = list(truth)
    with flowers_desk(tmp_path) as desk:
        for name in sorted(set(truth.values())):
            rows = [row for row, one in enumerate(names) if truth[one] == name][:12]
            desk.call("mark", {"who": "Ann", "rows": rows, "label": name})
        wrong = next(row for row, one in enumerate(names) if truth[one] == "marsh" and row > 300)
        desk.call("mark", {"who": "Ann", "rows": [wrong], "label": "alpine"})
        learned(desk)
        for _ in range(600):
            doubts = desk.call("review", {})["doubts"]
            if doubts:
                break
            learned(desk)
            time.sleep(0.05)
        assert doubts[0]["row"] == wrong
        assert doubts[0]["suggested"] == "marsh"


def test_labels_of_the_file_count(tmp_path):
    path = flowers(tmp_path)
    lines = path.read_text().splitlines()
    lines = [lines[0] + ",species", *(f"{line}," for line in lines[1:])]
    lines[1], lines[2] = lines[1] + "a", lines[2] + "b"
    path.write_text("\n".join(lines) + "\n")
    before = path.read_bytes()
    with opened(path, "--id", "id", "--label", "species") as desk:
        learned(desk)
        assert desk.labels()[1] == {0: "a", 1: "b"}
        assert desk.call("next", {"who": "Ann"})["rows"][0]["guess"]
    assert path.read_bytes() == before
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(TableError, match="belongs to another file"):
        opened(path, "--id", "id").__enter__()


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("a,b\n", [], "rows"),
        ("a,b\n1,2\n2,3\n3,5\n", ["--image", "c"], "no column 'c' to show"),
        ("a,b\n1,2\n2,3\n3,5\n", ["--overlap", "2"], "must be a number from 0 to 1"),
        ("a,b\n1,2\n2,3\n3,5\n", ["--class-prior", "1,2"], "classes come and go"),
        ("a,b\n1,2\n2,3\n3,5\n", ["--port", "99999"], "65535"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, content, options, said):
    path = tmp_path / "a.csv"
    path.write_text(content)
    command = ["label", str(path), "--no-browser", "--quiet", *options]
    try:
        code = main(command)
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_learner_that_fails_says_so(tmp_path, monkeypatch):
    def broken(_):
        raise MemoryError("too large")

    monkeypatch.setattr(Learner, "_begin", broken)
    with flowers_desk(tmp_path) as desk:
        desk._learner._thread.join()
        progress = desk.call("mark", {"who": "Ann", "rows": [0], "label": "x"})["progress"]
        assert progress["error"] == "MemoryError: too large"
        assert desk.labels()[1] == {0: "x"}
