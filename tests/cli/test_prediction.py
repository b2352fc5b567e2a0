"""Saved models answer files as classify does, and say what they find odd."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.cli.main import main
from manifoldknn.files.archive import read_archive, write_archive

FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"
FORM = {"kind": "manifoldknn model", "version": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model of the flowers."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "f.csv").write_bytes(FLOWERS.read_bytes())
    arguments = ["--label", "species", "--id", "id", "--quiet", "--save", str(folder / "m.mknn")]
    assert main(["classify", str(folder / "f.csv"), *arguments]) == 0
    return folder


def predict(capsys, *arguments):
    capsys.readouterr()
    code = main(["predict", *map(str, arguments), "--quiet"])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, words, *arguments):
    code, out, err = predict(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert words in err


def test_odd_rows_are_counted(folder, capsys, tmp_path):
    lines = FLOWERS.read_text().splitlines()
    cells = lines[1].split(",")
    place = lines[0].split(",").index("height")
    cells[place] = "1e6"
    (tmp_path / "a.csv").write_text("\n".join([*lines[:1], ",".join(cells), *lines[2:9]]) + "\n")
    code, out, _ = predict(capsys, folder / "m.mknn", tmp_path / "a.csv", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["outside_range"] == {"height": 1}
    assert data["off_manifold"] >= 1
    code, out, _ = predict(capsys, folder / "m.mknn", tmp_path / "a.csv", "--force")
    assert "values outside the range that the model was fitted on: 'height' 1" in out
    assert f"odd rows    {data['off_manifold']} of 8 with off_manifold above 1" in out


def test_a_new_category_lowers_the_confidence(folder, capsys, tmp_path):
    known, new = [], []
    header, *lines = FLOWERS.read_text().splitlines()
    place = header.split(",").index("site")
    for line in lines[:40]:
        cells = line.split(",")
        known.append(line)
        new.append(",".join([*cells[:place], "ultraviolet", *cells[place + 1 :]]))
    told = []
    for name, rows in (("known", known), ("new", new)):
        (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")
        arguments = [tmp_path / name, "--format", "csv", "--out", tmp_path / f"{name}.csv"]
        code, out, _ = predict(capsys, folder / "m.mknn", *arguments, "--json")
        assert code == 0
        told.append(json.loads(out))
    assert told[1]["mean_confidence"] < told[0]["mean_confidence"] - 0.2
    assert told[1]["off_manifold"] == 40
    assert any("'site': 40 of 40 rows hold a new category" in note for note in told[1]["notes"])


def test_what_a_confidence_is(folder, capsys, tmp_path):
    """A model remembers whether hidden labels have set its sharpness."""
    made = ["classify", str(folder / "f.csv"), "--label", "species", "--quiet", "--sharpness", "2"]
    model = tmp_path / "given.mknn"
    assert main([*made, "--out", str(tmp_path / "o.csv"), "--save", str(model)]) == 0
    for path, calibrated in ((folder / "m.mknn", True), (model, False)):
        out = ["--out", tmp_path / f"{calibrated}.csv"]
        _, said, _ = predict(capsys, path, folder / "f.csv", *out, "--json")
        data = json.loads(said)
        assert data["calibrated"] is calibrated
        assert data["confidence_is"].startswith("a probability" if calibrated else "a guess")
        _, said, _ = predict(capsys, path, folder / "f.csv", *out, "--force")
        assert f"on average; it is {data['confidence_is']}\n" in said


def test_warnings_are_notes(folder, capsys, tmp_path, monkeypatch):
    real = ManifoldKNNClassifier.score_samples

    def warning(self, *arguments):
        warnings.warn("raise max_iter", ConvergenceWarning, stacklevel=1)
        return real(self, *arguments)

    monkeypatch.setattr(ManifoldKNNClassifier, "score_samples", warning)
    target = tmp_path / "o.csv"
    code, out, _ = predict(capsys, folder / "m.mknn", folder / "f.csv", "--out", target, "--json")
    assert code == 0
    assert "raise --max-iter" in json.loads(out)["notes"]


def test_no_rows(folder, capsys, tmp_path):
    (tmp_path / "a.csv").write_text(FLOWERS.read_text().splitlines()[0] + "\n")
    refused(capsys, "no rows", folder / "m.mknn", tmp_path / "a.csv")


def test_the_model_is_not_written_over(folder, capsys):
    before = (folder / "m.mknn").read_bytes()
    model = folder / "m.mknn"
    refused(capsys, "the model itself", model, folder / "f.csv", "--out", model, "--force")
    assert model.read_bytes() == before


def test_labels_keep_their_type(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 2)) + 6 * (np.arange(60) % 2)[:, None]
    known = np.arange(60) < 8
    for y, dtype in (
        (np.where(known, np.arange(60) % 2, -1), np.int64),
        (np.where(known, np.arange(60) % 2 + 0.5, np.nan), np.float64),
        (np.where(known, np.array(["a", "b"] * 30), ""), np.dtype("<U1")),
    ):
        np.savez("a.npz", X=X, y=y)
        np.savez("new.npz", X=X)
        assert main(["classify", "a.npz", "--label", "y", "--save", "m", "--quiet", "--force"]) == 0
        assert predict(capsys, "m", "new.npz", "--force")[0] == 0
        with np.load("a-labelled.npz") as one, np.load("new-labelled.npz") as two:
            assert one["predicted"].dtype == two["predicted"].dtype == dtype
            np.testing.assert_array_equal(one["predicted"][8:], two["predicted"][8:])


def test_parquet_types(capsys, tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=60) + 6 * (np.arange(60) % 2)
    y = pa.array([2**63 + i % 2 if i < 8 else None for i in range(60)], pa.uint64())
    pq.write_table(pa.table({"x": x, "y": y}), "a.parquet")
    assert main(["classify", "a.parquet", "--label", "y", "--save", "m", "--quiet"]) == 0
    pq.write_table(pa.table({"x": x}), "new.parquet")
    assert predict(capsys, "m", "new.parquet")[0] == 0
    one, two = pq.read_table("a-labelled.parquet"), pq.read_table("new-labelled.parquet")
    assert one["predicted"].to_pylist() == [2**63 + i % 2 for i in range(60)]
    assert two["predicted"].to_pylist() == one["predicted"].to_pylist()
    for column, words in {
        "dates": pa.array([0, 1], pa.timestamp("s")), "booleans": [True, False],
        "list": [[1], [2]], "binary": [b"a", b"b"],
    }.items():  # fmt: skip
        pq.write_table(pa.table({"x": words}), "bad.parquet")
        refused(capsys, f"'x' must hold numbers, as when the model was fitted, and holds {column}",
                "m", "bad.parquet")  # fmt: skip
    pq.write_table(pa.table({"x": x, "n": pa.nulls(60), "y": y}), "n.parquet")
    assert main(["classify", "n.parquet", "--label", "y", "--quiet", "--json"]) == 0
    assert "left out 'n': empty" in json.loads(capsys.readouterr().out)["notes"][0]


def test_the_index_of_a_frame_is_no_feature(capsys, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=60) + 6 * (np.arange(60) % 2), "y": ["a", "b"] * 4 + [None] * 52},
        index=pd.Index(rng.permutation(1000)[:60], name="key"),
    )
    frame.to_parquet("a.parquet")
    assert main(["classify", "a.parquet", "--label", "y", "--quiet", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["features"] == 1
    assert "left out 'key': the index of a frame" in data["notes"]
    arguments = ["--features", "x", "key", "--quiet", "--json", "--force"]
    assert main(["classify", "a.parquet", "--label", "y", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 2


def altered_extra(folder, change):
    arrays, data = read_archive(folder / "m.mknn", **FORM)
    data["extra"] = change(data["extra"])
    write_archive(folder / "bad.mknn", arrays, data, **FORM)
    return folder / "bad.mknn"


@pytest.mark.parametrize(
    "change",
    [{"label": 3}, {"label": ["a"]}, {"label_type": "x"}, {"label_type": {}}, {"plans": []},
     {"plans": None}, {"scale": 1}, {"plans": [{"name": "height"}]}],
    ids=str,
)  # fmt: skip
def test_bad_descriptions_name_the_file(folder, capsys, tmp_path, change):
    path = altered_extra(folder, lambda extra: extra | change)
    refused(capsys, f"{path} is no model", path, folder / "f.csv", "--out", tmp_path / "o.csv")


STRANGE = st.recursive(
    st.sampled_from([None, -1, 10**400, 1.5, "x", "", True, "height", "number", 1e308]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.data())
def test_anything_in_the_description_ends_in_an_answer_or_one_line(folder, capsys, data):
    """With checksums made good again, `predict` writes a table or fails in one line."""

    def change(extra):
        plan = data.draw(st.sampled_from(extra["plans"]))
        target = data.draw(st.sampled_from([extra, plan]))
        key = data.draw(st.sampled_from(sorted(target)))
        target[key] = data.draw(STRANGE)
        return extra

    path, out = altered_extra(folder, change), folder / "fuzz.csv"
    lines = FLOWERS.read_text().splitlines()
    (folder / "few.csv").write_text("\n".join(lines[:6]) + "\n")
    code, _, err = predict(capsys, path, folder / "few.csv", "--out", out, "--force")
    assert code in (0, 2), err
    assert err.count("\n") == (1 if code else 0)
    assert not [name for name in os.listdir(folder) if name.endswith(".part")]
