"""What learns in the background: soon, together, and without anybody waiting for slower things."""

from threading import Event

import pytest

from labelling_kit import flower_truth, flowers_desk, learned
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.labelling import learner


@pytest.fixture
def desk(tmp_path):
    """Return a desk with six labels."""
    truth = flower_truth()
    with flowers_desk(tmp_path) as made:
        learned(made)
        for _ in range(6):
            label_next(made, truth)
        learned(made)
        made.truth = truth
        yield made


def label_next(desk, truth):
    row = desk.call("next", {"who": "Ann"})["rows"][0]
    return desk.call("mark", {"who": "Ann", "rows": [row["row"]], "label": truth[row["id"]]})


def test_nobody_waits_for_doubtful_labels(desk, monkeypatch):
    begun, go_on = Event(), Event()
    find = learner.find_label_errors

    def slow(clf):
        begun.set()
        assert go_on.wait(60)
        return find(clf)

    monkeypatch.setattr(learner, "find_label_errors", slow)
    label_next(desk, desk.truth)
    assert begun.wait(60)
    label_next(desk, desk.truth)
    assert learned(desk)["steps"][-1]["labels"] == 8
    go_on.set()


def test_labels_that_come_together_are_learned_together(desk):
    before = len(desk.call("progress", {})["steps"])
    desk._learner._seconds = 10.0  # as if learning took so long
    for _ in range(5):
        label_next(desk, desk.truth)
    steps = learned(desk)["steps"]
    assert (steps[-1]["labels"], len(steps)) == (11, before + 1)


def test_a_skipped_row_changes_nothing_that_was_learned(desk, monkeypatch):
    def never(*_):
        raise AssertionError("nothing to learn")

    monkeypatch.setattr(ManifoldKNNClassifier, "set_labels", never)
    monkeypatch.setattr(learner, "_SOON", 60.0)  # nor is anything judged meanwhile
    row = desk.call("next", {"who": "Ann"})["rows"][0]["row"]
    desk.call("mark", {"who": "Ann", "rows": [row], "kind": "skip"})
    progress = learned(desk)
    assert (progress["error"], progress["steps"][-1]["labels"]) == ("", 6)


def test_a_quick_walk_is_followed_by_a_whole_one(desk):
    desk._learner._full_seconds = 100.0  # as if it took so long
    label_next(desk, desk.truth)
    quick = learned(desk)["steps"][-1]
    assert (quick["labels"], quick["accuracy"]) == (7, None)
    for _ in range(200):
        judged = learned(desk)["steps"][-1]
        if judged["accuracy"] is not None:
            break
        Event().wait(0.05)
    assert judged["labels"] == 7
    assert 0 < judged["low"] <= judged["accuracy"] <= 1
