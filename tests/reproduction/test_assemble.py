"""The same cells give the same bytes; what is missing is said."""

import csv
import io
import math
from dataclasses import replace

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cheap_experiment as cheap
from manifoldknn.reproduction.assemble import assemble, csv_bytes
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.store import Store, plain_rows

PLAN = Plan(quick=True)


def filled(folder, cells=None, backwards=False):
    store = Store.open(folder, PLAN, ["cheap"], resume=True)
    store.begin()
    cells = cheap.cells(PLAN) if cells is None else cells
    for cell in cells[::-1] if backwards else cells:
        rows = plain_rows(cheap.measure(cell, PLAN), cheap.EXPERIMENT.columns)
        for row in rows:
            row["seconds"] = 0.0
        store.save(cheap.EXPERIMENT, cell, rows, 0.25)
    return store


@settings(deadline=None)
@given(st.lists(st.floats()), st.text('a,"\n; é'))
def test_csv_reads_back_exactly(values, text):
    rows = [{"t": text, "v": value} for value in values]
    data = csv_bytes(rows, ["t", "v"]).decode()
    header, *lines = csv.reader(io.StringIO(data, newline=""))
    assert header == ["t", "v"]
    assert [line[0] for line in lines] == [text] * len(rows)
    for line, value in zip(lines, values):
        found = float(line[1])
        assert found == value or (math.isnan(found) and math.isnan(value))
        assert math.copysign(1, found) == math.copysign(1, value) or math.isnan(value)


def test_files_do_not_depend_on_the_order_of_the_cells(tmp_path):
    names = ("csv/cheap.csv", "figures/cheap.png", "figures/cheap.pdf")
    found = []
    for folder, backwards in (("a", False), ("b", True)):
        with mpl.rc_context({"lines.linewidth": 9.0 if backwards else 1.0}):  # somebody's own
            made = assemble(cheap.EXPERIMENT, filled(tmp_path / folder, backwards=backwards))
            assert mpl.rcParams["lines.linewidth"] == (9.0 if backwards else 1.0)
        assert not made.problems
        found.append([(tmp_path / folder / name).read_bytes() for name in names])
    assert found[0] == found[1]
    assert found[0][1] == made.png
    assert made.png.startswith(b"\x89PNG")
    assert made.n_cells == len(cheap.cells(PLAN))
    assert made.seconds == 0.25 * made.n_cells


def test_rows_stand_in_the_order_of_the_cells(tmp_path):
    assemble(cheap.EXPERIMENT, filled(tmp_path, backwards=True))
    rows = list(csv.DictReader((tmp_path / "csv" / "cheap.csv").read_text().splitlines()))
    expected = [f"{cell.key[0]}{cell.key[1]}" for cell in cheap.cells(PLAN) for _ in range(3)]
    assert [row["cell"] for row in rows] == expected


def test_sentences_are_made_of_the_rows(tmp_path):
    made = assemble(cheap.EXPERIMENT, filled(tmp_path))
    assert made.findings == [f"There are {3 * made.n_cells} <rows>."]
    assert made.notes == [f"The last row is {made.rows[-1]['cell']}."]
    assert made.differences == ["Differs from the paper in everything."]
    assert made.headline.rows == [[3 * made.n_cells]]


def test_without_a_cell_there_is_no_file(tmp_path):
    made = assemble(cheap.EXPERIMENT, filled(tmp_path, cheap.cells(PLAN)[1:]))
    assert made.findings == made.notes == []
    assert made.headline is None
    assert made.differences == ["Differs from the paper in everything."]
    assert made.problems == [f"1 of {made.n_cells} cells could not be measured"]
    assert made.tables == []
    assert not (tmp_path / "csv").exists()
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("part", ["tables", "draw"])
def test_a_table_or_figure_that_fails_is_told(tmp_path, part):
    def broken(rows):
        raise ZeroDivisionError(f"{len(rows)} rows")

    made = assemble(replace(cheap.EXPERIMENT, **{part: broken}), filled(tmp_path))
    assert len(made.problems) == 1
    assert "could not be" in made.problems[0]
    assert "ZeroDivisionError" in made.problems[0]
    assert (tmp_path / "csv" / "cheap.csv").exists()
    assert (tmp_path / "figures" / "cheap.png").exists() == (part == "tables")
