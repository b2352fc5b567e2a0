"""Tables as they come: each fault of real life is read, or refused in one line."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from hostile import CASES, N, truth, write
from manifoldknn.cli.main import main


def unpacked(content, file):
    if file.endswith(".gz"):
        return gzip.decompress(content)
    if file.endswith(".zst"):
        return pa.input_stream(pa.BufferReader(content), compression="zstd").read()
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hostile")
    write(made)
    return made


def run(capsys, *arguments):
    code = main([*arguments, "--json", "--quiet"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_table(folder, monkeypatch, capsys, name):
    case = CASES[name]
    monkeypatch.chdir(folder / name)
    options = ("--label", "class", "--no-validate", "--save", "m", *case.options)
    code, data, err = run(capsys, "classify", case.file, *options)
    assert code == case.code, err
    if code:
        assert err.startswith("manifoldknn: error: ")
        assert err.count("\n") == 1
        assert all(words in data["error"] for words in case.said), err
        assert sorted(path.name for path in Path().iterdir()) == [case.file]
        return
    found = {column["name"]: column["kind"] for column in data["columns"]}
    assert found | case.uses == found
    told = data["notes"] + [column["how"] for column in data["columns"]]
    for words in case.said:
        assert any(words in text for text in told), told
    assert bool(data["warnings"]) == bool(case.warned)
    assert all(case.warned in text for text in data["warnings"]), data["warnings"]
    assert err == ""
    before, manner, fitted = unpacked(case.content, case.file), data["file"], data
    target = case.file.replace(".csv", "-labelled.csv")
    after = unpacked(Path(target).read_bytes(), target)
    rows = compared(before.decode(case.encoding), after.decode(case.encoding), manner)
    if not case.two:
        return
    assert [row["predicted"] for row in rows] == [truth(row) for row in range(N)]
    assert case.adds in after.decode(case.encoding).rstrip().splitlines()[-1]
    if case.encoding.startswith("utf-16") and "be" not in case.encoding:
        assert after.startswith(before[:2])
    # The model reads the same cells as the same numbers.
    code, data, err = run(capsys, "predict", "m", case.file, "--out", target, "--force",
                          *(case.options[:2] if "--encoding" in case.options else ()))  # fmt: skip
    assert code == 0, err
    again = unpacked(Path(target).read_bytes(), target)
    new = compared(before.decode(case.encoding), again.decode(case.encoding), manner)
    assert [row["predicted"] for row in new] == [truth(row) for row in range(N)]
    assert not any("missing, and none was" in note for note in data["notes"])
    assert data["file"] == manner
    assert set(data["warnings"]) <= set(fitted["warnings"])
    how = {column["name"]: column["how"].split("; ") for column in fitted["columns"]}
    for column in data["columns"]:
        if column["used"]:
            assert {*column["how"].split("; ")} <= {*how[column["name"]], ""}


def table_in(text, manner):
    """Return header and rows as the csv module reads them."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=manner["delimiter"])
    rows = [row for row in reader if row and row[0] != "sep="]
    filled = [place for place, row in enumerate(rows) if any(row)]
    return rows[filled[int(manner.get("lines_above_header", 0))] :]


def compared(before, after, manner):
    """Check that all text stays and cells are appended; return the rows."""
    cells, again = (table_in(text, manner) for text in (before, after))
    width = len(cells[0])
    assert [row[:width] for row in again] == cells
    at = 0
    for line in before.splitlines(keepends=True):  # every byte is still there, in order
        at = after.index(line.rstrip("\r\n"), at) + len(line.rstrip("\r\n"))
    ends = [after.count(end) for end in ("\r\n", "\r", "\n")]
    assert ends == [before.count(end) for end in ("\r\n", "\r", "\n")]
    return [dict(zip(again[0], row)) for row in again[1:]]


def test_there_are_enough_of_them():
    assert len(CASES) >= 25
