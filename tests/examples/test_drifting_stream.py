"""The example of a drifting stream: online learning follows where one fit does not."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

drifting_stream = pytest.importorskip("drifting_stream")


def test_running_means():
    values = np.arange(30.0)
    expected = [np.mean(values[max(0, i - 9) : i + 1]) for i in range(30)]
    np.testing.assert_allclose(drifting_stream.smooth(values), expected)


def test_online_follows_where_one_fit_does_not(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(drifting_stream, "N_CHUNKS", 40)
    monkeypatch.setattr(drifting_stream, "TURN", 0.5 * np.pi)
    accuracy, _, refreshed, _ = drifting_stream.run(0)
    means = {name: np.mean(values[-10:]) for name, values in accuracy.items()}
    assert means["fit once"] < 0.7
    assert means['online, refresh="auto"'] > 0.95
    assert refreshed
    path = tmp_path / "picture.png"
    assert drifting_stream.main(["--out", str(path), "--seeds", "1"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "refresh" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]
