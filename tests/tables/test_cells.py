"""Cells of text: what is a number, a truth value, a date, and what is missing."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.tables.cells import booleans, dates, is_missing, numbers


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_numbers_as_python_writes_them(values):
    np.testing.assert_array_equal(numbers([repr(v) for v in values]), values)


@given(st.lists(st.one_of(st.just(""), st.just(" NA "), st.integers(-(10**6), 10**6).map(str))))
def test_missing_among_numbers(texts):
    found = numbers(texts)
    expected = [math.nan if is_missing(t) else float(t) for t in texts]
    np.testing.assert_array_equal(found, np.array(expected, dtype=float))


@pytest.mark.parametrize("texts", [["1", "x"], ["1_000"], ["0x10"], ["1,5"], ["1 2"], ["true"]])
def test_what_is_no_number(texts):
    assert numbers(texts) is None


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "NaN", "null", "None", "?", "-", "NaT"])
def test_missing(word):
    assert is_missing(word)


@pytest.mark.parametrize("word", ["0", "no", "x", "--", "false"])
def test_present(word):
    assert not is_missing(word)


def test_booleans():
    np.testing.assert_array_equal(
        booleans(["TRUE", "False ", "yes", "n", ""]), [1, 0, 1, 0, math.nan]
    )
    assert booleans(["yes", "maybe"]) is None
    assert booleans(["1", "0"]) is None  # numbers


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), min_size=1))
def test_dates(moments):
    expected = [m.replace(tzinfo=UTC).timestamp() / 86400 for m in moments]
    np.testing.assert_allclose(dates([m.isoformat() for m in moments]), expected, rtol=1e-12)


@pytest.mark.parametrize("text", ["05.01.2024", "1/5/2024", "2024-13-01", "soon", "2024-02-30"])
def test_what_is_no_date(text):
    assert dates([text]) is None
