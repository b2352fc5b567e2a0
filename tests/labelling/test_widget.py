"""The page in a notebook: one module, the same questions, labels as a column."""

import shutil
import subprocess

import pandas as pd
import polars as pl
import pytest

import manifoldknn
from labelling_kit import flowers
from manifoldknn.labelling.widget import answered, page_module

anywidget = pytest.importorskip("anywidget", reason="needs manifoldknn[notebook]")


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_labels_come_back_as_a_column(tmp_path, library):
    frame = library.read_csv(flowers(tmp_path))
    widget = manifoldknn.label(frame, id="id", classes=["a", "b"], who="Ann")
    try:
        told = []
        widget.send = lambda message: told.append(message)
        question = {
            "number": 1,
            "name": "mark",
            "question": {"who": "Ann", "rows": [3], "label": "a"},
        }
        widget._msg_callbacks(widget, question, [])
        widget._msg_callbacks(widget, question | {"number": 2, "name": "nothing"}, [])
        assert told[0]["number"] == 1
        assert told[0]["told"]["progress"]["labelled"] == 1
        assert set(told[1]) == {"number", "error"}
        column = widget.labels
        assert (len(column), column[3], column[4]) == (600, "a", None)
        if library is pd:
            frame["label"] = column
            assert frame["label"].notna().sum() == 1
    finally:
        widget.close()


def test_no_frame_is_refused():
    with pytest.raises(ValueError, match="pandas or polars DataFrame"):
        manifoldknn.label([[1, 2]])


def test_bad_messages_are_answered():
    assert set(answered(None, {"number": 3, "question": {}})) == {"number", "error"}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to read scripts")
def test_one_module_of_all(tmp_path):
    path = tmp_path / "page.mjs"
    path.write_text(page_module(), encoding="utf-8")
    subprocess.run(["node", "--check", str(path)], check=True)
    assert "import " not in page_module().split("const render")[0].split("//")[0]
