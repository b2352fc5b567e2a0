"""Error against k on the real sets; here on small stand-ins."""

import pytest

from experiment_kit import QUICK, blobs, check_tables, measured_rows
from manifoldknn.experiments import fig9
from manifoldknn.experiments.experiment import Plan
from manifoldknn.experiments.fig9 import EXPERIMENT
from manifoldknn.experiments.methods import DEFAULT, PUBLISHED
from manifoldknn.experiments.published import DATA_SETS


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    sets = {name: blobs(90, seed=i) for i, name in enumerate(DATA_SETS)}
    monkeypatch.setattr(fig9, "real", lambda name: sets[name])


def test_all_k_and_runs_are_planned():
    cells = EXPERIMENT.cells(Plan())
    assert len(cells) == len(set(cells))
    full = [cell.key for cell in cells if cell.key[1] == PUBLISHED]
    assert sum(key[0] == "usps" for key in full) == 2 * 10
    assert sum(key[0] == "banknote" for key in full) == 10 * 10
    others = [cell.key for cell in cells if cell.key[1] != PUBLISHED]
    assert len(others) == 6 * 10


def test_quick_rows_tables_and_figure():
    cells = [cell for cell in EXPERIMENT.cells(QUICK) if cell.key[0] in ("usps", "banknote")]
    rows = measured_rows(EXPERIMENT, cells)
    assert rows == measured_rows(EXPERIMENT, cells)
    of = {(row["data"], row["method"]) for row in rows}
    assert ("usps", DEFAULT) in of
    assert ("banknote", PUBLISHED) in of
    assert ("usps", PUBLISHED) not in of
    tables = EXPERIMENT.tables(rows, QUICK)
    check_tables(tables)
    assert len(tables[0].rows) == 4 + 5
    pytest.importorskip("matplotlib")
    figure = EXPERIMENT.draw(rows, QUICK)
    assert [ax.get_title() for ax in figure.axes] == ["usps", "banknote"]
