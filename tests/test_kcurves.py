"""Curves over k: rows, tables and lines."""

from experiment_kit import QUICK, blobs
from manifoldknn.experiments.kcurves import (
    COLUMNS,
    claims,
    curve_tables,
    curves_over_k,
    falling,
    measured,
)
from manifoldknn.experiments.methods import DEFAULT, PUBLISHED, error_of
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


def rows_of(errors, k=3, data="d"):
    return [
        {"data": data, "method": method, "k": k, "run": run, "error": error}
        for method, values in errors.items()
        for run, error in enumerate(values)
    ]


def test_claims_compare_over_common_runs():
    rows = rows_of({"kNN": [10, 90], "wkNN": [9, 80], "gkNN": [9.5, 70], PUBLISHED: [9.2]})
    rows += rows_of({"kNN": [10, 10], "wkNN": [12, 12], "gkNN": [5, 5], PUBLISHED: [5]}, data="e")
    table = claims(rows, ("said", "found", True))
    assert table.rows[0] == ["said", "found", True]
    found = {line[0]: line[1:] for line in table.rows}
    assert found["wkNN generally outperforms kNN"] == ["at k = 3 lower on 1 of 2 sets: d", False]
    assert found["gkNN improves much on kNN and wkNN in most cases"] == [
        "at k = 3 lower on 2 of 2 sets",
        True,
    ]
    # The one run of ours is held against the same run of wkNN, which is better by 0.2 there.
    assert found["mkNN almost always has the lowest error"] == [
        f"{PUBLISHED}: lowest in 1 of 2 cases of set and k",
        False,
    ]


def test_falling_errors_from_the_smallest_to_the_largest_k():
    rows = rows_of({"kNN": [8, 6]}, k=1) + rows_of({"kNN": [4, 3]}, k=5) + rows_of({"gkNN": [1]})
    assert falling(rows, ("kNN", "gkNN", "wkNN")) == {"kNN": (7.0, 3.5)}
