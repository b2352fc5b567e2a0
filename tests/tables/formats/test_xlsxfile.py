"""Workbooks: values with their types, everything kept, columns added."""

import io
import json
import math
import sys
from datetime import datetime, time
from pathlib import Path

import numpy as np
import pytest

from manifoldknn.cli.main import main
from manifoldknn.tables.column_uses import manner_notes
from manifoldknn.tables.table import TableError, open_table


def test_without_openpyxl_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(TableError, match=r'pip install "manifoldknn\[excel\]", or save .* as CSV'):
        open_table(tmp_path / "a.xlsx", "xlsx")


@pytest.fixture
def excel():
    return pytest.importorskip("openpyxl")


def saved(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return open_table(path, "xlsx")


ROWS = [
    ["id", "x", "odd", "day", "ok", "class", None],
    ["007", 1.5, 2.125, datetime(2024, 1, 2, 12), True, 1, None],
    ["008", 2, "<0,5", None, False, None, None],
    ["009", None, "#N/A", datetime(1970, 1, 2), True, 2.0, None],
]


def test_values_have_types(tmp_path):
    table = saved(tmp_path / "a.xlsx", ROWS)
    assert table.names == ["id", "x", "odd", "day", "ok", "class"]
    kinds = [table.kind(name) for name in table.names]
    assert kinds == ["text", "number", "text", "date", "boolean", "number"]
    (chunk,) = table.chunks(table.names[1:5])
    np.testing.assert_array_equal(chunk[0], [1.5, 2, math.nan])
    assert chunk[1] == ["2.125e0", "<0,5", "#N/A"]
    np.testing.assert_array_equal(chunk[2], [19724.5, math.nan, 1])
    assert table.texts(["id", "class"]) == {"id": ["007", "008", "009"], "class": ["1", "", "2"]}
    assert table.like("class", ["1", "2", ""]).tolist() == [1, 2, None]
    assert table.typed("whole", ["a", ""]).tolist() == ["a", None]


def test_blank_rows_and_other_sheets(tmp_path, excel):
    blank = [[None, None], ["", " "]]
    table = saved(
        tmp_path / "a.xlsx", [], [*blank, [None, "x"], ["a", 1], *blank, ["b", 2]], [["z"]]
    )
    assert (table.names, table.n_rows, table.index_names) == (["", "x"], 2, [""])
    assert table.manner == {"sheet": "sheet 1", "other_sheets": "sheet 2"}
    buffer = io.BytesIO()
    table.write(buffer, {"p": np.array([0.5, 0.25])})
    sheet = excel.load_workbook(buffer)["sheet 1"]
    assert [[cell.value for cell in row] for row in sheet.iter_rows(min_row=3)] == [
        [None, "x", "p"], ["a", 1, 0.5], [None, None, None], [None, " ", None], ["b", 2, 0.25]
    ]  # fmt: skip


def test_title_rows_above_the_header(tmp_path, excel):
    title = [["Report 7"], [], ["by", "Ann"]]
    table = saved(tmp_path / "a.xlsx", [*title, *ROWS, *ROWS[1:]], [["b"]])
    assert table.names == ["id", "x", "odd", "day", "ok", "class"]
    assert (table.n_rows, table.kind("x")) == (6, "number")
    assert table.manner["lines_above_header"] == "2"
    assert len(manner_notes(table)) == 2
    file = io.BytesIO()
    table.write(file, {"new": np.array(list("uvwxyz"))})
    rows = list(excel.load_workbook(file).worksheets[0].iter_rows(values_only=True))
    assert [row[6] for row in rows] == [None] * 3 + ["new", *"uvwxyz"]
    assert rows[0][0] == "Report 7"


def test_formulas_and_styles_stay(tmp_path, excel):
    book = excel.Workbook()
    for row in (["x", "class"], ["=1+1", "a"], [3, "b"], [4, None]):
        book.active.append(row)
    book.active["A2"].font = excel.styles.Font(bold=True)
    book.save(tmp_path / "a.xlsx")
    table = open_table(tmp_path / "a.xlsx", "xlsx")
    buffer = io.BytesIO()
    table.write(buffer, {"p": np.array([True, False, True])})
    sheet = excel.load_workbook(buffer).active
    assert sheet["A2"].value == "=1+1"
    assert sheet["A2"].font.bold
    assert [cell.value for cell in sheet["C"]] == ["p", True, False, True]


def test_other_values(tmp_path):
    table = saved(tmp_path / "a.xlsx", [["t", "n"], [time(12, 30), 1], [time(1), True]])
    assert table.kind("t") == table.kind("n") == "text"
    assert table.texts(["t"])["t"] == ["12:30:00", "01:00:00"]
    assert table.column_type("t") == "text"


@pytest.mark.usefixtures("excel")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nonsense", b"a,b\n"])
def test_what_is_no_workbook(tmp_path, content):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(TableError, match="no workbook that can be read"):
        open_table(tmp_path / "a.xlsx", "xlsx")
    with pytest.raises(TableError, match="is empty"):
        saved(tmp_path / "b.xlsx", [])


def test_from_a_workbook_to_a_workbook(tmp_path, excel, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [["x", "y", "class"]]
    for i in range(40):
        x, y = rng.normal(size=2) + 9 * (i % 2)
        rows.append([x, "n.d." if i == 20 else y, i % 2 if i < 8 else None])
    saved(Path("a.xlsx"), rows)
    common = ["--json", "--quiet"]
    assert main(["classify", "a.xlsx", "--label", "class", "--save", "m", *common]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [column["kind"] for column in data["columns"]] == ["number", "number", "label"]
    assert main(["predict", "m", "a.xlsx", "--out", "p.xlsx", *common]) == 0
    for name in ("a-labelled.xlsx", "p.xlsx"):
        sheet = excel.load_workbook(name).active
        assert [cell.value for cell in sheet["D"]] == ["predicted", *(i % 2 for i in range(40))]
    assert sorted(path.name for path in Path().iterdir()) == [
        "a-labelled.xlsx", "a.xlsx", "m", "p.xlsx"
    ]  # fmt: skip
