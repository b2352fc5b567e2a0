"""Values survive JSON with their types."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifoldknn.files.json_values import array_from_plain, array_to_plain, from_plain, to_plain

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.text(st.characters(categories=["Cs", "L"])),
)  # fmt: skip


@given(scalars)
def test_scalars_survive(value):
    back = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert type(back) is type(value)
    assert back == value or (math.isnan(back) and math.isnan(value))
    if isinstance(value, float) and not math.isnan(value):
        assert math.copysign(1, back) == math.copysign(1, value)


def test_numpy_scalars_and_pandas_missing():
    assert from_plain(to_plain(np.int8(-3))) == -3
    assert from_plain(to_plain(np.float32(0.1))) == float(np.float32(0.1))
    assert from_plain(to_plain(pd.NA)) is None


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), 1j, print])
def test_other_things_are_refused(value):
    with pytest.raises(TypeError):
        to_plain(value)


@pytest.mark.parametrize(
    "plain",
    [
        None, 3, [], {}, {"type": "int"}, {"type": "int", "value": 3},
        {"type": "int", "value": "x"},
        {"type": "bool", "value": "True"}, {"type": "bytes", "value": "zz"},
        {"type": "none", "value": 0}, {"type": "object", "value": "x"},
        {"type": "int", "value": "1" * 5000}, {"type": ["int"], "value": "1"},
    ],
)  # fmt: skip
def test_other_dictionaries_are_refused(plain):
    with pytest.raises(ValueError):
        from_plain(plain)


@pytest.mark.parametrize(
    "array",
    [
        np.array([3, 1]), np.array([2, 255], np.uint8), np.array([True, False]),
        np.array(["a", "ö,\n\"x"]), np.array([b"a", b"bc"]), np.array([1.0, 2.0]),
        np.array(["a", "bb"], dtype=object), np.array([2**70, 1], dtype=object),
    ],
    ids=lambda a: a.dtype.str,
)  # fmt: skip
def test_arrays_of_labels_survive(array):
    back = array_from_plain(json.loads(json.dumps(array_to_plain(array))))
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()


@pytest.mark.parametrize(
    "plain",
    [
        {"dtype": "<U900000000", "values": [{"type": "text", "value": "a"}]},
        {"dtype": "|i1", "values": [{"type": "int", "value": "300"}]},
        {"dtype": "<i8", "values": [{"type": "float", "value": "0x1.8p+0"}]},
        {"dtype": "<U1", "values": [{"type": "text", "value": "ab"}]},
        {"dtype": "<M8[s]", "values": []},
        {"dtype": "i4,i4", "values": []},
        {"dtype": "<i8", "values": "abc"},
        {"values": []},
        None,
    ],
)
def test_arrays_that_cannot_be_are_refused(plain):
    with pytest.raises((ValueError, OverflowError, TypeError)):
        array_from_plain(plain)
