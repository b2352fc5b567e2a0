"""Cells of text: what is a number, a truth value, a date, and what is missing."""

import math
import re
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.tables.cells import (
    booleans,
    dates,
    decimal_mark,
    is_missing,
    number_column,
    numbers,
    read_numbers,
    with_points,
    without,
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


@settings(deadline=None)
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


@pytest.mark.parametrize(
    ("text", "mark", "expected"),
    [
        ("<0,5", ",", 0.5), ("≥ 3.5", ".", 3.5), ("~7", "", 7), ("5 %", "", 5), ("3.2 mg", "", 3.2),
        ("1,234.5", ".", 1234.5), ("1,234.5", ",", 1234.5), ("1.234,5", ".", 1234.5),
        ("1,234", ".", 1234), ("1,234", ",", 1.234), ("1,234", "", 1.234), ("1.234", ",", 1234),
        ("0.123", ",", 0.123), ("1,234,567", ",", 1234567), ("1 234,5", ",", 1234.5),
        ("1'234.50", ".", 1234.5), ("−3.5", ".", -3.5), ("–2", "", -2), ("$1,234.50", ".", 1234.5),
        ("-,25e1", ",", -2.5), ("1.234e3", ",", 1234), ("5e−3", ".", 0.005), ("-.5", ",", -0.5),
        ("25 °C", "", 25), ("7 kg/m³", "", 7), ("Infinity", "", math.inf),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text, mark, expected):
    values, count = read_numbers([text], mark)
    assert values.tolist() == [expected]
    assert (count.n_numbers, count.unread, count.words) == (1, {}, {})


@pytest.mark.parametrize("text", ["n.d.", "#NV", "#DIV/0!", ".", "-", "—", "< LOD", "nan", " "])
def test_words_for_no_number(text):
    values, count = read_numbers([text])
    assert np.isnan(values[0])
    assert count.present == 0


@pytest.mark.parametrize("text", ["1.2.3", "12:30", "1 2", "(5)", "1_000", "01.02.2024", "5-7"])
def test_odd_cells_are_not_read(text):
    assert read_numbers([text])[1].unread == {text: 1}


@pytest.mark.parametrize("text", ["x", "5 apples and pears", "1a2b", "about 5", "0x1F", "A-12"])
def test_text_is_no_number(text):
    assert read_numbers([text])[1].words == {text: 1}


@settings(deadline=None)
@given(st.lists(odd_cells), st.sampled_from(["", ".", ","]))
def test_what_is_plainly_a_number_is_read_so(texts, mark):
    """But for a mark that may stand between thousands, the forgiving way agrees with the strict."""
    values, count = read_numbers(texts, mark)
    for text, value in zip(texts, values):
        strict = numbers([text])
        if strict is not None and not (mark == "," and "." in text):
            np.testing.assert_array_equal(value, strict[0])
    assert count.n_numbers == np.count_nonzero(~np.isnan(values))


@settings(deadline=None)
@given(
    st.floats(-1e9, 1e9).map(lambda x: round(x, 2)),
    st.sampled_from(["", "<", "> "]),
    st.sampled_from(["", " mg", " %"]),
    st.sampled_from([",.", ".,", " ,", "’.", "\u202f,"]),
)
def test_written_numbers_come_back(value, bound, unit, marks):
    text = f"{value:,.2f}".translate({44: marks[0], 46: marks[1]})
    found, count = read_numbers([f"{bound}{text}{unit}"], marks[1])
    assert found[0] == value
    assert count.n_bounds == bool(bound)
    assert list(count.units) == [unit.strip()] * bool(unit)
    assert count.are_numbers


def test_numbers_of_a_column():
    def holds(*texts):
        return read_numbers(list(texts))[1].are_numbers

    assert holds(*["1"] * 9, "1.2.3")
    assert not holds(*["1"] * 8, "1.2.3", "4:5")  # too many
    assert not holds(*["1"] * 99, "broken")
    assert holds("1 mg", "2", "")
    assert not holds("1 mg", "2 g")
    assert holds("1mg", "2mg", "3")
    assert not holds("1a", "2", "3", "4")  # a house number
    assert holds("", "n.d.")


def test_further_texts_that_mean_missing():
    values, count = read_numbers(["1", "Broken ", "-999"], na=["broken", "-999"])
    assert count.present == 2
    np.testing.assert_array_equal(without(values, ["broken", "-999"]), [1, math.nan, math.nan])
    assert booleans(["yes", "Maybe"], ["maybe"]) is not None
    assert dates(["2024-01-01", "soon"], na=["soon"]) is not None


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["1,5", "2"], ","), (["1.5", "2,5", "3.5"], "."), (["1,5", "2.5"], ""), (["1.234"], ""),
        (["1.234,5"], ","), (["1,234,567"], "."), (["01.02.2024", "a,b", "1.2.3"], ""),
        (["0.123"], "."), (["<0,5 mg"], ","),
    ],
)  # fmt: skip
def test_decimal_mark(texts, mark):
    assert decimal_mark(texts) == mark


@settings(deadline=None)
@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)).map(
        lambda moment: moment.replace(second=0, microsecond=0)
    ),
    st.sampled_from(["%d.%m.%Y %H:%M", "%d/%m/%y %I:%M %p", "%m/%d/%Y %H:%M", "%m-%d-%y %I:%M%p",
                     "%Y/%m/%d, %H:%M"]),
)  # fmt: skip
def test_dates_as_people_write_them(moment, form):
    order = "".join(letter for letter in form.lower() if letter in "ymd")[:3]
    expected = moment.replace(tzinfo=UTC).timestamp() / 86400
    assert dates([moment.strftime(form)], order) == pytest.approx([expected], rel=1e-12)
    text = moment.strftime(form)
    if order == "mdy" and moment.day > 12:
        assert dates([text], "dmy") is None
