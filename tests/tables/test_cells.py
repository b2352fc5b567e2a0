"""Cells of text: what is a number, a truth value, a date, and what is missing."""

import math
import re
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.tables.cells import (
    booleans,
    dates,
    is_missing,
    number_column,
    numbers,
    with_points,
)


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


odd_cells = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text("0123456789.+-eE_, \t\xa0\u2003٣naNAif(1)/?#", max_size=6),
    st.sampled_from(["", "NA", " na ", "N/A", "nan", "-nan", "nan(1)", "1e400", "+1", "Infinity"]),
)


@given(st.lists(odd_cells, max_size=6))
def test_columns_of_arrow_are_read_like_lists(texts):
    found, expected = number_column(pa.array(texts, pa.string())), numbers(texts)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(found, expected)


@given(st.lists(odd_cells))
def test_decimal_commas(texts):
    comma = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
    expected = [text.replace(",", ".") if comma.fullmatch(text) else text for text in texts]
    assert with_points(pa.array(texts, pa.string())).to_pylist() == expected
