"""Fits on a cluster of real processes against one machine."""

import json

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import manifoldknn.distributed.checkpoint as checkpoint
import manifoldknn.distributed.estimator as room
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.cli.main import main
from manifoldknn.distributed import DistributedManifoldKNN
from manifoldknn.distributed import stages as stages_room
from manifoldknn.distributed.cluster import check_cluster, connected

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def sheets(n=1500, d=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    t = rng.normal(size=(n, 2))
    X = np.column_stack([t, np.sin(t), 0.2 * rng.normal(size=(n, d - 4))])
    X[:, -1] += 1.2 * y
    labels = np.full(n, -1)
    for c in range(3):
        labels[np.flatnonzero(y == c)[:8]] = c
    return X.astype(np.float32), y, labels


@pytest.fixture
def all_workers_walk(monkeypatch):
    monkeypatch.setattr(room, "_ROWS_PER_WORKER", 100)


def lists_of(model):
    """Return lists by numbers in the input."""
    folder, n_parts = model.folder_, len(model.model_["offsets"]) - 1
    order = np.concatenate([folder.read("part", p, "order") for p in range(n_parts)])
    lists = np.concatenate([folder.read("lists", p, "order") for p in range(n_parts)])
    out = np.empty_like(lists)
    out[order] = lists
    return out


def edges_of(model):
    folder, n_parts = model.folder_, len(model.model_["offsets"]) - 1
    order = np.concatenate([folder.read("part", p, "order") for p in range(n_parts)])
    found = set()
    for p in range(n_parts):
        one, other = (order[folder.read("edges", p, end)] for end in ("one", "other"))
        found |= set(zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist()))
    return found


def shares(model):
    return model.label_distributions_.compute(scheduler="sync")


@pytest.mark.usefixtures("all_workers_walk")
def test_the_same_lists_give_the_same_edges_and_answers(client):
    X, _, labels = sheets(500)
    one = ManifoldKNNClassifier().fit(X, labels)
    lists = one.fitted_.lists
    model = DistributedManifoldKNN(
        client, n_parts=3, neighbors=(lists.indices, lists.distances)
    ).fit(X, labels)
    low, high, _ = one.fitted_.edges
    assert edges_of(model) == set(zip(low.tolist(), high.tolist()))
    np.testing.assert_allclose(shares(model), one.label_distributions_, atol=3e-4)
    np.testing.assert_array_equal(model.transduction_.compute(), one.transduction_)
    assert model.n_walk_tasks_ == 2
    assert np.isnan(model.recall_)
    bytes_each = model.halo_bytes_ / model.halo_numbers_
    assert 1 <= bytes_each <= 8


def test_lists_depend_neither_on_parts_nor_on_chunks(client):
    X, _, labels = sheets(1000, d=80)
    first = None
    for n_parts, chunk in ((1, 1000), (7, 333)):
        rows = da.from_array(X, chunks=(chunk, 50))
        model = DistributedManifoldKNN(client, n_parts=n_parts, random_state=3).fit(rows, labels)
        assert model.recall_ > 0.95
        assert model.transduction_.chunks[0] == rows.chunks[0]
        found = lists_of(model), model.transduction_.compute()
        first = first or found
        np.testing.assert_array_equal(found[0], first[0])
        assert (found[1] == first[1]).mean() > 0.999


@pytest.mark.usefixtures("all_workers_walk")
def test_few_rows_have_the_lists_and_answers_of_one_machine(client):
    X, _, labels = sheets(500, seed=2)  # one edge more or less changes a share by 0.15
    one = ManifoldKNNClassifier().fit(X, labels)
    model = DistributedManifoldKNN(client, n_parts=3).fit(X, labels)
    assert model.recall_ == 1.0
    np.testing.assert_array_equal(lists_of(model), one.fitted_.lists.indices)
    np.testing.assert_allclose(shares(model), one.label_distributions_, atol=1e-4)


def test_predict_save_and_load(client, tmp_path):
    X, _, labels = sheets()
    names = np.array(["apple", "pear", "plum", ""])[labels]
    model = DistributedManifoldKNN(client, n_parts=3).fit(X, names)
    new = X[:300] + np.float32(0.01)
    whole = model.predict_proba(new)
    lazy = model.predict_proba(da.from_array(new, chunks=(70, 6)))
    np.testing.assert_allclose(lazy.compute(scheduler="sync"), whole, atol=1e-6)
    frame = dd.from_pandas(pd.DataFrame(new), npartitions=3)
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(new))
    one = ManifoldKNNClassifier(neighbors="exact").fit(X, names)
    assert (model.predict(new) == one.predict(new)).mean() > 0.99
    model.save(tmp_path / "model")
    again = DistributedManifoldKNN.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(new), whole)
    np.testing.assert_array_equal(again.transduction_.compute(), model.transduction_.compute())
    assert again.sharpness_ == model.sharpness_
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "model")
    (tmp_path / "model" / "part-00001.parquet").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="is not whole"):
        DistributedManifoldKNN.load(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    with pytest.raises(ValueError, match="holds no model"):
        DistributedManifoldKNN.load(tmp_path / "model")


def test_a_frame_a_mapped_file_and_an_array_are_the_same(client, tmp_path):
    X, _, labels = sheets(600)
    expected = DistributedManifoldKNN(client, n_parts=2).fit(X, labels)
    np.save(tmp_path / "x.npy", X)
    mapped = DistributedManifoldKNN(client, n_parts=2)
    mapped.fit(np.load(tmp_path / "x.npy", mmap_mode="r"), labels)
    table = pd.DataFrame(X).add_prefix("x").assign(y=labels)
    frame = DistributedManifoldKNN(client, n_parts=2)
    frame.fit(dd.from_pandas(table, npartitions=3), "y")
    for model in (mapped, frame):
        np.testing.assert_array_equal(lists_of(model), lists_of(expected))
        np.testing.assert_allclose(shares(model), shares(expected), atol=1e-6)


def test_a_fit_that_was_cut_off_goes_on(client, tmp_path, monkeypatch):
    X, _, labels = sheets(600)
    model = DistributedManifoldKNN(client, tmp_path / "c", n_parts=2)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stages_room.Stages, "walk", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, labels)
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "c").glob("*.json")}
    assert "edges-00001.json" in made
    with pytest.raises(ValueError, match="holds a checkpoint already"):
        model.fit(X, labels)
    with pytest.raises(ValueError, match="is of another fit: data was different"):
        DistributedManifoldKNN(client, tmp_path / "c", n_parts=2, resume=True).fit(X + 1, labels)
    with pytest.raises(ValueError, match="tol was different"):
        DistributedManifoldKNN(client, tmp_path / "c", n_parts=2, resume=True, tol=0.1).fit(
            X, labels
        )
    model.set_params(resume=True).fit(X, labels)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "c").glob("*.json")}
    made.pop("checkpoint.json")
    assert made == {name: after[name] for name in made}
    expected = DistributedManifoldKNN(client, n_parts=2).fit(X, labels)
    np.testing.assert_allclose(shares(model), shares(expected), atol=1e-5)


