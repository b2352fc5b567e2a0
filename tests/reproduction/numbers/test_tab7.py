"""Times of all methods; here on small stand-ins."""

import numpy as np
import pytest

from experiment_kit import QUICK, blobs, check_tables, measured_rows, without_times
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.methods import DEFAULT, PUBLISHED
from manifoldknn.reproduction.numbers import tab7
from manifoldknn.reproduction.numbers.tab7 import EXPERIMENT
from manifoldknn.reproduction.published import RATIOS


@pytest.fixture
def sets(monkeypatch):
    sets = {name: blobs(120, seed=i, spread=2.0) for i, name in enumerate(tab7._SETS)}
    monkeypatch.setattr(tab7, "real", sets.__getitem__)
    return sets


def test_every_method_and_ratio_is_planned_alone():
    cells = EXPERIMENT.cells(Plan())
    assert len(cells) == len(set(cells)) == 3 * 3 * 9
    assert all(cell.alone for cell in cells)
    assert len(EXPERIMENT.cells(QUICK)) < len(cells)


def test_splits_are_shares_of_all_rows():
    problem = blobs(120)
    y = tab7._split(problem, 25, 3)
    assert np.sum(y >= 0) == 30
    assert (y[y >= 0] == problem.truth[y >= 0]).all()
    assert not np.array_equal(y, tab7._split(problem, 25, 4))


def test_rows_have_errors_of_plain_estimators(sets):
    cells = [cell for cell in EXPERIMENT.cells(QUICK) if cell.key[0] == "banknote"]
    rows = measured_rows(EXPERIMENT, cells)
    again = measured_rows(EXPERIMENT, cells)
    assert without_times(EXPERIMENT, rows) == without_times(EXPERIMENT, again)
    assert {row["method"] for row in rows} == set(tab7._METHODS)
    problem = sets["banknote"]
    for ratio in RATIOS:
        y = tab7._split(problem, ratio, 0)
        found = GeodesicKNNClassifier(5).fit(problem.X, y).transduction_[y < 0]
        (mine,) = [r["error"] for r in rows if r["method"] == "gkNN" and r["ratio"] == ratio]
        assert mine == pytest.approx(100 * np.mean(found != problem.truth[y < 0]))


def test_tables_subtract_the_published_times():
    rows = [
        {"data": "satlog", "ratio": 25, "method": m, "run": r, "error": 9.0, "seconds": 1.0 + r}
        for m in ("SVM", PUBLISHED, DEFAULT)
        for r in range(3)
    ]
    (table,) = EXPERIMENT.tables(rows)
    check_tables([table])
    assert [line[2:] for line in table.rows] == [
        ["SVM", 2.0, 1.78, 0.22, 9.0, 3],
        [PUBLISHED, 2.0, 6.08, -4.08, 9.0, 3],
        [DEFAULT, 2.0, 6.08, -4.08, 9.0, 3],
    ]
    pytest.importorskip("matplotlib")
    figure = EXPERIMENT.draw(rows)
    assert figure.axes[0].get_yscale() == "log"
