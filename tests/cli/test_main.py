"""The command as its users meet it: what it writes, what it says, and how it fails."""

import csv
import errno
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import manifoldknn.base.atomic
from manifoldknn import ManifoldKNNClassifier, persist
from manifoldknn.cli.main import main
from strategies import forced

FLOWERS = Path(__file__).parents[2] / "examples" / "flowers.csv"
NEW = ["predicted", "confidence", "margin", "off_manifold", "unreached"]


@pytest.fixture
def flowers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("flowers.csv").write_bytes(FLOWERS.read_bytes())
    return tmp_path


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def classify(capsys, *arguments, file="flowers.csv"):
    return run(capsys, "classify", file, "--label", "species", *arguments)


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def truth():
    script = FLOWERS.parent / "make_flowers.py"
    done = subprocess.run([sys.executable, script, "--truth"], capture_output=True, check=True)
    return {row["id"]: row["species"] for row in csv.DictReader(done.stdout.decode().splitlines())}


@pytest.mark.usefixtures("flowers")
def test_classify_labels_the_whole_file(capsys):
    code, out, err = classify(capsys, "--id", "id")
    assert code == 0
    rows = table("flowers-labelled.csv")
    right = truth()
    assert np.mean([right[r["id"]] == r["predicted"] for r in rows]) > 0.97
    assert list(rows[0])[-5:] == NEW
    assert all(r["predicted"] == r["species"] for r in rows if r["species"])
    assert all(0 <= float(r["margin"]) <= float(r["confidence"]) <= 1 for r in rows)
    before = FLOWERS.read_text().splitlines()
    after = Path("flowers-labelled.csv").read_text().splitlines()
    assert all(b.startswith(a + ",") for a, b in zip(before, after))
    for word in ("rows", "graph", "confidence", "accuracy", "time", "alpine", "flowers-labelled"):
        assert word in out
    assert "[manifoldknn] neighbours" in err
    assert sorted(os.listdir()) == ["flowers-labelled.csv", "flowers.csv"]


@pytest.mark.usefixtures("flowers")
def test_json_and_quiet(capsys):
    code, out, err = classify(capsys, "--json", "--quiet", "--out", "o.csv")
    data = json.loads(out)
    assert code == 0
    assert err == ""
    assert data["rows"] == 600
    assert data["labels_per_class"] == {"alpine": 3, "marsh": 3, "meadow": 3}
    assert sum(data["predicted_per_class"].values()) == 600
    assert 0 <= data["validation"]["accuracy"] <= 1
    assert data["calibrated"] is True
    assert data["vote"]["kind"] == "classes"
    assert data["vote"]["alpha"] == 1 - 0.3 * 9 / 600
    assert data["out"] == "o.csv"
    assert any("left out 'id'" in note for note in data["notes"])


@pytest.mark.usefixtures("flowers")
def test_save_and_predict(capsys):
    assert classify(capsys, "--id", "id", "--save", "m.mknn", "--quiet")[0] == 0
    rows = table("flowers-labelled.csv")
    code, out, _ = run(capsys, "predict", "m.mknn", "flowers.csv", "--out", "p.csv", "--json")
    assert code == 0
    again = table("p.csv")
    unlabelled = [i for i, row in enumerate(rows) if not row["species"]]
    assert [again[i]["predicted"] for i in unlabelled] == [rows[i]["predicted"] for i in unlabelled]
    assert "'id'" in json.loads(out)["notes"][0]


@pytest.mark.usefixtures("flowers")
def test_predict_names_columns(capsys):
    classify(capsys, "--id", "id", "--save", "m.mknn", "--quiet")
    text = FLOWERS.read_text()
    Path("a.csv").write_text(text.replace("petal_length", "petal_lenght"))
    code, _, err = run(capsys, "predict", "m.mknn", "a.csv")
    assert code == 2
    assert "'petal_length' (is it 'petal_lenght'?)" in err
    Path("b.csv").write_text(text.replace(",21.05,", ",tall,"))
    code, out, err = run(capsys, "predict", "m.mknn", "b.csv", "--quiet")
    assert (code, err) == (0, "")
    assert "note        'height': 1 of 596 cells could not be read, so missing ('tall')\n" in out


@pytest.mark.usefixtures("flowers")
def test_suggest_check_inspect(capsys):
    common = ["flowers.csv", "--label", "species", "--id", "id", "--quiet"]
    code, out, _ = run(capsys, "suggest", *common, "-n", "7", "--json")
    data = json.loads(out)["rows"]
    assert code == 0
    assert len({row["id"] for row in data}) == 7
    assert all(len(row["id"]) == 4 and row["reason"] for row in data)
    code, out, _ = run(capsys, "suggest", *common, "-n", "3", "--out", "s.csv")
    assert code == 0
    assert out.startswith("written     s.csv")
    assert len({row["id"] for row in table("s.csv")}) == 3
    code, out, _ = run(capsys, "inspect", *common)
    assert code == 0
    assert "components  1" in out
    code, out, _ = run(capsys, "inspect", *common, "--json")
    assert json.loads(out)["n_rows"] == 600


