"""Labels as people draw them; here on small stand-ins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment_kit import QUICK, blobs, check_tables, measured_rows
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.reproduction.experiment import Plan
from manifoldknn.reproduction.figures import draws
from manifoldknn.reproduction.figures.draws import EXPERIMENT, PROTOCOLS, calibration
from manifoldknn.reproduction.methods import DEFAULT, NEIGHBORS, available, error_of
from manifoldknn.reproduction.problems import drawn
from manifoldknn.reproduction.published import DATA_SETS

SPREADING = ["LabelSpreading, its defaults", "LabelSpreading, α = 0.99"]


@pytest.fixture
def sets(monkeypatch):
    sets = {name: blobs(150, seed=i, spread=2.5) for i, name in enumerate(DATA_SETS)}
    monkeypatch.setattr(draws, "real", sets.__getitem__)
    return sets


def test_five_draws_of_three_kinds_of_six_sets():
    keys = [cell.key for cell in EXPERIMENT.cells(Plan())]
    assert len(keys) == len(set(keys)) == 6 * 3 * 5
    assert {key[1] for key in keys} == {"b3", "r3", "r10"} == set(PROTOCOLS)
    assert len(EXPERIMENT.cells(QUICK)) == 6 * 3


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_calibration_is_the_sum_over_bins(answers):
    confidence, right = (np.array(values) for values in zip(*answers))
    error, bins = calibration(confidence, right)
    expected = 0.0
    for b in range(15):
        held = [(c, r) for c, r in answers if min(int(c * 15), 14) == b]
        if held:
            ours = [entry for entry in bins if entry[0] == b]
            assert len(ours) == 1
            assert ours[0][1] == len(held)
            assert ours[0][2] == pytest.approx(sum(c for c, _ in held))
            assert ours[0][3] == sum(r for _, r in held)
            gap = np.mean([r for _, r in held]) - np.mean([c for c, _ in held])
            expected += len(held) / len(answers) * abs(gap)
    assert error == pytest.approx(100 * expected)
    assert sum(entry[1] for entry in bins) == len(answers)


def test_rows_hold_errors_and_confidence_of_plain_fits(sets):
    cells = [cell for cell in EXPERIMENT.cells(QUICK) if cell.key[0] == "satlog"]
    rows = measured_rows(EXPERIMENT, cells)
    assert rows == measured_rows(EXPERIMENT, cells)
    problem = sets["satlog"]
    y = drawn(problem.truth, "r3", 0)
    of = {}
    for row in rows:
        if row["protocol"] == "r3":
            of.setdefault(row["method"], []).append(row)
    poisson = ["Poisson"] * ("Poisson" in available())
    assert list(of) == [DEFAULT, NEIGHBORS, *SPREADING, *poisson]
    for method, (first, *bins) in of.items():
        assert first["error"] == error_of(method, problem, y, k=5, seed=0)
        assert first["bin"] is None
        assert (first["calibration_error"] is None) == (method not in (DEFAULT, NEIGHBORS))
        assert all(row["error"] is None for row in bins)
    model = ManifoldKNNClassifier().fit(problem.X, y)
    sure = model.label_distributions_.max(axis=1)[y < 0]
    first, *bins = of[DEFAULT]
    right = (model.transduction_ == problem.truth)[y < 0]
    assert first["calibration_error"] == pytest.approx(calibration(sure, right)[0])
    assert sum(row["rows"] for row in bins) == np.sum(y < 0)
    assert sum(row["confidence"] for row in bins) == pytest.approx(sure.sum())
    assert sum(row["right"] for row in bins) == right.sum()


def row(data, protocol, method, run, *values):
    whole = (data, protocol, method, run, *values)
    return dict(zip(EXPERIMENT.columns, whole + (None,) * (10 - len(whole))))


def invented():
    rows = []
    for data in DATA_SETS:
        for protocol in PROTOCOLS:
            for run, error in enumerate((4.0, 6.0)):
                rows.append(row(data, protocol, DEFAULT, run, error, 2.0 * error))
                rows.append(row(data, protocol, DEFAULT, run, None, None, 9, 10, 6.5, 6))
                rows.append(row(data, protocol, DEFAULT, run, None, None, 14, 30, 29.0, 27))
                rows.append(row(data, protocol, NEIGHBORS, run, 3 * error, 25.0))
                rows.append(row(data, protocol, NEIGHBORS, run, None, None, 14, 40, 40.0, 30))
                rows.append(row(data, protocol, SPREADING[0], run, 40.0))
    return rows


def test_tables_and_sentences():
    tables = EXPERIMENT.tables(invented())
    check_tables(tables)
    *errors, off = tables
    assert [table.caption.split(":")[0] for table in errors] == [
        f"Error (%) at {protocol}" for protocol in PROTOCOLS
    ]
    assert [line[0] for line in errors[1].rows] == [DEFAULT, NEIGHBORS, SPREADING[0]]
    assert errors[1].rows[0][1:] == ["5.0 ± 1.4"] * 6
    assert off.rows[2] == ["r3", DEFAULT, *["10.0 ± 2.8"] * 6, "10.0"]
    said = EXPERIMENT.findings(invented())
    assert said[1].endswith(f"at random: {DEFAULT} 5.0, {NEIGHBORS} 15.0, {SPREADING[0]} 40.0.")
    assert said[-1].endswith(f"at r3: {DEFAULT} 10.0, {NEIGHBORS} 25.0.")
    assert "favours the class that has more labels" in EXPERIMENT.differences[0]


def test_figure_has_errors_by_set_and_reliability_by_kind_of_draw():
    pytest.importorskip("matplotlib")
    figure = EXPERIMENT.draw(invented())
    assert [ax.get_title() for ax in figure.axes[:6]] == list(DATA_SETS)
    assert len(figure.axes[0].patches) == 3 * 3
    for ax in figure.axes[6:]:
        _, ours, papers = ax.lines
        np.testing.assert_allclose(ours.get_xdata(), [0.65, 29 / 30])
        np.testing.assert_allclose(ours.get_ydata(), [0.6, 0.9])
        np.testing.assert_allclose(papers.get_xydata(), [[1.0, 0.75]])
