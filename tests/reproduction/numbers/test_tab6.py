"""Errors with three labels per class; here on small stand-ins."""

import pytest

from experiment_kit import QUICK, blobs, measured_rows
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.methods import DEFAULT, OF_THE_PAPER, PUBLISHED, error_of
from manifoldknn.reproduction.numbers import tab6
from manifoldknn.reproduction.numbers.tab6 import EXPERIMENT, UNSCALED
from manifoldknn.reproduction.problems import Problem, drawn
from manifoldknn.reproduction.published import DATA_SETS


@pytest.fixture
def sets(monkeypatch):
    scaled = {name: blobs(90, seed=i, spread=2.0) for i, name in enumerate(DATA_SETS)}
    raw = {name: Problem(p.X * [1, 9, 99], p.truth) for name, p in scaled.items()}
    monkeypatch.setattr(
        tab6, "real", lambda name, scaled=True, sets=scaled: sets[name] if scaled else raw[name]
    )
    return scaled


def test_every_set_has_ten_runs_of_the_others():
    cells = EXPERIMENT.cells(Plan())
    assert len(cells) == len(set(cells))
    for data in DATA_SETS:
        kinds = [cell.key[1] for cell in cells if cell.key[0] == data]
        assert kinds.count("others") == 10
        assert kinds.count(PUBLISHED) >= 3
        # All columns of pendigits have one range: scaled or not is the same.
        assert kinds.count(UNSCALED) == (0 if data == "pendigits" else kinds.count(PUBLISHED))


def test_rows_hold_the_error_of_the_run(sets):
    cells = [cell for cell in EXPERIMENT.cells(QUICK) if cell.key[0] == "banknote"]
    rows = measured_rows(EXPERIMENT, cells)
    assert rows == measured_rows(EXPERIMENT, cells)
    problem = sets["banknote"]
    for run in (0, 1):
        y = drawn(problem.truth, 3, run)
        for method in (*OF_THE_PAPER, DEFAULT, PUBLISHED):
            (mine,) = [r["error"] for r in rows if r["method"] == method and r["run"] == run]
            assert mine == error_of(method, problem, y, k=3, seed=run)
    unscaled = [r for r in rows if "as they are" in r["method"]]
    assert len(unscaled) == 2


def invented():
    errors = {"SVM": [10.0, 20.0], "kNN": [40.0, 50.0], DEFAULT: [9.0, 22.0], PUBLISHED: [5.0, 7.0]}
    return [
        {"data": "usps", "method": method, "run": run, "error": error}
        for method, values in errors.items()
        for run, error in enumerate(values)
    ] + [{"data": "usps", "method": UNSCALED, "run": 0, "error": 19.0}]


def test_figure_has_a_panel_per_set():
    pytest.importorskip("matplotlib")
    figure = EXPERIMENT.draw(invented())
    assert len(figure.axes) == 6
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [
        DEFAULT,
        PUBLISHED,
        "kNN",
        "SVM",
    ]
