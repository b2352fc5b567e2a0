"""The benchmark of streams: its split, its tables, its literal fit, and a small run."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import online

from manifoldknn import ManifoldKNNClassifier


def rings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = rng.uniform(0, 2 * np.pi, n)
    X = (1 + y)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + 0.05 * rng.normal(size=X.shape), y


def test_sizes_of_online_sets_share_their_order():
    _, y = rings()
    known, partly, stream = online.split(y, 3, 100)
    more, _, longer = online.split(y, 3, 300)
    assert len(known) + len(stream) == len(more) + len(longer) == 400
    assert len(np.unique(np.concatenate([known, stream]))) == 400
    np.testing.assert_array_equal(stream, longer[-100:])
    np.testing.assert_array_equal(known[: len(more)], more)
    assert np.bincount(partly[partly >= 0]).tolist() == [10, 10]
    np.testing.assert_array_equal(partly[:20], y[known[:20]])


def test_the_papers_method_as_it_stands():
    X, y = rings()
    known, partly, _ = online.split(y, 0, 100)
    clf = ManifoldKNNClassifier(graph="full").fit(X[known], partly)
    plain = online.plain_fit(X[known], partly)
    rest = partly < 0
    assert (plain[rest] == clf.transduction_[rest]).mean() > 0.99


def test_tables():
    rows = [{"set": "a", "n": 12345, "x": 0.12345}, {"set": "b", "n": 1, "x": 54321.0}]
    assert online.table(rows).splitlines() == [
        "| set | n | x |",
        "| --- | --- | --- |",
        "| a | 12,345 | 0.123 |",
        "| b | 1 | 54,321 |",
    ]


@pytest.mark.parametrize("part", ["labels", "predict"])
def test_results_are_kept_and_shown(part, tmp_path, monkeypatch, capsys):
    X, y = rings(6435)
    monkeypatch.setattr(online, "data", lambda _: (X, y))
    monkeypatch.setattr(online, "SETS", {"rings": "rings"})
    (tmp_path / "online.json").write_text(
        json.dumps({"error": {"rows": [{"a": 1}], "when": "then", "machine": {"cores": "2"}}})
    )
    online.main([part, "--quick", "--out", str(tmp_path)])
    assert capsys.readouterr().out.startswith(part)
    page = (tmp_path / "online.md").read_text(encoding="utf-8")
    assert "## error" in page
    assert f"## {part}" in page
    assert "Measured on then: 2." in page
    assert not list(tmp_path.glob("*.part"))
