"""What is missing is measured, once; what is timed runs by itself."""

import io
from dataclasses import replace
from itertools import pairwise

import pytest

import cheap_experiment as cheap
from manifoldknn.reproduction.experiment import Cell, Plan
from manifoldknn.reproduction.runner import cells_of, measure_cells
from manifoldknn.reproduction.store import Store

ALL = cheap.N_CELLS + cheap.N_ALONE


def run(folder, jobs=2, plan=None):
    store = Store.open(folder, plan or Plan(), ["cheap"], resume=True)
    store.begin()
    out = io.StringIO()
    measure_cells({cheap.PLACE: cheap.EXPERIMENT}, store, jobs=jobs, out=out)
    return store, out.getvalue()


def missing(store):
    return [c for c in cheap.cells(store.plan) if store.load(cheap.EXPERIMENT, c) is None]


def test_everything_is_measured_and_then_nothing_again(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("CHEAP_LOG", str(log))
    store, out = run(tmp_path / "r")
    assert "100%" in out
    assert not missing(store)
    assert len(log.read_text().splitlines()) == ALL
    store, _ = run(tmp_path / "r")
    assert not missing(store)
    assert len(log.read_text().splitlines()) == ALL


def test_spoilt_cells_are_measured_again(tmp_path):
    store, *_ = run(tmp_path / "r", plan=Plan(quick=True))
    cell = cheap.cells(Plan())[0]
    path = store.path(cell)
    before = store.load(cheap.EXPERIMENT, cell)
    path.write_bytes(path.read_bytes()[:-20])
    store, *_ = run(tmp_path / "r", plan=Plan(quick=True))
    after = store.load(cheap.EXPERIMENT, cell)
    assert [r["value"] for r in after.rows] == [r["value"] for r in before.rows]


def test_cells_that_are_timed_run_alone_and_after_the_others(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("CHEAP_LOG", str(log))
    monkeypatch.setenv("CHEAP_SLEEP", "0.05")
    run(tmp_path / "r", jobs=3)
    lines = [line.split() for line in log.read_text().splitlines()]
    spans = {name: (float(start), float(end)) for name, start, end, *_ in lines}
    alone = [spans.pop(name) for name in sorted(spans) if name.startswith("alone")]
    assert len(alone) == cheap.N_ALONE
    for start, end in alone:
        assert all(end <= s or e <= start for s, e in spans.values())
    assert alone[0][1] <= alone[1][0]
    shared = sorted(spans.values())
    assert any(b[0] < a[1] for a, b in pairwise(shared))  # the others did overlap


def test_failures_name_themselves_and_are_tried_again(tmp_path, monkeypatch):
    monkeypatch.setenv("CHEAP_FAIL", "shared3")
    store, out = run(tmp_path / "r")
    assert missing(store) == [Cell("cheap", ("shared", 3))]
    assert "manifoldknn: cheap shared 3 failed: RuntimeError: as wished\n" in out
    assert "Traceback" not in out
    monkeypatch.delenv("CHEAP_FAIL")
    store, out = run(tmp_path / "r")
    assert not missing(store)
    assert "failed" not in out


def test_cells_that_cannot_be_told_apart_are_refused(tmp_path):
    store = Store(tmp_path, Plan(), [], "")
    twice = replace(cheap.EXPERIMENT, cells=lambda _: [Cell("cheap", (1,))] * 2)
    with pytest.raises(ValueError, match="cells of cheap must differ"):
        cells_of(twice, store)
    foreign = replace(cheap.EXPERIMENT, cells=lambda _: [Cell("other", (1,))])
    with pytest.raises(ValueError, match="bear its name"):
        cells_of(foreign, store)
