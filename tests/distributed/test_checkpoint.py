"""Folders of fits that were killed, without a cluster."""

import gc
import json
import os
import tempfile
from types import SimpleNamespace

import pytest

from manifoldknn.distributed import checkpoint
from manifoldknn.distributed.checkpoint import checkpoint_folder, temporary

CLIENT = SimpleNamespace(run=lambda look, *where: {"worker": look(*where)})
ABOUT = {"rows": "some"}


def test_the_folder_says_whose_it_is(tmp_path):
    with checkpoint_folder(CLIENT, tmp_path / "new", ABOUT, False) as folder:
        assert os.listdir(folder.path) == ["checkpoint.json"]
        assert json.loads((folder.path / "checkpoint.json").read_text()) == ABOUT
    with pytest.raises(ValueError, match="holds a checkpoint already"):
        checkpoint_folder(CLIENT, tmp_path / "new", ABOUT, False).__enter__()
    with pytest.raises(ValueError, match="rows was different"):
        checkpoint_folder(CLIENT, tmp_path / "new", {"rows": "others"}, True).__enter__()


def test_killed_before_there_is_a_checkpoint(tmp_path):
    """What is left then was in the way of the next run."""
    for name in (f"{checkpoint._SEEN}1234", ".checkpoint.json.abcd1234.part"):
        (tmp_path / name).write_bytes(b"?")
    with checkpoint_folder(CLIENT, tmp_path, ABOUT, False) as folder:
        assert os.listdir(folder.path) == ["checkpoint.json"]


def test_killed_while_the_checkpoint_is_written(tmp_path, monkeypatch):
    """It was an empty file, with which nobody could go on."""

    def killed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint_folder(CLIENT, tmp_path, ABOUT, False).__enter__()
    assert not (tmp_path / "checkpoint.json").exists()


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("a")
    with pytest.raises(ValueError, match="not empty, and holds no checkpoint"):
        checkpoint_folder(CLIENT, tmp_path, ABOUT, False).__enter__()
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_a_temporary_folder_goes_with_its_holder_or_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "manifoldknn-abcd1234.part").mkdir()
    (tmp_path / "manifoldknn-abcd1234.part" / "part-00000.X.npy").write_bytes(b"?")
    folder = temporary()
    assert os.listdir(tmp_path) == [folder.path.name]
    folder.write("part", 0, {})
    del folder
    gc.collect()
    assert os.listdir(tmp_path) == []
