"""Labels: which entries are unlabelled, how the rest are numbered and decoded, what is refused."""

import datetime
import math
import pickle
import time
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from manifoldknn.base.labels import EncodedLabels, encode_further, encode_labels

NAN = float("nan")


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def same(a, b):
    """Equality in which NaN, None and NA each equal only themselves."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a is b if a is None or a is pd.NA or b is None or b is pd.NA else a == b


def check(encoded, classes, dtype, codes, marker):
    assert encoded.classes.tolist() == classes
    assert encoded.classes.dtype == np.dtype(dtype)
    assert encoded.codes.tolist() == codes
    assert encoded.codes.dtype == np.intp
    assert same(encoded.marker, marker), encoded.marker
    assert encoded.labeled.tolist() == [i for i, code in enumerate(codes) if code >= 0]
    everything = [*range(len(classes)), 0]
    decoded = encoded.decode(everything)
    assert decoded.dtype == encoded.classes.dtype
    assert decoded.tolist() == [classes[i] for i in everything]
    abstaining = encoded.decode([0, -1]).tolist()
    assert abstaining[0] == classes[0]
    assert same(abstaining[1], marker)


AUTO = {
    "int8": (np.array([3, -1, 2], np.int8), [2, 3], "i1", [1, -1, 0], -1),
    "int64": (np.array([3, -1, -2]), [-2, 3], "i8", [1, -1, 0], -1),
    "big endian": (np.array([3, -1], ">i4"), [3], ">i4", [0, -1], -1),
    "uint8": (np.array([3, 255], np.uint8), [3, 255], "u1", [0, 1], -1),
    "float": (np.array([1.0, NAN, -1.0, 0.0]), [0.0, 1.0], "f8", [1, -1, -1, 0], NAN),
    "float32": (np.array([1.0, NAN], np.float32), [1.0], "f4", [0, -1], NAN),
    "bool": (np.array([True, False]), [False, True], "?", [1, 0], None),
    "U": (np.array(["b", "", "abc"]), ["abc", "b"], "U3", [1, -1, 0], ""),
    "S": (np.array([b"b", b"", b"a"]), [b"a", b"b"], "S1", [1, -1, 0], b""),
    "object strings": (objects("b", None, "", NAN, "a"), ["a", "b"], "O", [1, -1, -1, -1, 0], None),
    "object strings, NaN": (objects("b", NAN, None), ["b"], "O", [0, -1, -1], NAN),
    "object strings, NA": (objects("b", pd.NA, pd.NaT), ["b"], "O", [0, -1, -1], pd.NA),
    "object strings, empty": (objects("b", ""), ["b"], "O", [0, -1], ""),
    "object strings, -1": (objects("b", -1, "a"), ["a", "b"], "O", [1, -1, 0], -1),
    "object strings, whole": (objects("b", "a"), ["a", "b"], "O", [1, 0], None),
    "object np.str_": (objects(np.str_("b"), "a", np.str_("a")), ["a", "b"], "O", [1, 0, 0], None),
    "object bytes": (objects(b"b", b"", None), [b"b"], "O", [0, -1, -1], b""),
    "object ints": (objects(2, -1, None, 0), [0, 2], "i8", [1, -1, -1, 0], -1),
    "object floats": (objects(2.0, -1.0, NAN), [2.0], "f8", [0, -1, -1], NAN),
    "object bools": (objects(True, None, False), [False, True], "?", [1, -1, 0], None),
    "object huge ints": (objects(2**80, 1, None), [1, 2**80], "O", [1, 0, -1], None),
    "object NaT": (objects("a", np.datetime64("NaT")), ["a"], "O", [0, -1], np.datetime64("NaT")),
    "list of ints": ([2, -1, 0], [0, 2], "i8", [1, -1, 0], -1),
    "tuple of ints": ((2, -1, 0), [0, 2], "i8", [1, -1, 0], -1),
    "list of np.int8": ([np.int8(2), np.int8(-1)], [2], "i1", [0, -1], -1),
    "list of ints, None": ([2, None, -1, 0], [0, 2], "i8", [1, -1, -1, 0], -1),
    "list of ints, NaN": ([2, NAN, -1, 0], [0, 2], "i8", [1, -1, -1, 0], -1),
    "list of ints, empty": ([2, "", 0], [0, 2], "i8", [1, -1, 0], -1),
    "list of numbers": ([2, 1.0, NAN], [1.0, 2.0], "f8", [1, 0, -1], NAN),
    "list of floats": ([2.0, NAN, -1.0], [2.0], "f8", [0, -1, -1], NAN),
    "list of bools": ([True, False], [False, True], "?", [1, 0], None),
    "list of bools, None": ([True, None], [True], "?", [0, -1], None),
    "list of strings": (["b", "", "a"], ["a", "b"], "U1", [1, -1, 0], ""),
    "list of strings, None": (["b", None, "a"], ["a", "b"], "O", [1, -1, 0], None),
    "list of strings, NaN": (["b", NAN, "a"], ["a", "b"], "O", [1, -1, 0], NAN),
    "list of strings, NUL": (["a\0", "a"], ["a", "a\0"], "O", [1, 0], None),
    "list of bytes": ([b"b", b""], [b"b"], "S1", [0, -1], b""),
    "list of huge ints": ([2**63 + 1, -2], [-2, 2**63 + 1], "O", [1, 0], None),
    "the class auto": (["auto", "b"], ["auto", "b"], "U4", [0, 1], ""),
    "masked": (np.ma.array([1, 2, 3], mask=[0, 1, 0]), [1, 3], "i8", [0, -1, 1], -1),
    "masked, no mask": (np.ma.array([1, -1, 3]), [1, 3], "i8", [0, -1, 1], -1),
    "one class": (np.array([4, 4]), [4], "i8", [0, 0], -1),
    "pandas ints": (pd.Series([3, -1, 2], [7, 7, 8]), [2, 3], "i8", [1, -1, 0], -1),
    "pandas Int64": (pd.Series([3, None, -1], dtype="Int64"), [3], "i8", [0, -1, -1], -1),
    "pandas Int64 beyond doubles": (
        pd.Series([2**53 + 1, 2**53, None], dtype="Int64"),
        [2**53, 2**53 + 1],
        "i8",
        [1, 0, -1],
        -1,
    ),
    "pandas UInt8": (pd.Series([3, None], dtype="UInt8"), [3], "u1", [0, -1], -1),
    "pandas floats": (pd.Series([3, None, -1]), [3.0], "f8", [0, -1, -1], NAN),
    "pandas Float64": (pd.Series([3, None, -1], dtype="Float64"), [3.0], "f8", [0, -1, -1], NAN),
    "pandas boolean": (pd.Series([True, None], dtype="boolean"), [True], "?", [0, -1], None),
    "pandas string": (pd.Series(["b", None], dtype="string"), ["b"], "O", [0, -1], pd.NA),
    "pandas object": (pd.Series(["b", None], dtype=object), ["b"], "O", [0, -1], None),
    "pandas categorical": (
        pd.Series(pd.Categorical(["b", None, "a"], categories=["c", "b", "a"], ordered=True)),
        ["a", "b"],
        "O",
        [1, -1, 0],
        NAN,
    ),
    "pandas categorical of ints": (
        pd.Series(pd.Categorical([3, None, -1])),
        [3],
        "i8",
        [0, -1, -1],
        -1,
    ),
    "bare Categorical": (pd.Categorical(["b", None]), ["b"], "O", [0, -1], NAN),
    "pandas array": (pd.array([3, None]), [3], "i8", [0, -1], -1),
    "pandas Index": (pd.Index([3, -1]), [3], "i8", [0, -1], -1),
    "polars ints": (pl.Series([3, None, -1], dtype=pl.Int16), [3], "i2", [0, -1, -1], -1),
    "polars floats": (pl.Series([3.0, None, NAN, -1.0]), [3.0], "f8", [0, -1, -1, -1], NAN),
    "polars bools": (pl.Series([True, None]), [True], "?", [0, -1], None),
    "polars strings": (pl.Series(["b", None, ""]), ["b"], "O", [0, -1, -1], None),
    "polars categorical": (
        pl.Series(["b", None], dtype=pl.Categorical),
        ["b"],
        "O",
        [0, -1],
        None,
    ),
    "polars enum": (
        pl.Series(["b", None], dtype=pl.Enum(["c", "b"])),
        ["b"],
        "O",
        [0, -1],
        None,
    ),
}
if hasattr(np.dtypes, "StringDType"):  # NumPy 2
    strings = np.array(["b", "", "a"], np.dtypes.StringDType())
    AUTO["StringDType"] = (strings, ["a", "b"], "O", [1, -1, 0], "")
if not pd.__version__.startswith("2."):  # pandas 3 brought this dtype
    strings = pd.Series(["b", None, ""], dtype="str")
    AUTO["pandas str"] = (strings, ["b"], "O", [0, -1, -1], NAN)


@pytest.mark.parametrize(("y", "classes", "dtype", "codes", "marker"), AUTO.values(), ids=AUTO)
def test_auto(y, classes, dtype, codes, marker):
    if isinstance(marker, np.datetime64):
        encoded = encode_labels(y)
        assert encoded.codes.tolist() == codes
        assert np.isnat(encoded.marker)
    else:
        check(encode_labels(y), classes, dtype, codes, marker)


GIVEN = {
    "int": (np.array([-1, -999, 2]), -999, [-1, 2], "i8", [0, -1, 1], -999),
    "int as float": (np.array([-1, -999, 2]), -999.0, [-1, 2], "i8", [0, -1, 1], -999),
    "int, NumPy scalar": (np.array([-1, 0, 2]), np.int8(0), [-1, 2], "i8", [0, -1, 1], 0),
    "int too wide for y": (np.array([-1, 2], np.int8), -999, [-1, 2], "i1", [0, 1], -999),
    "int, None": (np.array([-1, 2]), None, [-1, 2], "i8", [0, 1], None),
    "int, NaN": (np.array([-1, 2]), NAN, [-1, 2], "i8", [0, 1], NAN),
    "int, NA": (np.array([-1, 2]), pd.NA, [-1, 2], "i8", [0, 1], pd.NA),
    "int, inf": (np.array([-1, 2]), np.inf, [-1, 2], "i8", [0, 1], np.inf),
    "uint8, -1": (np.array([1, 255], np.uint8), -1, [1, 255], "u1", [0, 1], -1),
    "float": (np.array([-1.0, 9.0, NAN]), 9, [-1.0], "f8", [0, -1, -1], 9),
    "float, None": (np.array([-1.0, NAN]), None, [-1.0], "f8", [0, -1], NAN),
    "float, inf": (np.array([-1.0, np.inf]), np.inf, [-1.0], "f8", [0, -1], np.inf),
    "float32, inexact": (
        np.array([1, 0.5], np.float32),
        np.float64(0.5),
        [1],
        "f4",
        [0, -1],
        0.5,
    ),
    "bool": (np.array([True, False]), False, [True], "?", [0, -1], False),
    "bool, None": (np.array([True, False]), None, [False, True], "?", [1, 0], None),
    "U": (np.array(["", "?", "b"]), "?", ["", "b"], "U1", [0, -1, 1], "?"),
    "U, long": (np.array(["a", "b"]), "unknown", ["a", "b"], "U1", [0, 1], "unknown"),
    "U, None": (np.array(["", "b"]), None, ["", "b"], "U1", [0, 1], None),
    "S": (np.array([b"", b"?"]), b"?", [b""], "S1", [0, -1], b"?"),
    "objects": (objects("", "?", None), "?", [""], "O", [0, -1, -1], "?"),
    "objects, None": (objects("", "b", NAN), None, ["", "b"], "O", [0, 1, -1], None),
    "object ints": (objects(-1, 0, 1), 0, [-1, 1], "i8", [0, -1, 1], 0),
    "object ints, None": (objects(-1, None), None, [-1], "i8", [0, -1], None),
    "object bools": (objects(False, True, None), False, [True], "?", [-1, 0, -1], False),
    "ints and string": ([1, "?", -1], "?", [-1, 1], "i8", [1, -1, 0], "?"),
    "object ints and string": (objects(1, "?", -1), "?", [-1, 1], "i8", [1, -1, 0], "?"),
    "pandas Int64": (pd.Series([-1, 9, None], dtype="Int64"), 9, [-1], "i8", [0, -1, -1], 9),
    "pandas string": (pd.Series(["", "?", None], dtype="string"), "?", [""], "O", [0, -1, -1], "?"),
    "polars": (pl.Series([-1, 9, None]), 9, [-1], "i8", [0, -1, -1], 9),
}


@pytest.mark.parametrize(
    ("y", "unlabeled", "classes", "dtype", "codes", "marker"), GIVEN.values(), ids=GIVEN
)
def test_given_marker(y, unlabeled, classes, dtype, codes, marker):
    check(encode_labels(y, unlabeled=unlabeled), classes, dtype, codes, marker)


@pytest.mark.parametrize(
    ("y", "unlabeled", "dtype"),
    [
        (np.array([1], np.int8), "auto", "i1"),
        (np.array([1], np.int8), 5, "i1"),
        (np.array([1], np.int8), -999, "i2"),
        (np.array([1], np.uint8), "auto", "i2"),
        (np.array([1], np.uint32), "auto", "i8"),
        (np.array([1], np.uint64), "auto", "i8"),
        (np.array([2**64 - 1], np.uint64), "auto", "O"),
        (np.array([1]), 2**70, "O"),
        (np.array([1]), NAN, "f8"),
        (np.array([2**53 + 1]), NAN, "O"),
        (np.array([-(2**63)]), NAN, "O"),
        (np.array([1]), None, "O"),
        (np.array([1], np.float16), "auto", "f2"),
        (np.array([1], np.float16), 1e6, "f4"),
        (np.array([True]), "auto", "O"),
        (np.array([True]), NAN, "O"),
        (np.array(["ab"]), "auto", "U2"),
        (np.array(["ab"]), "abc", "U3"),
        (np.array(["ab"]), NAN, "O"),
        (np.array([b"ab"]), b"abc", "S3"),
        (objects("ab"), "auto", "O"),
    ],
)
def test_dtype_of_answers_with_marker(y, unlabeled, dtype):
    encoded = encode_labels(y, unlabeled=unlabeled)
    decoded = encoded.decode([[0], [-1]])
    assert decoded.dtype == np.dtype(dtype)
    assert decoded.shape == (2, 1)
    assert decoded[0, 0] == y[0]
    assert same(decoded[1:, 0].tolist()[0], encoded.marker)


def test_decode_of_nothing_and_out_of_range():
    encoded = encode_labels([1, 2])
    assert encoded.decode([]).shape == (0,)
    with pytest.raises(IndexError):
        encoded.decode([2])


WHOLE_COLUMN = [
    np.array([[3], [-1], [2]]),
    [[3], [-1], [2]],
    np.ma.array([[3], [9], [2]], mask=[[0], [1], [0]]),
    pd.DataFrame({"y": pd.array([3, None, 2])}),
    pd.DataFrame([3, -1, 2]),
    pl.DataFrame({"y": [3, None, 2]}),
]


@pytest.mark.parametrize("y", WHOLE_COLUMN, ids=lambda y: type(y).__name__)
def test_column_vector_warns(y):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        encoded = encode_labels(y)
    check(encoded, [2, 3], "i8", [1, -1, 0], -1)


def test_column_vector_hides_no_mix_of_types():
    with (
        pytest.warns(DataConversionWarning),
        pytest.raises(ValueError, match="y mixes label types: 1 and 'a'"),
    ):
        encode_labels([[1], ["a"]])


def test_input_is_left_alone_and_result_pickles():
    y = np.array([3, -1, 2])
    y.flags.writeable = False
    encoded = pickle.loads(pickle.dumps(encode_labels(y)))
    assert encoded.decode(encoded.codes).tolist() == y.tolist()


def test_few_labels_of_many_classes_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(encode_labels(np.arange(100.0)).classes) == 100


ERRORS = {
    "None": (None, "auto", "requires y to be passed, but the target y is None"),
    "2-D": (np.zeros((3, 2)), "auto", r"y should be a 1d array, got an array of shape \(3, 2\)"),
    "2-D list": ([[1, 0], [0, 1]], "auto", r"y should be a 1d array.*\(2, 2\)"),
    "2-D pandas": (pd.DataFrame({"a": [1], "b": [2]}), "auto", r"y should be a 1d array.*\(1, 2\)"),
    "2-D polars": (pl.DataFrame({"a": [1], "b": [2]}), "auto", r"y should be a 1d array.*\(1, 2\)"),
    "scalar": (5, "auto", r"y should be a 1d array, got an array of shape \(\)"),
    "string": ("abc", "auto", r"y should be a 1d array"),
    "ragged": ([[1], [2, 3]], "auto", r"Unknown label type: y holds \[1\] of type list"),
    "list inside": (objects("a", [1]), "auto", r"Unknown label type: y holds \[1\] of type list"),
    "list in tuple": (objects("a", ([],)), "auto", r"y holds \(\[\],\) of type tuple"),
    "dict inside": ([{"a": 1}, None], "auto", "y holds .* of type dict"),
    "tuple inside": (objects((1, 2), (3, 4)), "auto", r"y holds \(1, 2\) of type tuple"),
    "fraction": ([1, Fraction(1, 2)], "auto", "y holds .* of type Fraction"),
    "polars lists": (pl.Series([[1], [2, 3]]), "auto", "Unknown label type: y holds"),
    "empty": ([], "auto", "y has no labelled sample: all 0 entries"),
    "unlabelled ints": (np.array([-1, -1]), "auto", "y has no labelled sample: all 2 entries"),
    "unlabelled strings": (np.array(["", ""]), "auto", "y has no labelled sample"),
    "unlabelled floats": (np.array([NAN, -1]), "auto", "y has no labelled sample"),
    "unlabelled objects": ([None, NAN, "", -1], "auto", "y has no labelled sample"),
    "unlabelled pandas": (pd.Series([None], dtype="Int64"), "auto", "y has no labelled sample"),
    "unlabelled polars": (pl.Series([None]), "auto", "y has no labelled sample"),
    "unlabelled NaT": (np.array(["NaT"], "M8[D]"), "auto", "y has no labelled sample"),
    "unlabelled, given": ([9, None], 9, "y has no labelled sample: .* with unlabeled=9"),
    "mixed list": ([1, "a"], "auto", "y mixes label types: 1 and 'a'"),
    "mixed objects": (objects("a", None, 1), "auto", "y mixes label types: 'a' and 1"),
    "bool and int": ([True, 2], "auto", "y mixes label types: True and 2"),
    "int and bool": (objects(1, True), "auto", "y mixes label types: 1 and True"),
    "str and bytes": (["a", b"a"], "auto", "y mixes label types: 'a' and b'a'"),
    "empty is a class": ([1, ""], None, "y mixes label types: 1 and ''"),
    "continuous": (np.array([0.5, 1.0]), "auto", "Unknown label type: continuous"),
    "continuous, huge": (np.array([0.5, 1e300]), "auto", "Unknown label type: continuous"),
    "continuous list": ([0.5, None, 1], "auto", "Unknown label type: continuous"),
    "continuous objects": (objects(0.5, 1), "auto", "Unknown label type: continuous"),
    "continuous and -1": (np.array([0.5, -1.0]), "auto", "Unknown label type: continuous"),
    "infinite": (np.array([1.0, np.inf]), "auto", "y contains infinity"),
    "infinite objects": ([1, -np.inf, None], "auto", "y contains infinity"),
    "complex": (np.array([1j, 2]), "auto", "Complex data not supported: y"),
    "complex pandas": (pd.Series([1j, 2]), "auto", "Complex data not supported: y"),
    "complex list": ([1j, 2], "auto", "y holds 1j of type complex"),
    "datetime64": (np.array(["2020-01-01"], "M8[D]"), "auto", "y holds .* of type datetime64"),
    "timedelta64": (np.array([1], "m8[s]"), 1, "y holds .* of type timedelta64"),
    "date objects": ([datetime.date(2020, 1, 1)], "auto", "y holds .* of type date"),
    "pandas datetimes": (pd.Series(pd.to_datetime(["2020-01-01"])), "auto", "of type datetime64"),
    "records": (np.zeros(2, dtype=[("a", int)]), "auto", "y holds .* of type void"),
    "str marker, ints": (np.array([1, 2]), "?", r"unlabeled='\?' is of a type.*the first is 1\."),
    "str marker, list": ([1, None], "?", r"unlabeled='\?' is of a type that no label in y"),
    "str marker, objects": (objects(1, None), "?", r"unlabeled='\?' is of a type"),
    "str marker, floats": (np.array([1.0, NAN]), "?", r"unlabeled='\?' is of a type"),
    "str marker, bytes": (np.array([b"a"]), "a", "Pass a bytes, or None"),
    "int marker, strings": (np.array(["a"]), -1, "unlabeled=-1 is of a type.*Pass a string"),
    "int marker, bools": (np.array([True, False]), 0, "unlabeled=0 is of a type"),
    "bool marker, ints": (np.array([1, 0]), True, "unlabeled=True is of a type"),
    "bool marker, objects": (objects(1, 0), True, "unlabeled=True is of a type"),
    "list as marker": (np.array([1, 0]), [1], r"unlabeled=\[1\] is of a type"),
    "array as marker": (objects(1, 0), np.array([1]), "unlabeled=array.* is of a type"),
    "date as marker": ([1, 0], datetime.date(2020, 1, 1), "is of a type"),
}


@pytest.mark.parametrize(("y", "unlabeled", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(y, unlabeled, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, unlabeled=unlabeled)


def test_sparse_y_is_refused_as_by_sklearn():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        encode_labels(sparse.csr_array([[1], [0]]))


INTEGERS = st.integers(-(2**62), 2**62)
TEXT = st.text(max_size=4)
# Label values with values that may mark the unlabelled among them.
FAMILIES = {
    "int": (INTEGERS | st.integers(-3, 3), INTEGERS),
    "float": (INTEGERS.map(float), INTEGERS.map(float) | st.just(np.inf)),
    "str": (TEXT, TEXT.filter(lambda text: text != "auto")),
    "bytes": (st.binary(max_size=3), st.binary(max_size=3)),
    "bool": (st.booleans(), st.booleans()),
}
CONTAINERS = [
    lambda values: list(values),
    lambda values: objects(*values),
    lambda values: pd.Series(values, dtype=object),
    lambda values: np.ma.array(objects(*values), mask=[v is None for v in values]),
]


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    family=st.sampled_from(sorted(FAMILIES)),
    container=st.sampled_from(CONTAINERS),
)
def test_round_trip(data, family, container):
    label, some_marker = FAMILIES[family]
    marker = data.draw(st.none() | some_marker, "marker")
    gap = st.sampled_from([None, NAN, marker])
    values = data.draw(st.lists(label | gap, min_size=1, max_size=12), "values")
    is_label = [not (v is None or v != v or (marker is not None and v == marker)) for v in values]
    if not any(is_label):
        with pytest.raises(ValueError, match="no labelled"):
            encode_labels(container(values), unlabeled=marker)
        return
    encoded = encode_labels(container(values), unlabeled=marker)
    assert (encoded.codes >= 0).tolist() == is_label
    assert encoded.classes.tolist() == sorted({v for v, k in zip(values, is_label) if k})
    for value, known, answer in zip(values, is_label, encoded.decode(encoded.codes).tolist()):
        assert same(answer, value if known else encoded.marker)


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-3, 100), min_size=1, max_size=12).filter(lambda v: max(v) >= 0),
    dtype=st.sampled_from(["i1", "i2", "i4", "i8", "f2", "f4", "f8"]),
)
def test_round_trip_of_dtypes(values, dtype):
    y = np.array(values, dtype=dtype)
    encoded = encode_labels(y)
    decoded = encoded.decode(encoded.codes)
    assert decoded.dtype == y.dtype
    assert np.array_equal(encoded.codes < 0, y == -1)
    assert np.array_equal(decoded[encoded.labeled], y[y != -1])


@pytest.mark.parametrize("dtype", ["i8", "f8", "U2"])
def test_large_arrays_are_quick(dtype):
    y = np.arange(1_000_000) % 7
    start = time.perf_counter()
    encoded = encode_labels(y.astype(dtype))
    assert time.perf_counter() - start < 2
    assert np.array_equal(encoded.codes, y)


# Labels that come later.


def further(first, later, **options):
    """The classes of both, and their labels decoded."""
    known, codes = encode_further(later, encode_labels(first, **options), **options)
    return known.classes.tolist(), known.decode(known.codes).tolist(), known.decode(codes).tolist()


@pytest.mark.parametrize(
    ("first", "later", "classes"),
    [
        ([3, -1, 5], [4, -1, 3], [3, 4, 5]),
        (["b", ""], ["a", "b", ""], ["a", "b"]),
        (["b", "d"], ["longer", "c"], ["b", "c", "d", "longer"]),
        (objects("b", None), ["a", None], ["a", "b"]),
        (np.array(["b", "c"]), objects("a", None), ["a", "b", "c"]),
        ([True, False], [True], [False, True]),
        ([b"b"], [b"a"], [b"a", b"b"]),
        ([1, 2], np.array([np.nan, 3.0]), [1, 2, 3]),
        ([1.0, 2.0], [3], [1.0, 2.0, 3.0]),
        (np.array([1, 2], dtype=np.int8), np.array([300]), [1, 2, 300]),
        ([1, 2], pd.Series([pd.NA, 9], dtype="Int64"), [1, 2, 9]),
        ([1, 2], pl.Series([None, 0]), [0, 1, 2]),
    ],
)
def test_further_labels_are_numbered_beside_the_first(first, later, classes):
    before = encode_labels(first)
    known, codes = encode_further(later, before)
    assert known.classes.tolist() == classes
    assert known.classes.dtype.kind == before.classes.dtype.kind
    kept = before.codes >= 0
    assert (known.decode(known.codes[kept]) == before.decode(before.codes[kept])).all()
    values = [
        v for v in np.asarray(later, dtype=object).tolist() if v is not pd.NA and v in classes
    ]
    assert known.decode(codes[codes >= 0]).tolist() == values


@pytest.mark.parametrize("later", [[-1, -1], [None], np.array([np.nan]), [], pd.Series([pd.NA])])
def test_further_labels_may_all_be_missing(later):
    before = encode_labels([1, -1, 2])
    known, codes = encode_further(later, before)
    assert known is before
    assert codes.tolist() == [-1] * len(later)


def test_further_labels_with_a_marker_of_ones_own():
    classes, first, later = further([-1, 3, 99], [-5, 99], unlabeled=99)
    assert classes == [-5, -1, 3]
    assert first == [-1, 3, 99]
    assert later == [-5, 99]


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (["a"], "another type, such as 1"),
        ([True], "another type, such as 1"),
        ([0.5], "Unknown label type"),
        ([[1, 2], [3, 4]], "1d array"),
        (objects([1]), "Unknown label type"),
        ([float("inf")], "infinity"),
    ],
)
def test_further_labels_that_cannot_be(later, message):
    with pytest.raises(ValueError, match=message):
        encode_further(later, encode_labels([1, 2]))


def test_unused_classes_go_with_their_last_label():
    labels = encode_labels(["a", "b", "", "c"])
    changed = labels.relabeled(np.array([-1, 1, 1, 2]))
    assert changed.classes.tolist() == ["b", "c"]
    assert changed.decode(changed.codes).tolist() == ["", "b", "b", "c"]
    assert isinstance(changed, EncodedLabels)
    with pytest.raises(ValueError, match="no labelled sample"):
        labels.relabeled(np.full(4, -1))


def test_further_integers_stay_what_they_are():
    big = np.array([2**60, 2**60 + 1, 2**60 + 2], dtype=np.uint64)
    known, codes = encode_further([2**60 + 1, 2**60], encode_labels(big))
    assert known.classes.tolist() == big.tolist()
    assert codes.tolist() == [1, 0]
    small, codes = encode_further(np.array([7, 2], dtype=np.int64), encode_labels(big[:1] * 0 + 2))
    assert small.classes.tolist() == [2, 7]
    assert small.classes.dtype.kind in "iu"
    assert codes.tolist() == [1, 0]


@pytest.mark.parametrize("label", [1e300, 2.0**60])
def test_a_float_that_names_no_integer_is_refused(label):
    with pytest.raises(ValueError, match="too large for a float to name one class"):
        encode_further([label], encode_labels([1, 2]))