def test_what_is_unknown_is_null_to_programs(tmp_path, monkeypatch, capsys):
    """Two places only, so that the data have no dimension."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 2},{'ab'[i % 2] if i < 6 else ''}" for i in range(20)]
    Path("two.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    common = ["two.csv", "--label", "y", "--quiet"]
    code, out, _ = run(capsys, "inspect", *common, "--json")
    assert code == 0
    assert json.loads(out, parse_constant=pytest.fail)["intrinsic"] is None
    code, out, _ = run(capsys, "inspect", *common)
    assert "dimension   unknown of 1 columns" in out
    code, out, _ = run(capsys, "classify", *common, "--json", "--report", "r.html")
    assert json.loads(out, parse_constant=pytest.fail)["intrinsic_dimension"] is None
    page = Path("r.html").read_text(encoding="utf-8")
    assert "unknown; 1 features" in page
    assert "nan;" not in page


@pytest.mark.usefixtures("flowers")
def test_a_screen_that_knows_no_unicode():
    Path("u.csv").write_text(relabelled(lambda b: b and f"{b} é"), encoding="utf-8")
    common = [sys.executable, "-m", "manifoldknn", "classify", "u.csv", "--label", "species",
              "--quiet", "--no-validate", "--force"]  # fmt: skip
    source = str(Path(__file__).parents[2] / "src")
    settings = os.environ | {"PYTHONPATH": source, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(common, capture_output=True, env=settings, check=True)
    assert b"alpine \\xe9" in done.stdout
    done = subprocess.run([*common, "--json"], capture_output=True, env=settings, check=True)
    assert json.loads(done.stdout.decode("ascii"))["labels_per_class"]["alpine é"] == 3


@pytest.mark.usefixtures("flowers")
def test_more_neighbours_than_rows(capsys):
    lines = FLOWERS.read_text().splitlines()
    labelled = [line for line in lines if not line.endswith(",")]
    Path("few.csv").write_text("\n".join([*labelled, *lines[1:40]]) + "\n")
    n = len(labelled) - 1 + 39
    code, out, _ = classify(
        capsys, "--quiet", "--json", "--no-validate", "--graph-neighbors", "100000", file="few.csv"
    )
    assert code == 0
    assert json.loads(out)["graph"]["neighbours"] == n - 1


@pytest.mark.usefixtures("flowers")
def test_check_finds_a_wrong_label(capsys):
    right = truth()
    lines = FLOWERS.read_text().splitlines()
    labelled = lines[:1]
    for line in lines[1:]:
        row_id = line.split(",")[0]
        label = right[row_id] if int(row_id) % 5 == 0 else ""
        if row_id == "0100":
            label = "marsh" if right[row_id] != "marsh" else "alpine"
        labelled.append(line.rsplit(",", 1)[0] + "," + label)
    Path("w.csv").write_text("\n".join(labelled) + "\n")
    code, out, _ = run(
        capsys, "check", "w.csv", "--label", "species", "--id", "id", "--json", "--quiet"
    )
    assert code == 0
    first = json.loads(out)["rows"][0]
    assert first["id"] == "0100"
    assert first["suggested"] == right["0100"]
    assert 0 < first["given_share"] < 0.5 < first["suggested_share"] < 1


@pytest.mark.usefixtures("flowers")
def test_stdin_to_stdout(capsysbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FLOWERS.read_bytes())))
    code = main(["classify", "-", "--label", "species", "--quiet"])
    out, err = capsysbinary.readouterr()
    assert code == 0
    assert len(out.decode().splitlines()) == 601
    assert b"accuracy" in err
    assert os.listdir() == ["flowers.csv"]


def test_text_survives_unchanged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        side = i % 2
        label = ['çà "1", x', "00"][side] if i < 8 else ""
        note = ["", "é\u2028ü", 'a "b"\r\nc', "=1+1", "  spaced  "][i % 5] + "," * (i % 3)
        x, y = rng.normal(size=2) + 5 * side
        rows.append([f"{i:05d}", str(10**30 + i), note, f"{x:.3f}", f"{y:.3f}", label])
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(
        [["id", "big", "note", "x", "y", "cls"], *rows]
    )
    Path("t.csv").write_bytes(text.getvalue().encode())
    code, *_ = run(
        capsys, "classify", "t.csv", "--label", "cls", "--id", "id", "--drop", "big", "--quiet"
    )
    assert code == 0
    with Path("t-labelled.csv").open(newline="", encoding="utf-8") as file:
        back = list(csv.reader(file))
    assert [row[:6] for row in back[1:]] == rows
    assert {row[6] for row in back[1:]} == {'çà "1", x', "00"}


def test_formats(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) + 6 * (np.arange(80) % 2)[:, None]
    y = np.where(np.arange(80) < 10, np.arange(80) % 2, -1)
    np.savez("a.npz", X=X, y=y)
    assert run(capsys, "classify", "a.npz", "--label", "y", "--quiet")[0] == 0
    with np.load("a-labelled.npz") as back:
        np.testing.assert_array_equal(back["X"], X)
        np.testing.assert_array_equal(back["predicted"], np.arange(80) % 2)
    np.save("b.npy", np.column_stack([X, np.where(y < 0, np.nan, y)]))
    assert run(capsys, "classify", "b.npy", "--label", "3", "--quiet")[0] == 0
    with np.load("b-labelled.npz") as back:
        np.testing.assert_array_equal(back["predicted"], np.arange(80) % 2)


def test_parquet(tmp_path, monkeypatch, capsys):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=80) + 6 * (np.arange(80) % 2)
    y = [i % 2 if i < 10 else None for i in range(80)]
    pq.write_table(pa.table({"x": x, "y": y, "id": [f"{i:03d}" for i in range(80)]}), "a.parquet")
    code, _, err = run(capsys, "classify", "a.parquet", "--label", "y", "--id", "id", "--quiet")
    assert (code, err) == (0, "")
    back = pq.read_table("a-labelled.parquet")
    assert back["predicted"].to_pylist() == [i % 2 for i in range(80)]
    assert back["id"].to_pylist()[7] == "007"


@pytest.mark.parametrize("policy", ["nearest", "abstain"])
def test_rows_that_no_label_reaches_have_no_confidence(tmp_path, monkeypatch, capsys, policy):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.r_[rng.random((40, 2)), 1e4 + rng.random((20, 2))]
    lines = [f"{a},{b},{'pq'[i % 2] if i < 6 else ''}" for i, (a, b) in enumerate(X)]
    Path("u.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    common = ["--graph", "union", "--no-scale", "--on-unreached", policy, "--quiet", "--json"]
    code, out, err = run(capsys, "classify", "u.csv", "--label", "y", "--save", "m", *common)
    assert code == 0, err
    assert json.loads(out)["unreached"] == 20
    code, again, err = run(capsys, "predict", "m", "u.csv", "--out", "p.csv", "--quiet", "--json")
    assert code == 0, err
    for path, said, first in (("u-labelled.csv", out, 6), ("p.csv", again, 0)):
        rows = table(path)
        assert all(bool(r["predicted"]) == (policy == "nearest") for r in rows[40:])
        assert {(r["confidence"], r["margin"], r["unreached"]) for r in rows[40:]} == {
            ("0", "0", "true")
        }
        mean = np.mean([float(r["confidence"]) for r in rows[first:]])
        assert json.loads(said)["mean_confidence"] == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_frame_of_polars(tmp_path, monkeypatch, capsys, form):
    pl = pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    n = np.arange(80)
    x = np.random.default_rng(0).normal(size=80) + 6 * (n % 2)
    frame = pl.DataFrame({
        "x": x,
        "site": ["north", "south"] * 40,
        "y": ["ab"[i % 2] if i < 10 else None for i in n],
        "id": [f"{i:03d}".encode() for i in n],
    })  # fmt: skip
    (frame.write_ipc if form == "arrow" else frame.write_parquet)(f"a.{form}")
    code, out, err = run(
        capsys, "classify", f"a.{form}", "--label", "y", "--id", "id", "--quiet", "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["features"] == 3  # the site is not left out
    back = (pl.read_ipc if form == "arrow" else pl.read_parquet)(f"a-labelled.{form}")
    assert back["predicted"].to_list() == ["a", "b"] * 40
    assert back[frame.columns].equals(frame)


@pytest.mark.usefixtures("flowers")
def test_the_index_of_a_frame_is_no_feature(capsys):
    lines = FLOWERS.read_text().splitlines()
    indexed = ["", f",{lines[0]}", *(f"{7 * i % 600},{line}" for i, line in enumerate(lines[1:]))]
    Path("i.csv").write_text("\n".join(indexed) + "\n")
    common = ["--id", "id", "--quiet", "--json"]
    _, plain, _ = classify(capsys, *common)
    code, out, err = classify(capsys, *common, "--save", "m.mknn", file="i.csv")
    assert code == 0, err
    found, plain = json.loads(out), json.loads(plain)
    assert found["features"] == plain["features"]
    assert "left out the first column, which has no name: the index of a frame" in found["notes"]
    after = Path("i-labelled.csv").read_text().splitlines()
    assert all(b.startswith(a) for a, b in zip(indexed, after, strict=True))
    predicted = [line.split(",")[-5] for line in after[2:]]
    assert predicted == [row["predicted"] for row in table("flowers-labelled.csv")]
    code, out, _ = run(capsys, "predict", "m.mknn", "i.csv", "--out", "p.csv", "--quiet", "--json")
    assert code == 0
    assert "the first column, which has no name" in json.loads(out)["notes"][0]
    code, out, _ = run(
        capsys, "suggest", "i.csv", "--label", "species", "--id", "", "-n", "3", "--quiet", "--json"
    )
    numbers = {str(7 * i % 600): i for i in range(600)}
    assert all(numbers[row["id"]] == row["row"] for row in json.loads(out)["rows"])


@pytest.mark.usefixtures("flowers")
def test_rows_to_begin_with(capsys):
    right = truth()
    common = ["flowers.csv", "--id", "id", "--quiet", "--json"]
    found = {}
    for n in ("2", "9"):
        code, out, err = run(capsys, "suggest", *common, "--drop", "species", "-n", n)
        assert code == 0, err
        found[n] = json.loads(out)["rows"]
    assert found["9"][:2] == found["2"]
    assert {right[row["id"]] for row in found["9"]} == set(right.values())
    assert all(row["reason"].startswith("typical of about ") for row in found["9"])
    Path("bad.csv").write_text(relabelled(lambda _: ""))
    code, out, err = run(capsys, "suggest", "bad.csv", "--label", "species", *common[1:], "-n", "9")
    assert (code, json.loads(out)["rows"]) == (0, found["9"]), err
    known = found["9"][0]["id"]
    lines = Path("bad.csv").read_text().splitlines()
    lines = [line + right[known] if line.startswith(known) else line for line in lines]
    Path("one.csv").write_text("\n".join(lines) + "\n")
    Path("links.csv").write_text(f"a,b\n{known},{found['9'][1]['id']}\n")
    line = ["suggest", "one.csv", "--label", "species", *common[1:], "-n", "8"]
    code, out, err = run(capsys, *line)
    assert code == 0, err
    assert [row["id"] for row in json.loads(out)["rows"]] == [row["id"] for row in found["9"][1:]]
    code, out, err = run(capsys, *line, "--must-link", "links.csv")
    assert code == 0, err
    assert json.loads(out)["rows"][0]["id"] != found["9"][1]["id"]
    code, out, err = run(capsys, "classify", "bad.csv", "--label", "species", "--quiet")
    assert code == 2
    assert "`manifoldknn suggest` names rows to begin with, `manifoldknn label` shows them" in err


def test_a_file_with_every_label(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{x + 5 * (i % 2)},{'ab'[i % 2]}" for i, x in enumerate(rng.random(30))]
    Path("full.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    notes = {}
    for command in ("classify", "suggest", "check", "inspect"):
        code, out, _ = run(capsys, command, "full.csv", "--label", "y", "--quiet", "--json")
        assert code == 0
        notes[command] = json.loads(out)["notes"]
    assert "so there is no row to suggest. Empty the cells" in notes["suggest"][0]
    assert "so nothing is left to find out. Empty the cells" in notes["classify"][0]
    assert notes["check"] == ["0 of 30 labels are contradicted"]
    assert notes["inspect"] == []


def ragged():
    return FLOWERS.read_text() + "1,2,3\n"


def with_header(old, new):
    return FLOWERS.read_text().replace(old, new, 1)


def relabelled(change):
    lines = FLOWERS.read_text().splitlines()
    cells = [line.rsplit(",", 1) for line in lines[1:]]
    return "\n".join([lines[0], *(f"{a},{change(b)}" for a, b in cells)]) + "\n"


def emptied(place):
    lines = [line.split(",") for line in FLOWERS.read_text().splitlines()]
    return "\n".join(
        ",".join("" if i and j == place else c for j, c in enumerate(line))
        for i, line in enumerate(lines)
    )


BAD = {
    "one column for two": (None, ["--id", "species"], "name another with --id"),
    "no such label column": (None, ["--label", "specis"], "did you mean 'species'?"),
    "no labels": (lambda: relabelled(lambda _: ""), [], "has no labels: fill in a few"),
    "one class": (lambda: relabelled(lambda b: b and "x"), [], "one class only, 'x'"),
    "ragged": (ragged, [], "line 602 of bad.csv has 3 cells"),
    "binary": (lambda: "a,b\n\udc81", [], "not text in Windows-1252"),
    "duplicate names": (lambda: with_header("site", "height"), [], "two columns named 'height'"),
    "only missing": (
        lambda: emptied(4),
        ["--features", "petal_width"],
        "empty: it has only missing values",
    ),
    "repeated ids": (lambda: with_header("0002,", "0001,"), ["--id", "id"], "rows 1 and 2"),
    "no such id": (None, ["--id", "ident"], "--id: no column 'ident'"),
    "no such feature": (None, ["--features", "hight"], "did you mean 'height'?"),
    "no such dropped": (None, ["--drop", "zzz"], "--drop: no column 'zzz'"),
    "nothing left": (None, ["--features", "species"], "no column is left"),
    "alpha": (None, ["--alpha", "1.5"], "error: --alpha 1.5 must be"),
    "sharpness": (None, ["--sharpness", "0"], "error: --sharpness 0.0 must be a positive"),
    "vote": (None, ["--vote", "all"], "invalid choice: 'all'"),
    "no such links": (None, ["--must-link", "none.csv"], "(none.csv): check the place"),
    "bad links": (None, ["--must-link", "bad.csv"], "line 1 of bad.csv must have two cells"),
    "graph": (None, ["--graph", "tree"], "invalid choice: 'tree'"),
    "sigma": (None, ["--sigma", "wide"], "'wide' must be a number or auto"),
    "metric": (None, ["--metric", "longest"], "--metric longest"),
    "prior": (
        None,
        ["--class-prior", "0.5,0.5"],
        "or one number for each of the 3 classes",
    ),
    "prior of zero": (None, ["--class-prior", "0,1,1"], "must hold positive, finite numbers"),
    "share of no class": (
        None,
        ["--class-prior", "alpine=0.5,marsh=0.3,meadow=0.1,moor=0.1"],
        "--class-prior: 'moor' has no label",
    ),
    "class without share": (
        None,
        ["--class-prior", "alpine=0.5,marsh=0.5"],
        "--class-prior: 'meadow' has no share",
    ),
    "neighbours": (None, ["--n_neighbors", "0"], "--n-neighbors 0 must be"),
    "unknown option": (None, ["--nonsense"], "unrecognized arguments"),
    "marker": (None, ["--out", "x.parquet"], "the format stays"),
    "delimiter": (None, ["--delimiter", "abc"], "must be one character"),
    "no folder": (None, ["--out", "no/such/x.csv"], "there is no folder"),
    "out is a folder": (None, ["--out", "."], "is a folder"),
    "out is the input": (None, ["--out", "bad.csv", "--force"], "is the input itself"),
    "taken names": (lambda: with_header("site", "predicted"), [], "--prefix"),
    "one name twice": (None, ["--out", "x.csv", "--save", "x.csv"], "also what --out names"),
    "report to stdout": (None, ["--report", "-"], "--report -: only the table"),
    "device": (None, ["--out", "/dev/null", "--force"], "no ordinary file"),
    "few rows": (lambda: "\n".join(FLOWERS.read_text().splitlines()[:2]), [], "only 1 row:"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_code_2(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    content, options, words = BAD[case]
    text = FLOWERS.read_text() if content is None else content()
    Path("bad.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    label = [] if "--label" in options else ["--label", "species"]
    try:
        code = main(["classify", "bad.csv", *label, "--quiet", *options])
    except SystemExit as exit:  # argparse
        code = exit.code
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert err.count("\n") == 1
    assert words in err
    assert os.listdir() == ["bad.csv"]


def test_no_such_file_and_unknown_format(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "classify", "none.csv", "--label", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "there is no file none.csv" in err
    Path("a.docx").write_text("a,b\n1,2\n")
    code, _, err = run(capsys, "classify", "a.docx", "--label", "x")
    assert code == 2
    assert "--format csv" in err


@pytest.mark.usefixtures("flowers")
def test_a_walk_that_did_not_converge_is_told(capsys):
    with forced("iterate"):
        code, out, _ = classify(capsys, "--quiet", "--json", "--max-iter", "1", "--tol", "1e-9",
                                "--graph", "union", "--no-validate")  # fmt: skip
    assert code == 0
    assert any("--max-iter" in note for note in json.loads(out)["notes"])


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_a_folder_as_input(capsys, name):
    code, out, err = run(capsys, "classify", name, "--label", "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is a folder" in err


def test_arrays_named_as_the_new_ones_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).random((30, 2))
    np.savez("a.npz", X=X, y=np.where(np.arange(30) < 6, np.arange(30) % 2, -1), predicted=[1, 2])
    code, _, err = run(capsys, "classify", "a.npz", "--label", "y", "--quiet")
    assert code == 2
    assert "'predicted' already" in err
    code, *_ = run(capsys, "classify", "a.npz", "--label", "y", "--quiet", "--prefix", "new_")
    assert code == 0
    with np.load("a-labelled.npz") as back:
        assert back["predicted"].tolist() == [1, 2]
        assert len(back["new_predicted"]) == 30


@pytest.mark.usefixtures("flowers")
def test_existing_output_needs_force(capsys):
    Path("flowers-labelled.csv").write_text("mine")
    code, _, err = classify(capsys, "--quiet")
    assert code == 2
    assert "exists already: choose another name, or replace it with --force" in err
    assert Path("flowers-labelled.csv").read_text() == "mine"
    assert classify(capsys, "--quiet", "--force")[0] == 0
    assert Path("flowers-labelled.csv").read_text() != "mine"


@pytest.mark.usefixtures("flowers")
def test_no_space_left(capsys, monkeypatch):
    real = manifoldknn.base.atomic.replaced_file

    @contextmanager
    def full(path, **options):
        with real(path, **options):
            raise OSError(errno.ENOSPC, "No space left on device")
        yield

    monkeypatch.setattr("manifoldknn.tables.outputs.replaced_file", full)
    code, _, err = classify(capsys, "--quiet")
    assert code == 2
    assert "No space left on device (flowers-labelled.csv)" in err
    assert err.count("\n") == 1
    assert os.listdir() == ["flowers.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_no_space_left_for_standard_output():
    command = [sys.executable, "-m", "manifoldknn", "classify", FLOWERS, "--label", "species"]
    settings = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--quiet", "--no-validate", "--out", "-"],
            stdout=full, stderr=subprocess.PIPE, check=False, env=settings,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"No space left on device (standard output): free" in done.stderr


@pytest.mark.usefixtures("flowers")
def test_blanks_around_labels_are_trimmed_and_told(capsys):
    Path("b.csv").write_text(relabelled(lambda b: f" {b} " if b else "  "))
    code, out, _ = classify(capsys, "--quiet", "--json", file="b.csv")
    assert code == 0
    data = json.loads(out)
    assert set(data["predicted_per_class"]) == {"alpine", "marsh", "meadow"}
    assert any("9 label(s) in 'species' had blanks" in note for note in data["notes"])
    assert {r["species"] for r in table("b-labelled.csv")} == {
        "  ",
        " alpine ",
        " marsh ",
        " meadow ",
    }


@pytest.mark.usefixtures("flowers")
def test_unlabeled_marker_and_minus_one(capsys):
    Path("m.csv").write_text(relabelled(lambda b: b or "unknown"))
    code, out, _ = classify(capsys, "--quiet", "--json", "--unlabeled", "unknown", file="m.csv")
    assert json.loads(out)["labelled"] == 9
    numbers = {"alpine": "0", "marsh": "1", "meadow": "2", "": "-1"}
    Path("n.csv").write_text(relabelled(numbers.__getitem__))
    code, out, _ = classify(capsys, "--quiet", "--json", file="n.csv")
    assert code == 0
    assert json.loads(out)["labelled"] == 9


def test_minus_one_and_one_are_two_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1, -1)
    given = [str(c) if i < 8 else "" for i, c in enumerate(y)]
    for name, labels in (("some", given), ("all", map(str, y))):
        rows = [f"{x},{label}" for x, label in zip(rng.random(40) + 3 * y, labels)]
        Path(f"{name}.csv").write_text("\n".join(["x,y", *rows]) + "\n")
        code, _, err = run(capsys, "classify", f"{name}.csv", "--label", "y", "--quiet")
        assert (code, "--unlabeled ''" in err) == (2, True)
        code, _, err = run(
            capsys, "classify", f"{name}.csv", "--label", "y", "--quiet", "--unlabeled", ""
        )
        assert (code, err) == (0, "")
        assert [int(r["predicted"]) for r in table(f"{name}-labelled.csv")] == y.tolist()


@pytest.mark.usefixtures("flowers")
def test_a_feature_named_twice_counts_once(capsys):
    twice = ["--features", "height", "height", "petal_width"]
    assert classify(capsys, "--quiet", "--save", "m.mknn", "--json", *twice)[0] == 0
    code, _, err = run(capsys, "predict", "m.mknn", "flowers.csv", "--out", "p.csv", "--quiet")
    assert (code, err) == (0, "")


@pytest.mark.usefixtures("flowers")
def test_options_reach_the_classifier(capsys, monkeypatch):
    seen = {}

    def learn(_table, options):
        seen.update(vars(options))
        raise KeyboardInterrupt

    monkeypatch.setattr("manifoldknn.cli.main.learn", learn)
    code, _, err = classify(
        capsys, "--n-neighbors", "3", "--graph", "union", "--graph_neighbors", "7", "--sigma",
        "0.5", "--class-prior", "0.2,0.3,0.5", "--on-unreached", "abstain", "--tree-depth", "0",
    )  # fmt: skip
    assert code == 130
    assert "interrupted" in err
    assert (seen["n_neighbors"], seen["graph"], seen["graph_neighbors"]) == (3, "union", 7)
    assert (seen["sigma"], seen["class_prior"]) == (0.5, [0.2, 0.3, 0.5])


@pytest.mark.usefixtures("flowers")
@pytest.mark.parametrize(
    ("arguments", "vote", "graph", "alpha"),
    [
        ([], "classes", "pruned", "auto"),
        (["--as-published"], "neighbors", "full", 0.99),
        (["--as-published", "--graph", "pruned"], "neighbors", "pruned", 0.99),
        (["--graph", "pruned", "--as-published"], "neighbors", "pruned", 0.99),
        (["--as-published", "--vote", "classes", "--alpha", "auto"], "classes", "full", "auto"),
    ],
)
def test_as_published(capsys, monkeypatch, arguments, vote, graph, alpha):
    def stop(self, *_arguments, **_links):
        assert (self.vote, self.graph, self.alpha, self.n_neighbors) == (vote, graph, alpha, 7)
        raise KeyboardInterrupt

    monkeypatch.setattr("manifoldknn.ManifoldKNNClassifier.fit", stop)
    code, _, err = classify(capsys, "--quiet", "--n-neighbors", "7", *arguments)
    assert code == 130, err


@pytest.mark.usefixtures("flowers")
@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_every_command_with_either_vote(capsys, vote):
    common = ["flowers.csv", "--label", "species", "--id", "id", "--quiet", "--vote", vote]
    code, out, _ = run(capsys, "classify", *common, "--json", "--report", "r.html", "--save", "m")
    assert code == 0
    data = json.loads(out)
    assert data["vote"]["kind"] == vote
    assert data["calibrated"] is (vote == "classes")
    assert data["validation"]["labels_judged"] == 9
    assert data["validation"]["accuracy"] > 0.8
    right = truth()
    rows = table("flowers-labelled.csv")
    assert np.mean([right[r["id"]] == r["predicted"] for r in rows]) > 0.97
    code, out, _ = run(capsys, "predict", "m", "flowers.csv", "--out", "p.csv", "--json", "--quiet")
    assert (code, json.loads(out)["calibrated"]) == (0, vote == "classes")
    said = {}
    for command in ("suggest", "check", "inspect"):
        code, out, err = run(capsys, command, *common, "--json")
        assert code == 0, err
        said[command] = json.loads(out)
    assert len(said["suggest"]["rows"]) == 20
    assert said["check"]["notes"] == ["0 of 9 labels are contradicted"]
    assert said["inspect"]["n_labeled"] == 9


@pytest.mark.usefixtures("flowers")
def test_without_validation_no_accuracy_is_told(capsys):
    code, out, _ = classify(capsys, "--quiet", "--no-validate")
    assert code == 0
    assert "accuracy    not estimated, as asked" in out
    assert "found again" not in out
    _, out, _ = classify(capsys, "--quiet", "--no-validate", "--json", "--force")
    assert json.loads(out)["validation"] is None


@pytest.mark.usefixtures("flowers")
def test_labels_that_tell_little_are_told(capsys):
    given = {}

    def thinned(label):
        given[label] = given.get(label, 0) + 1
        return label if given[label] == 1 else ""

    Path("one.csv").write_text(relabelled(thinned))
    code, out, _ = classify(capsys, "--quiet", file="one.csv")
    assert code == 0
    assert "it is a guess, not calibrated: no class has two labels" in out
    assert "accuracy    cannot be estimated" in out
    assert "one label only (alpine, marsh, meadow): how often" in out
    right = iter(truth().values())
    Path("many.csv").write_text(relabelled(lambda b: "marsh" if next(right) == "marsh" else b))
    code, out, _ = classify(capsys, "--quiet", file="many.csv")
    assert "labels and class alpine only 3. Classes count equally" in out
    assert "set --class-prior labeled." in out


@pytest.mark.usefixtures("flowers")
def test_priors_by_name_and_by_order(capsys):
    named, found = "meadow=2,alpine=5,marsh=3", []
    for prior in (named, "5,3,2"):
        code, out, err = classify(capsys, "--quiet", "--json", "--force", "--class-prior", prior)
        assert code == 0, err
        found.append(json.loads(out)["vote"]["class_prior"])
    assert found == [{"alpine": 0.5, "marsh": 0.3, "meadow": 0.2}] * 2


@pytest.mark.usefixtures("flowers")
@pytest.mark.parametrize("named", [True, False])
def test_links_reach_the_fit(capsys, monkeypatch, named):
    seen = {}
    fit = ManifoldKNNClassifier.fit

    def watched(self, X, y, **links):
        seen.update({kind: pairs.tolist() for kind, pairs in links.items()})
        return fit(self, X, y, **links)

    monkeypatch.setattr("manifoldknn.ManifoldKNNClassifier.fit", watched)
    right = truth()
    unlabelled = [row["id"] for row in table("flowers.csv") if not row["species"]]
    marsh = [key for key in unlabelled if right[key] == "marsh"][:2]
    other = next(key for key in unlabelled if right[key] == "alpine")
    numbers = {row["id"]: i for i, row in enumerate(table("flowers.csv"))}
    said = (lambda key: key) if named else (lambda key: str(numbers[key] + 1))
    Path("must.csv").write_text(f"one,other\n{said(marsh[0])},{said(marsh[1])}\n")
    Path("cannot.csv").write_text(f"{said(marsh[0])},{said(other)}\n")
    links = ["--must-link", "must.csv", "--cannot-link", "cannot.csv"]
    code, out, err = classify(capsys, "--quiet", "--json", *links, *["--id", "id"][: 2 * named])
    assert code == 0, err
    assert seen == {
        "must_link": [[numbers[key] for key in marsh]],
        "cannot_link": [[numbers[marsh[0]], numbers[other]]],
    }
    assert "line 1 of must.csv is taken for a header: one, other" in json.loads(out)["notes"]
    predicted = [row["predicted"] for row in table("flowers-labelled.csv")]
    assert predicted[numbers[marsh[0]]] == predicted[numbers[marsh[1]]] == "marsh"


@pytest.mark.usefixtures("flowers")
def test_links_that_contradict_labels_name_the_rows(capsys, monkeypatch):
    monkeypatch.setattr("manifoldknn.model.geometry.GrowingIndex", None)  # nothing is searched
    given = {row["species"]: row["id"] for row in table("flowers.csv") if row["species"]}
    Path("must.csv").write_text(f"{given['marsh']},{given['alpine']}\n")
    code, out, err = classify(capsys, "--quiet", "--id", "id", "--must-link", "must.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--must-link ties rows of the classes 'alpine' and 'marsh' together" in err
    ids = [row["id"] for row in table("flowers.csv") if row["species"] in ("alpine", "marsh")]
    assert any(f"rows {a} and {b}" in err for a in ids for b in ids)
    alike = [row["id"] for row in table("flowers.csv") if row["species"] == "marsh"][:2]
    Path("cannot.csv").write_text(",".join(alike))
    code, _, err = classify(capsys, "--quiet", "--id", "id", "--cannot-link", "cannot.csv")
    assert code == 2
    assert f"--cannot-link cuts rows {alike[0]} and {alike[1]} apart, but both are labelled" in err
    assert sorted(os.listdir()) == ["cannot.csv", "flowers.csv", "must.csv"]


@pytest.mark.usefixtures("flowers")
def test_bad_models(capsys):
    Path("x.mknn").write_bytes(b"rubbish")
    code, _, err = run(capsys, "predict", "x.mknn", "flowers.csv", "--quiet")
    assert code == 2
    assert "no model that can be used" in err
    assert err.count("\n") == 1
    code, _, err = run(capsys, "predict", "none.mknn", "flowers.csv", "--quiet")
    assert code == 2
    assert "none.mknn" in err


@pytest.mark.usefixtures("flowers")
@pytest.mark.parametrize(
    "error",
    [MemoryError(), MemoryError("std::bad_alloc"), RuntimeError("can't start new thread")],
    ids=str,
)
def test_out_of_memory(capsys, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("manifoldknn.cli.main.learn", fail)
    code, _, err = classify(capsys, "--quiet")
    assert code == 2
    assert "Out of memory: use fewer rows, or raise the limits (ulimit -v, -u)" in err


@pytest.mark.skipif(sys.platform != "linux", reason="limits on addresses are Linux's")
@pytest.mark.usefixtures("flowers")
def test_a_limit_on_addresses_is_no_crash():
    words = f"{sys.executable} -m manifoldknn classify flowers.csv --label species --out out.csv"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -v 640000; {words}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "raise it to 1.5 GB or more (ulimit -v 1500000)" in done.stderr


@pytest.mark.usefixtures("flowers")
def test_unforeseen(capsys, monkeypatch):
    monkeypatch.setattr("manifoldknn.cli.main.learn", lambda *_: 1 / 0)
    code, _, err = classify(capsys, "--quiet")
    assert code == 1
    assert "unforeseen: ZeroDivisionError" in err


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_leaves_nothing_half_written(tmp_path):
    """Interrupted at some moment of a longer run: the folder is as it was."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    rows = "\n".join(
        ",".join(f"{v:.6f}" for v in x) + f",{'ab'[i % 2] if i < 40 else ''}"
        for i, x in enumerate(X)
    )
    header = ",".join(f"c{i}" for i in range(20)) + ",y"
    (tmp_path / "big.csv").write_text(f"{header}\n{rows}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "manifoldknn.cli.main", "classify", "big.csv", "--label", "y",
         "--save", "m.mknn"],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )  # fmt: skip
    assert b"reading" in process.stderr.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().splitlines()[-1].startswith("manifoldknn: error: interrupted")
    assert os.listdir(tmp_path) == ["big.csv"]


