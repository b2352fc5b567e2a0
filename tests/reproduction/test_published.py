"""The published numbers hang together."""

import numpy as np

from manifoldknn.datasets import PAPER_SETS
from manifoldknn.reproduction.published import (
    DATA_SETS,
    ERRORS,
    ONLINE_SECONDS,
    RATIOS,
    RECONSTRUCTION,
    SECONDS,
)


def test_every_set_has_every_method():
    assert tuple(ERRORS) == DATA_SETS == tuple(PAPER_SETS)
    for row in ERRORS.values():
        assert list(row) == ["SVM", "ANN", "NB", "DT", "mkNN"]


def test_errors_are_those_of_the_printed_table():
    # Sums over columns, taken from the printed table by hand.
    means = {m: sum(row[m].mean for row in ERRORS.values()) for m in ERRORS["usps"]}
    np.testing.assert_allclose(means["SVM"], 403.46)
    np.testing.assert_allclose(means["ANN"], 231.23)
    np.testing.assert_allclose(means["NB"], 211.99)
    np.testing.assert_allclose(means["DT"], 397.46)
    np.testing.assert_allclose(means["mkNN"], 102.22)
    np.testing.assert_allclose(
        sum(e.deviation for row in ERRORS.values() for e in row.values()), 233.6
    )


def test_its_method_is_printed_bold_because_it_is_the_best():
    for row in ERRORS.values():
        assert min(row, key=lambda m: row[m].mean) == "mkNN"


def test_times_have_every_ratio_and_method():
    assert list(SECONDS) == [
        (data, ratio) for data in ("banknote", "satlog", "pendigits") for ratio in RATIOS
    ]
    assert all(len(row) == 8 and row["gkNN"] == max(row.values()) for row in SECONDS.values())
    np.testing.assert_allclose(sum(row["mkNN"] for row in SECONDS.values()), 95.71)
    np.testing.assert_allclose(sum(row["gkNN"] for row in SECONDS.values()), 542.82)


def test_reconstruction_and_online_times():
    assert {name: len(values) for name, values in RECONSTRUCTION.items()} == {
        "samples": 3,
        "weights": 3,
    }
    assert max(RECONSTRUCTION["samples"]) < 0.5
    assert max(RECONSTRUCTION["weights"]) < 3
    times = ONLINE_SECONDS["satlog", 1000]
    assert times["sequential"] < times["standard"]
