"""Online rows, one by one; here on small stand-ins."""

import numpy as np
import pytest

from experiment_kit import QUICK, blobs, check_tables, measured_rows, without_times
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.figures import fig12
from manifoldknn.reproduction.figures.fig12 import EXPERIMENT
from manifoldknn.reproduction.problems import drawn


@pytest.fixture
def sets(monkeypatch):
    sets = {name: blobs(600, seed=i, spread=2.0) for i, name in enumerate(fig12._SETS)}
    monkeypatch.setattr(fig12, "real", sets.__getitem__)
    return sets


def test_every_size_is_planned_alone():
    cells = EXPERIMENT.cells(Plan())
    assert len(cells) == len(set(cells))
    assert all(cell.alone for cell in cells)
    sizes = {cell.key[3] for cell in cells if cell.key[:3] == ("satlog", "default", "sequential")}
    assert sizes == set(range(100, 1001, 100))


def test_errors_against_a_plain_computation(sets):
    cells = [cell for cell in EXPERIMENT.cells(QUICK) if cell.key[0] == "banknote"]
    rows = measured_rows(EXPERIMENT, cells)
    again = measured_rows(EXPERIMENT, cells)
    assert without_times(EXPERIMENT, rows) == without_times(EXPERIMENT, again)
    assert all(row["seconds"] > 0 for row in rows)
    found = {(row["strategy"], row["online"]): row["error"] for row in rows}
    assert len(found) == len(rows) == 8
    problem = sets["banknote"]
    y = drawn(problem.truth, 10, 0)
    online = np.random.default_rng(0).permutation(np.flatnonzero(y < 0))[:300]
    everything = ManifoldKNNClassifier().fit(problem.X, y).transduction_
    assert found["standard, default", 300] == pytest.approx(
        100 * np.mean(everything[online] != problem.truth[online])
    )
    rest = np.setdiff1d(np.arange(600), online)
    learnt = ManifoldKNNClassifier().fit(problem.X[rest], y[rest])
    assert found["sequential, default", 300] == pytest.approx(
        100 * np.mean(learnt.predict(problem.X[online]) != problem.truth[online])
    )


def test_tables_and_figure_beside_the_paper():
    rows = [
        {
            "data": data,
            "strategy": strategy,
            "online": online,
            "error": 5.0,
            "seconds": 0.5 * online,
            "timed": 3,
        }
        for data in fig12._SETS
        for strategy in ("standard, default", "sequential, default")
        for online in (100, 1000)
    ]
    table, claims = EXPERIMENT.tables(rows)
    check_tables([table, claims])
    assert claims.rows[0] == [
        "satlog",
        "default",
        "2 of 2",
        "+0.0 at 100 rows",
        True,
        "1 × at 1000 rows",
    ]
    assert len(EXPERIMENT.differences(rows)) == 1
    assert "in 3 of 3 cases" in EXPERIMENT.findings(rows)[0]
    rows[-1]["error"] = 8.0
    assert EXPERIMENT.tables(rows)[1].rows[-1][2:5] == ["1 of 2", "+3.0 at 1000 rows", False]
    assert "pendigits, default (+3.0 points at 1000 rows)" in EXPERIMENT.differences(rows)[1]
    assert EXPERIMENT.findings([]) == []
    beside = {(line[0], line[1], line[2]): line[5:] for line in table.rows}
    assert beside["satlog", "standard, default", 1000] == [9100.0, -8600.0]
    assert beside["satlog", "sequential, default", 1000] == [14.0, 486.0]
    assert beside["banknote", "standard, default", 1000] == [None, None]
    pytest.importorskip("matplotlib")
    figure = EXPERIMENT.draw(rows)
    assert [ax.get_yscale() for ax in figure.axes] == ["linear"] * 3 + ["log"] * 3
    low, high = figure.axes[3].get_ylim()
    assert 0 < low < 50
    assert high > 500
