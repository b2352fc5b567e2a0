"""From nothing to labels: the queue, several people, a new start, bad files."""

import base64
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from labelling_kit import flower_truth, flowers, flowers_desk, learned, opened
from manifoldknn.cli.main import main
from manifoldknn.cli.options import build_parser
from manifoldknn.labelling.learner import Learner
from manifoldknn.labelling.project import open_desk
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
        (
            "a,b\nx,y\nz,w\nu,v\n",
            ["--text", "a", "--image", "b"],
            "embeddings of texts or pictures",
        ),
        ("a,b\nx,y\nz,w\nu,v\n", ["--text", "a"], "need embeddings as columns"),
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
        assert (progress["error"], progress["working"]) == ("MemoryError: too large", "")
        assert desk.labels()[1] == {0: "x"}


def test_nobody_is_told_on_the_map_what_they_should_say_blindly(tmp_path):
    with flowers_desk(tmp_path, "--overlap", "1", "--classes", "a,b") as desk:
        for row, name in ((0, "a"), (300, "b")):
            desk.call("mark", {"who": "Ann", "rows": [row], "label": name})
        learned(desk)

        def ringed(who):
            told = desk.call("answers", {"who": who})
            given, said = (
                np.frombuffer(base64.b64decode(told[k]), "<i2") for k in ("given", "said")
            )
            assert (said[1:300] >= 0).all()
            assert ((given == -1) | (said == given)).all()
            assert said[0] == given[0]
            return np.flatnonzero(given >= 0).tolist()

        assert (ringed("Ann"), ringed("Bob")) == ([0, 300], [])
        shown = desk.call("next", {"who": "Bob"})["rows"][0]  # what waits for a second opinion
        assert (shown["row"], shown["why"], shown["guess"], shown["near"]) == (0, None, [], [])
        desk.call("mark", {"who": "Bob", "rows": [0], "label": "b"})
        desk.call("settle", {"who": "Bob", "rows": [0], "label": "a"})
        assert ringed("Bob") == [0]
        assert [one["row"] for one in desk.call("row", {"row": 5, "who": "Bob"})["near"]] == [0]


def test_guesses_follow_renamed_classes_at_once(tmp_path):
    with flowers_desk(tmp_path) as desk:
        for row, name in ((0, "a"), (300, "b"), (599, "c")):
            desk.call("mark", {"who": "Ann", "rows": [row], "label": name})
        learned(desk)
        desk._learner.stop()  # nothing is learned from here on
        before = dict(desk.call("row", {"row": 5, "who": "Ann"})["guess"])
        desk.call("classes", {"who": "Ann", "old": "b", "new": "c"})
        after = desk.call("row", {"row": 5, "who": "Ann"})["guess"]
        assert dict(after) == pytest.approx({"a": before["a"], "c": before["b"] + before["c"]})
        assert set(desk.column(guessed=True)) == {"a", "c"}
        assert b"b,model" not in desk.export("csv")
        desk.call("classes", {"who": "Ann", "old": "c", "new": "d"})
        desk.call("undo", {"who": "Ann"})
        guesses = desk.call("row", {"row": 5, "who": "Ann"})["guess"]
        assert {name for name, _ in guesses} == {"a"}  # of c it is not known yet
        with pytest.raises(ValueError, match="no class 'b' any more"):
            desk.call("mark", {"who": "Ann", "rows": [5], "label": "b", "known": True})


def test_whoever_skips_gets_other_rows(tmp_path):
    with flowers_desk(tmp_path) as desk:
        learned(desk)
        held = desk.call("next", {"who": "Bob"})["rows"][0]["row"]
        queue = [row["row"] for row in desk.call("next", {"who": "Ann", "n": 199})["rows"]]
        assert held not in queue
        number = desk.call("mark", {"who": "Ann", "rows": queue, "kind": "skip"})["progress"][
            "number"
        ]
        assert desk.call("next", {"who": "Ann", "n": 500})["rows"][399]
        assert learned(desk)["learned"] == number
        fresh = desk.call("next", {"who": "Ann", "n": 100})["rows"]
        assert not {row["row"] for row in fresh} & {*queue}
        assert all("typical" in row["why"] for row in fresh)  # chosen, not the first of the file


def test_rows_passed_over_are_listed(tmp_path):
    with flowers_desk(tmp_path) as desk:
        desk.call("mark", {"who": "Ann", "rows": [3, 4], "kind": "skip"})
        told = desk.call("mark", {"who": "Ann", "rows": [*range(5, 600)], "kind": "unsure"})
        desk.call("mark", {"who": "Bob", "rows": [0, 1, 2, 4], "label": "x"})
        assert len(told["rows"]) == 1
        told = desk.call("next", {"who": "Ann"})
        assert (told["rows"], told["ahead"], told["progress"]["passed"]) == ([], [], 596)
        passed = desk.call("review", {"who": "Ann"})["passed"]
        assert passed[:2] == [
            {"row": 3, "id": "0004", "kind": "skip"}, {"row": 5, "id": "0006", "kind": "unsure"},
        ]  # fmt: skip
        assert desk.call("review", {"who": "Bob"})["passed"] == []


def test_the_row_after_is_named_so_that_its_picture_can_be_fetched(tmp_path):
    with flowers_desk(tmp_path) as desk:
        learned(desk)
        told = desk.call("next", {"who": "Ann"})
        marked = desk.call("mark", {"who": "Ann", "rows": [told["rows"][0]["row"]], "kind": "skip"})
        assert [row["row"] for row in marked["rows"]] == told["ahead"]


def test_dropped_columns_are_not_shown_unless_named(tmp_path):
    flowers(tmp_path)
    path = str(tmp_path / "flowers.csv")
    told = {}
    for show in ([], ["--show", "site", "height"]):
        parsed = build_parser().parse_args(["label", path, "--drop", "site", "spotted", *show])
        desk, _ = open_desk(parsed)
        told[bool(show)] = list(desk.rows.cells)
        desk.close()  # also one that was never opened
    assert "height" in told[False]
    assert not {"site", "spotted"} & {*told[False]}
    assert told[True] == ["site", "height"]


@pytest.mark.parametrize(
    ("values", "names", "pictures"),
    [
        ("digits", "pixel_{}", True),
        ("digits", "{}", True),
        ("random", "measured_{}", False),
    ],
)
def test_pixels_are_the_columns_of_the_file(tmp_path, values, names, pictures):
    X = load_digits().data[:200].astype(int)  # some columns are constant
    if values == "random":
        X = np.random.default_rng(0).random((200, 100)).round(4)
    header = ",".join(["id", *(names.format(k) for k in range(X.shape[1])), "note"])
    lines = [",".join([f"r{k}", *map(str, row), "abc"[k % 3]]) for k, row in enumerate(X.tolist())]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    with opened(path, "--id", "id") as desk:
        shown = desk.call("row", {"row": 7})
        about = desk.call("start", {})["pixels"]
        cells = dict(shown["cells"])
        if pictures:
            assert (
                np.frombuffer(base64.b64decode(shown["pixels"]), np.uint8).tolist() == X[7].tolist()
            )
            assert about["names"] == [names.format(k) for k in range(64)]
            assert (about["unit"], about["white"], cells) == (1, 16, {"note": "b"})
        else:
            assert (about, "pixels" in shown, len(cells)) == (None, False, 12)