@pytest.mark.usefixtures("flowers")
def test_errors_of_the_device_speak_of_the_option(capsys, monkeypatch):
    code, _, err = classify(capsys, "--device", "gpu", "--quiet")
    assert code == 2
    assert "--device gpu must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'" in err
    monkeypatch.setattr("manifoldknn.base.tensors.importlib.util.find_spec", lambda _: None)
    code, _, err = classify(capsys, "--device", "cuda", "--quiet")
    assert code == 2
    assert "--device cuda needs PyTorch: pip install 'manifoldknn[gpu]', or use --device cpu" in err
    assert "device=" not in err


def test_the_help_names_every_device(capsys):
    with pytest.raises(SystemExit):
        main(["classify", "--help"])
    assert "auto (the CPU), cpu, cuda, cuda:N or mps" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("flowers")
def test_the_same_for_any_number_of_threads(capsys):
    for jobs in (1, 2, 4):
        code, *_ = classify(
            capsys, "--id", "id", "--quiet", "--n-jobs", jobs, "--out", f"{jobs}.csv", "--save",
            f"{jobs}.mknn", "--report", f"{jobs}.html",
        )  # fmt: skip
        assert code == 0
    assert len({Path(f"{jobs}.csv").read_bytes() for jobs in (1, 2, 4)}) == 1


