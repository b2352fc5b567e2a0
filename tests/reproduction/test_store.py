"""What is stored comes back exactly; what is not whole or not ours counts as not there."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cheap_experiment as cheap
from manifoldknn.reproduction.experiment import Cell, Plan
from manifoldknn.reproduction.store import Store, extras, only_run, plain_rows

EXPERIMENT = replace(cheap.EXPERIMENT, columns=["a", "b"])
CELL = Cell("cheap", ("usps", "k/NN", 3, None, 0.1))
HOLD = (
    "import pathlib, sys, time; from manifoldknn.reproduction.store import only_run\n"
    "with only_run(pathlib.Path(sys.argv[1])):\n"
    "    print('held', flush=True); time.sleep(600)\n"
)
ROWS = [{"a": "x", "b": 0.1 + 0.2}, {"a": None, "b": 3}]


@pytest.fixture
def store(tmp_path):
    made = Store.open(tmp_path / "run", Plan(), ["cheap"], resume=False)
    made.begin()
    return made


def same(one, other):
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text('aÄ"\n\\,π\ud800', max_size=5)
)


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": scalars, "b": scalars}), max_size=5))
def test_rows_come_back_exactly(tmp_path_factory, rows):
    store = Store(tmp_path_factory.mktemp("s"), Plan(), [], "")
    store.save(EXPERIMENT, CELL, rows, 1.5)
    found = store.load(EXPERIMENT, CELL)
    assert found.seconds == 1.5
    assert len(found.rows) == len(rows)
    for a, b in zip(found.rows, rows):
        assert list(a) == ["a", "b"]
        assert all(type(a[k]) is type(b[k]) and same(a[k], b[k]) for k in a)


def test_any_truncation_counts_as_not_measured(store):
    assert store.load(EXPERIMENT, CELL) is None
    store.save(EXPERIMENT, CELL, ROWS, 1.0)
    path = store.path(CELL)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.load(EXPERIMENT, CELL) is None
    path.write_bytes(whole)
    assert store.load(EXPERIMENT, CELL).rows == ROWS


@pytest.mark.parametrize("text", ["", "[]", "null", '{"check": 1}', "\udcff", '"text"'])
def test_foreign_files_count_as_not_measured(store, text):
    path = store.path(CELL)
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert store.load(EXPERIMENT, CELL) is None


def test_edited_moved_and_other_settings_count_as_not_measured(store):
    store.save(EXPERIMENT, CELL, ROWS, 1.0)
    path, other = store.path(CELL), replace(CELL, key=("usps",))
    store.path(other).write_bytes(path.read_bytes())
    assert store.load(EXPERIMENT, other) is None
    for plan in (Plan(seed=1), Plan(quick=True)):
        assert Store(store.folder, plan, [], "").load(EXPERIMENT, CELL) is None
    assert store.load(replace(EXPERIMENT, columns=["b", "a"]), CELL) is None
    assert store.load(replace(EXPERIMENT, name="other"), CELL) is None
    edited = json.loads(path.read_text())
    edited["rows"][0]["b"] = 0.3
    path.write_text(json.dumps(edited))
    assert store.load(EXPERIMENT, CELL) is None


def test_files_differ_where_names_do_not(store):
    keys = [
        ("a b",),
        ("a-b",),
        ("a", "b"),
        ("A", "b"),
        (1,),
        (1.5,),
        ("1",),
        (True,),
        ("../..",),
        (),
    ]
    paths = [store.path(Cell("cheap", key)) for key in keys]
    assert len({str(path).lower() for path in paths}) == len(keys)
    assert {path.parent for path in paths} == {store.folder / "cells" / "cheap"}


def test_plain_rows_refuse_what_cannot_be_stored():
    assert plain_rows([{"a": np.float32(0.5), "b": np.bool_(True)}], ["a", "b"]) == [
        {"a": 0.5, "b": True}
    ]
    with pytest.raises(ValueError, match="has the columns"):
        plain_rows([{"a": 1}], ["a", "b"])
    with pytest.raises(ValueError, match="'b' holds a list"):
        plain_rows([{"a": 1, "b": [1]}], ["a", "b"])


def test_a_run_is_gone_on_with_only_if_asked_and_the_same(store, monkeypatch):
    folder = store.folder
    with pytest.raises(ValueError, match=r"holds a run already.*--resume.*--out"):
        Store.open(folder, Plan(), ["cheap"], resume=False)
    again = Store.open(folder, Plan(), ["fig1", "cheap"], resume=True)
    assert again.names == ["cheap", "fig1"]
    assert again.started == store.started
    assert Store.begun(folder) == ["cheap"]
    again.begin()
    assert Store.begun(folder) == ["cheap", "fig1"]
    with pytest.raises(ValueError, match="seed 0 and not 1"):
        Store.open(folder, Plan(seed=1), [], resume=True)
    with pytest.raises(ValueError, match="quick False and not True"):
        Store.open(folder, Plan(quick=True), [], resume=True)
    monkeypatch.setattr("manifoldknn.__version__", "99")
    with pytest.raises(ValueError, match="and not 99"):
        Store.open(folder, Plan(), [], resume=True)


def test_a_run_with_another_package_of_extras_is_not_gone_on_with(store, monkeypatch):
    path = store.folder / "run.json"
    run = json.loads(path.read_text())
    assert run["extras"] == extras()
    monkeypatch.setattr("manifoldknn.reproduction.store.extras", lambda: {"graphlearning": "9.9"})
    with pytest.raises(ValueError, match=r"begun with graphlearning .* and not 9\.9"):
        Store.open(store.folder, Plan(), [], resume=True)
    del run["extras"]  # as older runs have it: unknown
    path.write_text(json.dumps(run))
    Store.open(store.folder, Plan(), [], resume=True).begin()
    assert json.loads(path.read_text())["extras"] == {"graphlearning": "9.9"}
    path.write_text(json.dumps(run | {"extras": 3}))
    with pytest.raises(ValueError, match="cannot be used"):
        Store.open(store.folder, Plan(), [], resume=True)


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    for resume in (False, True):
        with pytest.raises(ValueError, match="holds other files and no run"):
            Store.open(tmp_path, Plan(), [], resume=resume)
    with pytest.raises(ValueError, match="is a file"):
        Store.open(tmp_path / "thesis.txt", Plan(), [], resume=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    Store.open(empty, Plan(), [], resume=False)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 9}', '{"format": 1, "experiments": []}'])
def test_an_unusable_note_of_the_run_is_named(store, text):
    (store.folder / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"run\.json cannot be used .*remove its folder"):
        Store.open(store.folder, Plan(), [], resume=True)


def test_what_a_killed_run_was_writing_is_cleared_away(store):
    store.save(EXPERIMENT, CELL, ROWS, 1.0)
    left = store.path(CELL).parent / ".cell.json.abc.part"
    left.write_text("{")
    Store.open(store.folder, Plan(), [], resume=True).begin()
    assert not left.exists()
    assert store.load(EXPERIMENT, CELL) is not None
    early = store.folder.parent / "early"
    early.mkdir()
    (early / ".run.json.xyz.part").write_text("")
    Store.open(early, Plan(), ["cheap"], resume=False).begin()
    assert [path.name for path in early.iterdir()] == ["run.json"]


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
