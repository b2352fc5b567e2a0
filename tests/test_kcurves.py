"""Curves over k: rows, tables and lines."""

from experiment_kit import QUICK, blobs
from manifoldknn.experiments.kcurves import COLUMNS, curve_tables, curves_over_k, measured
from manifoldknn.experiments.methods import DEFAULT, error_of
from manifoldknn.experiments.problems import drawn


def test_k_is_labels_per_class_and_voters():
    problem = blobs(90, spread=2.5)
    rows = measured("set", problem, ("kNN", DEFAULT), (1, 4), 2, QUICK)
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert [(row["method"], row["k"]) for row in rows] == [
        ("kNN", 1),
        (DEFAULT, 1),
        ("kNN", 4),
        (DEFAULT, 4),
    ]
    y = drawn(problem.truth, 4, 2)
    assert rows[2]["error"] == error_of("kNN", problem, y, k=4, seed=2)


def test_tables_and_lines_hold_means():
    rows = [
        {"data": "d", "method": m, "k": k, "run": run, "error": 10.0 * k + run}
        for m in ("kNN", DEFAULT)
        for k in (2, 1)
        for run in range(2 if m == "kNN" else 3)
    ]
    (table,) = curve_tables(rows, "caption", QUICK)
    assert table.header == ["data", "method", "k=1", "k=2", "runs"]
    assert table.rows == [["d", "kNN", 10.5, 20.5, "2"], ["d", DEFAULT, 11.0, 21.0, "3"]]
    assert curves_over_k(rows) == {
        "d": {"kNN": ([1.0, 2.0], [10.5, 20.5]), DEFAULT: ([1.0, 2.0], [11.0, 21.0])}
    }


def test_what_was_not_measured_stays_empty():
    rows = [
        {"data": "d", "method": "a", "k": 1, "run": 0, "error": 1.0},
        {"data": "d", "method": "b", "k": 2, "run": 0, "error": 2.0},
    ]
    (table,) = curve_tables(rows, "caption", QUICK)
    assert table.rows == [["d", "a", 1.0, None, "1"], ["d", "b", None, 2.0, "1"]]