@pytest.mark.usefixtures("flowers")
def test_columns_stand_before_results_and_warnings_before_all(capsys):
    lines = FLOWERS.read_text().splitlines()
    place = lines[0].split(",").index("height")
    rows = [line.split(",") for line in lines]
    for row in rows[2::15]:
        row[place] = "too tall"
    Path("w.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    code, out, err = classify(capsys, "--quiet", "--id", "id", file="w.csv")
    assert code == 0
    warning = (
        "'height': 40 of 596 cells could not be read, so missing ('too tall'): correct them, or "
        "name what means missing with --na"
    )
    assert err == f"manifoldknn: warning: {warning}\n"
    assert out.startswith(f"WARNING     {warning}\nfile        UTF-8, ',' between cells\n\ncolumn ")
    assert out.count(warning) == 1
    assert out.index("id  ") < out.index("height  ") < out.index("rows  ")
    assert "note        left out" not in out
    for command in ("suggest", "check", "inspect"):
        code, out, err = run(capsys, command, "w.csv", "--label", "species", "--json", "--quiet")
        assert (code, json.loads(out)["warnings"][0]) == (0, warning)
        assert err == ""
    code, out, err = classify(
        capsys, "--json", "--quiet", "--na", "too tall", "--force", "--save", "m", file="w.csv"
    )
    assert (code, json.loads(out)["warnings"], err) == (0, [], "")
    height = next(column for column in json.loads(out)["columns"] if column["name"] == "height")
    assert height == {"name": "height", "used": True, "kind": "number", "how": "44 missing"}


@pytest.mark.usefixtures("flowers")
def test_predict_warns_of_cells_that_cannot_be_read(capsys):
    assert classify(capsys, "--id", "id", "--quiet", "--save", "m")[0] == 0
    header, *lines = FLOWERS.read_text().splitlines()
    place = header.split(",").index("height")
    rows = [line.split(",") for line in lines[:60]]
    for row in rows[::6]:
        row[place] = "tall"
    Path("w.csv").write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    warning = "'height': 10 of 60 cells could not be read, so missing ('tall'): correct them"
    code, out, err = run(capsys, "predict", "m", "w.csv", "--quiet")
    assert code == 0
    assert err.startswith(f"manifoldknn: warning: {warning}")
    assert out.startswith(f"WARNING     {warning}")
    assert re.search(r"\nheight +number +10 cells not read, so missing \('tall'\)\n", out)
    code, out, err = run(capsys, "predict", "m", "w.csv", "--quiet", "--json", "--force")
    data = json.loads(out)
    assert (code, err, data["file"]["delimiter"]) == (0, "", ",")
    assert data["warnings"][0].startswith(warning)
    used = {column["name"]: column["kind"] for column in data["columns"] if column["used"]}
    assert (used["height"], used["species"]) == ("number", "label")
    options = ("--quiet", "--json", "--force", "--na", "Tall")
    code, out, _ = run(capsys, "predict", "m", "w.csv", *options)
    assert json.loads(out)["warnings"] == []
    for row in rows:
        row[place] = "tall"
    Path("w.csv").write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    code, _, err = run(capsys, "predict", "m", "w.csv", "--quiet", "--force")
    assert (code, err.count("\n")) == (2, 1)
    assert "'height' must hold numbers, as when the model was fitted, and no cell does" in err


@pytest.mark.usefixtures("flowers")
def test_what_is_packed_stays_packed(capsys):
    Path("f.csv.gz").write_bytes(gzip.compress(FLOWERS.read_bytes()))
    code, _, err = classify(capsys, "--quiet", "--out", "o.csv", file="f.csv.gz")
    assert (code, err.count("\n")) == (2, 1)
    assert "the input is gzip and stays so, so let the name end in .csv.gz" in err
    assert classify(capsys, "--quiet", "--json", file="f.csv.gz")[0] == 0
    assert classify(capsys, "--quiet", "--json")[0] == 0
    packed = Path("f-labelled.csv.gz").read_bytes()
    assert gzip.decompress(packed) == Path("flowers-labelled.csv").read_bytes()
    code, _, err = classify(capsys, "--quiet", "--out", "o.csv.zst")
    assert "the input is not packed and stays so, so let the name end in .csv" in err


@pytest.mark.parametrize(
    ("labels", "more", "said", "partner"),
    [
        (5, (), "a forest has a say: 200 trees", "forest"),
        (4, (), None, "None"),
        (5, ("--partner", "none"), None, "None"),
        (4, ("--partner", "forest"), "a forest has a say: 200 trees", "forest"),
        (5, ("--vote", "neighbors"), None, "None"),
    ],
)
def test_a_forest_where_labels_are_many(tmp_path, monkeypatch, capsys, labels, more, said, partner):
    """Noise beside one column, or two, that tell the class; 20 labels of each, or 4."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).random((200, 9)).round(3)
    names = np.where(X[:, 0] > 0.5, "high", "low")
    if labels < 5:
        names = np.char.add(names, np.where(X[:, 1] > 0.5, " right", " left"))
    shown = np.zeros(200, dtype=bool)
    for name in np.unique(names):
        shown[np.flatnonzero(names == name)[: 20 if labels > 4 else 4]] = True
    lines = [",".join([*map(str, row), n if s else ""]) for row, n, s in zip(X, names, shown)]
    Path("t.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,i,kind", *lines]) + "\n")
    options = ("--label", "kind", "--quiet", "--json", "--report", "t.html", "--save", "t.mknn")
    code, out, err = run(capsys, "classify", "t.csv", *options, *more)
    assert code == 0, err
    notes = [note for note in json.loads(out)["notes"] if "forest" in note]
    assert [note.startswith(said) for note in notes] == ([] if said is None else [True])
    assert str(persist.load("t.mknn").partner) == partner
    first = table("t-labelled.csv")
    code, _, err = run(capsys, "predict", "t.mknn", "t.csv", "--out", "p.csv", "--quiet")
    assert code == 0, err
    pairs = [(a["predicted"], b["predicted"]) for a, b in zip(first, table("p.csv"))]
    assert all(a == b for (a, b), s in zip(pairs, shown) if not s)


@pytest.mark.usefixtures("flowers")
def test_rows_below_a_confidence_have_no_answer(capsys):
    code, out, _ = classify(capsys, "--id", "id", "--quiet", "--json", "--save", "m.mknn",
                            "--abstain-below", "0.9")  # fmt: skip
    data = json.loads(out)
    assert code == 0
    rows = table("flowers-labelled.csv")
    empty = [row for row in rows if not row["predicted"]]
    assert len(empty) == data["abstained"] > 0
    assert all(0 < float(row["confidence"]) < 0.9 for row in empty)
    assert not any(row["species"] for row in empty)
    for row in rows:
        assert bool(row["predicted"]) == (float(row["confidence"]) >= 0.9 or bool(row["species"]))
    assert [group["name"] for group in data["trust"]] == ["can be trusted", "need a look"]
    assert data["trust"][1]["rows"] == data["abstained"]
    predict = ["predict", "m.mknn", "flowers.csv", "--quiet", "--json", "--out", "p.csv"]
    told = json.loads(run(capsys, *predict)[1])
    assert told["abstained"] == sum(not row["predicted"] for row in table("p.csv")) > 0
    _, out, _ = run(capsys, *predict, "--force", "--abstain-below", "0.3")
    assert json.loads(out)["abstained"] < told["abstained"]


@pytest.mark.usefixtures("flowers")
@pytest.mark.parametrize("wrong", ["0", "1", "-1", "nan"])
def test_a_confidence_to_abstain_below_must_be_a_share(capsys, wrong):
    code, _, err = classify(capsys, f"--abstain-below={wrong}")
    assert code == 2
    assert "--abstain-below" in err
    assert "between 0 and 1" in err


@pytest.mark.usefixtures("flowers")
def test_answers_without_the_option_are_all_there(capsys):
    code, out, _ = classify(capsys, "--quiet")
    assert code == 0
    assert " can be trusted, with at least 80% confidence" in out
    assert " need a look, with less than 80% confidence" in out
    assert all(row["predicted"] for row in table("flowers-labelled.csv"))


def formulas(folder):
    """Write a table whose classes a spreadsheet would calculate."""
    rows = [["=1+1", "-2", "@SUM(A1)"][i % 3] if i < 12 else "" for i in range(30)]
    lines = [f"{i % 3 * 9 + i / 40},{i % 5},{label}" for i, label in enumerate(rows)]
    Path(folder, "t.csv").write_text("x,y,class\n" + "\n".join(lines) + "\n", encoding="utf-8")


def test_labels_that_look_like_formulas(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    formulas(tmp_path)
    asked = ("t.csv", "--label", "class", "--save", "m.mknn")
    code, out, _ = run(capsys, "classify", *asked)
    assert code == 0
    assert "2 label(s) or id(s) begin with =, +, - or @, such as '=1+1'" in out
    assert {row["predicted"] for row in table("t-labelled.csv")} == {"=1+1", "-2", "@SUM(A1)"}
    code, out, _ = run(capsys, "classify", *asked, "--force", "--escape-formulas")
    assert code == 0
    assert "--escape-formulas" not in out
    assert {row["predicted"] for row in table("t-labelled.csv")} == {"'=1+1", "-2", "'@SUM(A1)"}
    assert {row["class"] for row in table("t-labelled.csv")} == {"", "=1+1", "-2", "@SUM(A1)"}
    for how in ("", "'"):
        more = ["--escape-formulas"] if how else []
        code, out, _ = run(capsys, "predict", "m.mknn", "t.csv", "--force", *more)
        assert ("for formulas" in out) == (not how)
        assert {row["predicted"] for row in table("t-labelled.csv")} == {
            f"{how}=1+1", "-2", f"{how}@SUM(A1)"
        }  # fmt: skip


def test_ids_in_a_list_that_look_like_formulas(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"=A{i},{i % 2 * 9 + i / 40},{'ab'[i % 2] if i < 9 else ''}" for i in range(30)]
    Path("t.csv").write_text("id,x,class\n" + "\n".join(lines) + "\n", encoding="utf-8")
    for more, start in (([], "="), (["--escape-formulas"], "'=")):
        asked = ("t.csv", "--label", "class", "--id", "id", "--out", "l.csv", "--force", *more)
        code, out, _ = run(capsys, "suggest", *asked)
        assert code == 0
        assert ("for formulas" in out) == (not more)
        assert all(row["id"].startswith(f"{start}A") for row in table("l.csv"))


def test_a_label_in_a_workbook_is_no_formula(tmp_path, monkeypatch, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    formulas(tmp_path)
    assert run(capsys, "classify", "t.csv", "--label", "class", "--save", "m.mknn")[0] == 0
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    for row in table("t.csv"):
        book.active.append([float(row["x"]), float(row["y"])])
    book.save("t.xlsx")
    assert run(capsys, "predict", "m.mknn", "t.xlsx")[0] == 0
    sheet = openpyxl.load_workbook("t-labelled.xlsx").active
    kinds = {(cell.value, cell.data_type) for cell in sheet["C"][1:]}
    assert {("=1+1", "s"), ("@SUM(A1)", "s")} <= kinds


@pytest.mark.usefixtures("flowers")
def test_several_outputs_or_none(capsys, monkeypatch):
    """The table comes last, and fails: then there is no model and no report either."""
    Path("m.mknn").write_bytes(b"old")
    before = sorted(os.listdir())
    monkeypatch.setattr(
        "manifoldknn.tables.formats.textfile.TextTable.write",
        lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")),
    )
    code, _, err = classify(capsys, "--save", "m.mknn", "--report", "r.html", "--force")
    assert code == 2
    assert "No space left" in err
    assert sorted(os.listdir()) == before
    assert Path("m.mknn").read_bytes() == b"old"


def test_the_longest_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    formulas(tmp_path)
    name = "a" * 250 + ".csv"
    code, _, _ = run(capsys, "classify", "t.csv", "--label", "class", "--out", name)
    assert code == 0
    code, _, err = run(capsys, "classify", name, "--label", "class")
    assert code == 2
    assert "too long" in err


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device of POSIX")
@pytest.mark.parametrize("how", ["file", "stdin", "link", "model"])
def test_devices_without_an_end_are_refused(tmp_path, how):
    formulas(tmp_path)
    asked = {
        "file": ["classify", "/dev/zero", "--label", "a"],
        "stdin": ["classify", "-", "--label", "a"],
        "link": ["classify", "t.csv", "--label", "class", "--must-link", "/dev/zero"],
        "model": ["predict", "/dev/zero", "t.csv"],
    }[how]
    with Path("/dev/zero").open("rb") as zeros:
        done = subprocess.run(
            [sys.executable, "-m", "manifoldknn", *asked], cwd=tmp_path, capture_output=True,
            stdin=zeros, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"device" in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_bytes_that_are_no_text_are_found_on_their_line(tmp_path, monkeypatch, capsys, encoding):
    monkeypatch.chdir(tmp_path)
    formulas(tmp_path)
    bad = b"\xff" if encoding == "utf-8" else b"\x00\xdc"
    lines = ["x,y,class", *(f"{i},{i % 3},a" for i in range(30_000))]
    content = [f"{line}\r\n".encode(encoding) for line in lines]
    content[20_000] = content[20_000].replace("a".encode(encoding), bad)
    Path("b.csv").write_bytes(b"".join(content))
    code, _, err = run(capsys, "classify", "b.csv", "--label", "class", "--encoding", encoding)
    assert code == 2
    assert "line 20001 of b.csv is not text" in err
    if encoding == "utf-8":
        links = [b"%d,%d\n" % (i % 30 + 1, (i + 1) % 30 + 1) for i in range(9000)]
        links[4000] = b"1,\xff\n"
        Path("l.csv").write_bytes(b"".join(links))
        code, _, err = run(capsys, "classify", "t.csv", "--label", "class", "--must-link", "l.csv")
        assert code == 2
        assert "line 4001 of l.csv cannot be read" in err


def test_blanks_around_names_of_columns_do_not_count_in_options_either(tmp_path, capsys):
    path = tmp_path / "in.csv"
    rows = "".join(f"{i},{i % 2},{'ab'[i % 2] if i < 6 else ''}\n" for i in range(20))
    path.write_text(f"number,\u2028x ,class\u2029\n{rows}", encoding="utf-8")
    asked = ["--label", "class\u2029", "--id", " number", "--features", "x "]
    assert main(["classify", str(path), *asked, "--quiet", "--out", str(tmp_path / "o.csv")]) == 0
    assert "number" in capsys.readouterr().out