def parquet(folder, X, labels, n_files=3):
    for number, rows in enumerate(np.array_split(np.arange(len(X)), n_files)):
        table = pd.DataFrame(X[rows]).add_prefix("x").assign(y=labels[rows])
        table.to_parquet(folder / f"part-{number}.parquet")
    return str(folder / "part-*.parquet")


def test_the_command(client, tmp_path, capsys):
    X, _, labels = sheets(600)
    pattern = parquet(tmp_path, X, labels)
    told = ["classify", pattern, "--label", "y", "--scheduler", client.scheduler.address]
    told += ["--checkpoint", str(tmp_path / "c"), "--json"]
    assert main([*told, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["rows"] == 600
    assert "walk:" in said.err
    assert "dashboard" in said.err
    found = pd.read_parquet(tmp_path / "out")
    assert list(found.columns) == ["predicted", "confidence", "margin"]
    assert (found.predicted[labels >= 0] == labels[labels >= 0]).all()
    assert main([*told, "--out", str(tmp_path / "again")]) == 2
    assert "holds a checkpoint already" in capsys.readouterr().out
    assert main([*told, "--out", str(tmp_path / "again"), "--resume"]) == 0
    assert pd.read_parquet(tmp_path / "again").equals(found)


def test_bad_input_is_told_before_heavy_work(client, tmp_path):
    X, _, labels = sheets(240)
    model = DistributedManifoldKNN(client, n_parts=2)
    rows = da.from_array(X, chunks=(20, 6))
    bad = X.copy()
    bad[7 * 20 + 3, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition 7 of 12 has a value that is missing.*'2'"):
        model.fit(da.from_array(bad, chunks=(20, 6)), labels)
    with pytest.raises(ValueError, match="240 rows, but y has 239"):
        model.fit(rows, labels[:-1])
    with pytest.raises(ValueError, match="240 rows, but y has 100"):
        model.fit(rows, da.from_array(labels[:100], chunks=10))
    with pytest.raises(ValueError, match="No row of any part has a label"):
        model.fit(rows, np.full(240, -1))
    pattern = parquet(tmp_path, X, labels)
    table = pd.DataFrame(X).add_prefix("x").assign(y=labels)
    table.rename(columns={"x3": "z"}).to_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(ValueError, match=r"part-2\.parquet has the column 'z'"):
        model.fit(pattern, "y")
    table.astype({"x1": "float64"}).to_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(ValueError, match="'x1' of type double"):
        model.fit(pattern, "y")
    with pytest.raises(ValueError, match="has no column 'w'"):
        model.fit(pattern, "w")
    table[["y"]].to_parquet(tmp_path / "bare.parquet")
    with pytest.raises(ValueError, match="has no column of numbers beside the labels"):
        model.fit(str(tmp_path / "bare.parquet"), "y")
    with pytest.raises(ValueError, match="No file is named"):
        model.fit(str(tmp_path / "nothing-*.parquet"), "y")
    with pytest.raises(ValueError, match="needs a checkpoint"):
        DistributedManifoldKNN(client, resume=True).fit(rows, labels)
    with pytest.raises(ValueError, match="n_parts=0"):
        DistributedManifoldKNN(client, n_parts=0).fit(rows, labels)


def test_places_and_clusters_that_cannot_be_used(client, tmp_path, monkeypatch):
    X, _, labels = sheets(240)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ValueError, match="cannot be used"):
        DistributedManifoldKNN(client, tmp_path / "file").fit(X, labels)
    monkeypatch.setattr(checkpoint, "_BYTES_PER_ROW", 1e15)
    with pytest.raises(ValueError, match="has room for"):
        DistributedManifoldKNN(client, tmp_path / "full").fit(X, labels)
    with pytest.raises(ValueError, match="No scheduler answers"):
        connected("tcp://127.0.0.1:1", timeout=2)
    monkeypatch.setattr("manifoldknn.__version__", "0.0.1")
    with pytest.raises(ValueError, match=r"the client has 0\.0\.1"):
        check_cluster(client)
