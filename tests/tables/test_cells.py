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
    decimal_mark,
    is_missing,
    number_column,
    numbers,
    read,
    read_array,
    read_booleans,
    read_dates,
    read_numbers,
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
    values, count = read_booleans(["TRUE", "False ", "yes", "n", "", "maybe", "1"])
    np.testing.assert_array_equal(values, [1, 0, 1, 0, *[math.nan] * 3])
    assert (count.n_read, dict(count.unread)) == (4, {"maybe": 1, "1": 1})


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), min_size=1))
def test_dates(moments):
    expected = [m.replace(tzinfo=UTC).timestamp() / 86400 for m in moments]
    found, _ = read_dates([m.isoformat() for m in moments])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "text",
    ["05.01.2024", "1/5/2024", "2024-13-01", "soon", "2024-02-30", "00.00.0000", "3 Foo 2024"],
)
def test_what_is_no_date(text):
    values, count = read_dates([text])
    assert np.isnan(values[0])
    assert count.unread == {text: 1}


@pytest.mark.parametrize("form", ["%d-%b-%Y", "%d %B %y", "%d. %b %Y", "%-d-%b-%y 14:30"])
@pytest.mark.parametrize("order", ["ymd", "dmy", "mdy"])
def test_dates_with_the_name_of_a_month(form, order):
    for month in range(1, 13):
        moment = datetime(2024, month, 5, 14 * ("14" in form), 30 * ("14" in form), tzinfo=UTC)
        found, _ = read_dates([moment.strftime(form)], order)
        assert found == pytest.approx([moment.timestamp() / 86400], rel=1e-12)
    german = ["3. März 2024", "3.Mai 2024", "3. Okt. 24", "3-Dez-2024"]
    assert read_dates(german)[1].n_read == 4


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
        ("25 °C", "", 25), ("7 kg/m³", "", 7), ("3,2mg", ",", 3.2), ("ca. 5", "", 5),
        ("Ca 1.5", ".", 1.5), ("~5", "", 5),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text, mark, expected):
    values, count = read_numbers([text], mark)
    assert values.tolist() == [expected]
    assert (count.n_read, count.unread) == (1, {})


@pytest.mark.parametrize("text", ["n.d.", "#NV", "#DIV/0!", ".", "-", "—", "< LOD", "nan", " "])
def test_words_for_no_number(text):
    values, count = read_numbers([text])
    assert np.isnan(values[0])
    assert count.present == 0


@pytest.mark.parametrize("text", ["1.2.3", "12:30", "1 2", "(5)", "1_000", "01.02.2024", "5-7",
                                  "inf", "-Infinity", "1e400", "x", "5 apples and pears", "1a2b",
                                  "about 5", "0x1F", "A-12"])  # fmt: skip
def test_odd_cells_are_not_read(text):
    assert read_numbers([text])[1].unread == {text: 1}


@settings(deadline=None)
@given(st.lists(odd_cells), st.sampled_from(["", ".", ","]))
def test_what_is_plainly_a_number_is_read_so(texts, mark):
    """But for a mark that may stand between thousands, the forgiving way agrees with the strict."""
    values, count = read_numbers(texts, mark)
    for text, value in zip(texts, values):
        strict = numbers([text])
        if strict is not None and not (mark == "," and "." in text):
            expected = math.nan if np.isinf(strict[0]) else strict[0]
            np.testing.assert_array_equal(value, expected)
    assert count.n_read == np.count_nonzero(~np.isnan(values))


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
    assert count.is_sound


def test_a_column_is_sound_if_nine_tenths_are():
    def holds(*texts, kind="number"):
        return read(list(texts), kind)[1].is_sound

    assert holds(*["1"] * 9, "1.2.3")
    assert not holds(*["1"] * 8, "1.2.3", "4:5")
    assert holds(*["1"] * 18, "broken", "see Anna")
    assert not holds("1", "2", "broken")
    assert holds("1 mg", "2", "")
    assert not holds("1 mg", "2 g")
    assert holds("1mg", "2", "3", "4")
    assert holds("", "n.d.")
    assert holds(*["1.2.24"] * 9, "soon", kind="date") is False  # in another order
    assert holds(*["2024-02-01"] * 9, "soon", kind="date")


def test_the_unit_that_most_have_counts():
    values, count = read_numbers(["5 g", "5 mg", "6mg", "7", "12a"])
    np.testing.assert_array_equal(values, [math.nan, 5, 6, 7, math.nan])
    assert (count.n_foreign, dict(count.units)) == (1, {"mg": 2})
    assert read_numbers(["5 g", "5 mg", "6mg"], unit="g")[0][0] == 5


def test_further_texts_that_mean_missing():
    values, count = read(["1", "Broken ", "-999"], "number", na=["broken", "-999"])
    assert count.present == 2
    np.testing.assert_array_equal(values, [1, math.nan, math.nan])
    assert read_booleans(["yes", "Maybe"], ["maybe"])[1].present == 1
    assert read_dates(["2024-01-01", "soon"], na=["soon"])[1].present == 1


def test_numbers_of_an_array():
    values, count = read_array(np.array([1, math.nan, math.inf, -999, -math.inf]), ["-999"])
    np.testing.assert_array_equal(values, [1, *[math.nan] * 4])
    assert (count.n_read, dict(count.unread)) == (1, {"inf": 2})
    assert not read_array(np.array([math.inf]), ["inf"])[1].unread


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["1,5", "2"], ","), (["1.5", "2,5", "3.5"], "."), (["1,5", "2.5"], ""), (["1.234"], ""),
        (["1.234,5"], ","), (["1,234,567"], "."), (["01.02.2024", "a,b", "1.2.3"], ""),
        (["0.123"], "."), (["<0,5 mg"], ","), (["2. Mai", "3."], ""),
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
    assert read_dates([moment.strftime(form)], order)[0] == pytest.approx([expected], rel=1e-12)
    text = moment.strftime(form)
    if order == "mdy" and moment.day > 12:
        assert read_dates([text], "dmy")[1].unread
