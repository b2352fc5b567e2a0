"""A folder belongs to one run, for as long as its process lives."""

import subprocess
import sys

import pytest

from manifoldknn.experiments.lock import only_run

HOLD = (
    "import pathlib, sys, time; from manifoldknn.experiments.lock import only_run\n"
    "with only_run(pathlib.Path(sys.argv[1])):\n"
    "    print('held', flush=True); time.sleep(600)\n"
)


def test_others_are_kept_out_until_the_holder_is_gone(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    folder = tmp_path / "new" / "run"
    with subprocess.Popen([sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match="another run is working in"), only_run(folder):
            pass
        holder.kill()
    with only_run(folder):
        pass
    assert list(folder.iterdir()) == []


def test_the_lock_ends_with_the_block_even_after_an_error(tmp_path):
    with pytest.raises(KeyError), only_run(tmp_path):
        raise KeyError
    with only_run(tmp_path):
        pass
