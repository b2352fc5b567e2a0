"""The table that people bring: every fault at once, read without an option, as good as clean."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from manifoldknn.cli.main import main

CLASSES = {"Weiß": 25, "Rot": 12, "Grün": 2, "Gelb": 1}  # and how many labels each has
MEASURED = ["Länge", "Größe", "Säure", "Wärme", "Dichte", "Stärke"]
REMARKS = [
    "",
    "nochmal prüfen",
    "Gerät neu kalibriert am 3. Mai",
    "ok",
    "Etikett unlesbar, 2. Probe",
]


def make(seed):
    """Return measurements of four kinds on curved sheets that touch, the truth, and the labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=600)
    along, across = rng.random((2, 600))
    sheet = np.stack(
        [along, across, along * across, np.sin(3 * along), across**2, along**2], axis=1
    )
    values = 4 + 2.2 * sheet + 0.9 * np.eye(4, 6)[truth] * [1, 1.4, 1, 1, 1, 1]
    values = np.round(values + 0.12 * rng.normal(size=values.shape), 3)
    values -= np.floor(values.min(axis=0) * 10) / 10 - 0.2  # some values of each are below 0.5
    given = np.full(600, "", dtype=object)
    for code, (name, count) in enumerate(CLASSES.items()):
        given[rng.choice(np.flatnonzero(truth == code), count, replace=False)] = name
    return values, np.array(list(CLASSES))[truth], given


def clean(values, given):
    rows = [[f"{v:.3f}" for v in row] + [label] for row, label in zip(values, given)]
    return "\n".join(map(",".join, [["a", "b", "c", "d", "e", "f", "Sorte"], *rows])).encode()


def messy(values, given):
    """Return the same as Excel writes it in Germany, with what people and devices do to it."""
    rows = [["Probe", *MEASURED[:3], "Reserve", *MEASURED[3:], "Bemerkung", "Sorte", "", ""]]
    for i, (row, label) in enumerate(zip(values, given)):
        cells = ["<0,5" if v < 0.5 else f"{v:.3f}".replace(".", ",") for v in row]
        remark = f"{REMARKS[i % 5]} {i}" if i % 5 else ""
        rows.append([f"P-{i:04}", *cells[:3], "", *cells[3:], remark, label, "", ""])
    return ("\r\n".join(map(";".join, rows)) + "\r\n").encode("cp1252")


def classify(capsys, name, content, encoding, delimiter):
    Path(name).write_bytes(content)
    assert main(["classify", name, "--label", "Sorte", "--json", "--quiet"]) == 0
    data = json.loads(capsys.readouterr().out)
    text = Path(data["out"]).read_bytes().decode(encoding)
    return data, text, list(csv.DictReader(text.splitlines(), delimiter=delimiter))


@pytest.mark.parametrize("seed", range(3))
def test_a_messy_table_is_as_good_as_a_clean_one(tmp_path, monkeypatch, capsys, seed):
    monkeypatch.chdir(tmp_path)
    values, truth, given = make(seed)
    content = messy(values, given)
    assert min((values < 0.5).sum(axis=0)) >= 1
    _, _, right = classify(capsys, "clean.csv", clean(values, given), "utf-8", ",")
    data, text, found = classify(capsys, "messy.csv", content, "cp1252", ";")
    used = {column["name"]: column for column in data["columns"]}
    for place, name in enumerate(MEASURED):
        assert used[name]["kind"] == "number"
        n_below = (values[:, place] < 0.5).sum()
        assert f"{n_below} cells with <, > or ca., read as the number" in used[name]["how"]
    left_out = [name for name, column in used.items() if not column["used"]]
    assert left_out == ["Probe", "Reserve", "Bemerkung", "column 11", "column 12"]
    assert (data["features"], data["warnings"]) == (6, [])
    assert data["labels_per_class"] == CLASSES
    assert data["file"] == {"encoding": "Windows-1252", "delimiter": ";", "decimal_mark": ","}
    unlabelled = given == ""
    wrong, wrong_clean = (
        np.mean([row["predicted"] != name for row, name in zip(rows, truth)], where=unlabelled)
        for rows in (found, right)
    )
    assert 0.01 < wrong_clean < 0.3
    assert wrong <= 1.1 * wrong_clean
    for before, after in zip(content.decode("cp1252").split("\r\n"), text.split("\r\n")):
        assert after.startswith(before)
    assert all("," in row["confidence"] for row in found)
