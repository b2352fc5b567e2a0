"""Averages against statistics of the standard library."""

import statistics

import hypothesis.strategies as st
from hypothesis import given

from manifoldknn.reproduction.figures.averages import (
    Average,
    averages,
    by_method,
    curves,
    less,
    mean_and_deviation,
    over_common_runs,
    table_of,
)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.floats(0, 100)),
        min_size=1,
        max_size=20,
    )
)
def test_groups_are_averaged_apart(measured):
    rows = [{"m": m, "k": k, "run": i, "error": e} for i, (m, k, e) in enumerate(measured)]
    found = averages(rows, ["m", "k"])
    assert list(found) == list(dict.fromkeys((m, k) for m, k, _ in measured))
    for (m, k), average in found.items():
        errors = [e for m2, k2, e in measured if (m2, k2) == (m, k)]
        assert abs(average.mean - statistics.fmean(errors)) < 1e-9
        assert average.n_runs == len(errors)
        if len(errors) == 1:
            assert average.deviation is None
        else:
            assert abs(average.deviation - statistics.stdev(errors)) < 1e-9


def test_missing_values_are_passed_over():
    rows = [{"k": 1, "error": None}, {"k": 1, "error": 2.0}, {"k": 2, "error": None}]
    assert averages(rows, ["k"]) == {(1,): Average(2.0, None, 1)}


def test_texts():
    assert mean_and_deviation(Average(5.84, 1.06, 10)) == "5.8 ± 1.1"
    assert mean_and_deviation(Average(5.84, None, 1), 2) == "5.84"
    assert mean_and_deviation(None) == "–"


def test_a_table_tells_the_runs_and_hides_deviations_of_few():
    rows = [
        {"data": "d", "method": m, "k": k, "run": run, "error": 10.0 * k + run}
        for m, k, n in (("a", 2, 5), ("a", 1, 2), ("b", 2, 3))
        for run in range(n)
    ]
    mean = table_of(rows, "k", "caption", name="k={}")
    assert mean.header == ["data", "method", "k=1", "k=2", "runs"]
    assert mean.rows == [["d", "a", 10.5, 22.0, "2 to 5"], ["d", "b", None, 21.0, "3"]]
    deviation = table_of(rows, "k", "caption", what="deviation")
    assert deviation.rows == [["d", "a", None, 1.58, "2 to 5"], ["d", "b", None, None, "3"]]


def test_curves_go_from_left_to_right():
    found = {("d", "b", 2): Average(2.0, None, 1), ("d", "a", 3): Average(3.0, 0.5, 5),
             ("c", "b", 1): Average(1.0, 0.1, 5), ("d", "b", 1): Average(4.0, None, 1)}  # fmt: skip
    assert curves(found) == {
        "d": {"b": ([1.0, 2.0], [4.0, 2.0]), "a": ([3.0], [3.0])},
        "c": {"b": ([1.0], [1.0])},
    }
    assert list(curves(found)) == ["d", "c"]
    assert curves(found, "deviation", "{}!") == {
        "d!": {"a": ([3.0], [0.5])},
        "c!": {"b": ([1.0], [0.1])},
    }


def test_differences_and_lines_where_there_is_something():
    one = Average(5.0, None, 1)
    assert (less(one, 2.5), less(None, 2.5), less(one, None)) == (2.5, None, None)
    assert by_method({("x", "a"): one}, ["b", "a"], ["x", "y"]) == [["a", "5.0", "–"]]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(1, 2), st.integers(0, 3)), st.floats(0, 100)
    )
)
def test_common_runs_are_compared_run_by_run(measured):
    rows = [{"method": m, "k": k, "run": r, "error": e} for (m, k, r), e in measured.items()]
    found = over_common_runs(rows, "a", "b", ["k"])
    for k in (1, 2):
        both = [r for r in range(4) if ("a", k, r) in measured and ("b", k, r) in measured]
        assert ((k,) in found) == bool(both)
        if both:
            a, b = found[k,]
            assert abs(a - statistics.fmean(measured["a", k, r] for r in both)) < 1e-9
            assert abs(b - statistics.fmean(measured["b", k, r] for r in both)) < 1e-9
