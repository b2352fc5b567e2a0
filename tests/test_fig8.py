"""Error against k on the synthetic sets."""

import pytest

from experiment_kit import QUICK, check_tables, measured_rows
from manifoldknn.experiments.averages import averages
from manifoldknn.experiments.experiment import Plan
from manifoldknn.experiments.fig8 import EXPERIMENT
from manifoldknn.experiments.methods import DEFAULT, PUBLISHED


def test_cells_cover_three_sets_and_ten_runs():
    cells = EXPERIMENT.cells(Plan())
    assert len(cells) == len(set(cells)) == 30
    assert len(EXPERIMENT.cells(QUICK)) == 6


def test_one_run_of_a_set_twice():
    cell = EXPERIMENT.cells(QUICK)[0]
    rows = measured_rows(EXPERIMENT, [cell])
    assert rows == measured_rows(EXPERIMENT, [cell])
    assert {row["k"] for row in rows} == {1, 3, 5, 10}
    assert {row["method"] for row in rows} == {"kNN", "wkNN", "gkNN", PUBLISHED, DEFAULT}


def test_ours_is_below_plain_neighbours_with_ten_labels():
    rows = measured_rows(EXPERIMENT, EXPERIMENT.cells(QUICK))
    check_tables(EXPERIMENT.tables(rows, QUICK))
    found = averages(rows, ["data", "method", "k"])
    for (data, method, k), average in found.items():
        if k == 10 and method in (DEFAULT, PUBLISHED):
            assert average.mean < found[data, "kNN", k].mean
    pytest.importorskip("matplotlib")
    assert len(EXPERIMENT.draw(rows, QUICK).axes) == 3
