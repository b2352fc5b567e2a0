import numpy as np
import pytest

from manifoldknn.precision import single_precision_serves, too_small


@pytest.mark.parametrize(
    ("spread", "tol", "expected"), [(59, 1e-5, True), (60, 1e-5, False), (1, 9e-6, False)]
)
def test_needs_narrow_degrees_and_a_modest_tolerance(spread, tol, expected):
    assert single_precision_serves(np.array([-7.0, spread - 7.0]), tol) == expected


def test_rows_below_the_root_of_the_smallest_number_are_too_small():
    assert too_small(np.array([0.0, -43.0, -44.0, -np.inf, np.nan])).tolist() == [
        False, False, True, True, True,
    ]  # fmt: skip
