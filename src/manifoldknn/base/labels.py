"""Labels: which entries of ``y`` are unlabelled, and class numbers for the rest."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from manifoldknn.base import Array, Bools, Ints
from manifoldknn.base.tensors import as_numpy

_FAMILY = {"b": "boolean", "i": "number", "u": "number", "f": "number", "U": "string", "S": "bytes"}
_AUTO_MARKER = {"i": -1, "u": -1, "f": -1, "U": "", "S": b""}


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """Labels as class numbers."""

    classes: Array  # the distinct labels, sorted
    codes: Ints  # index into `classes` of each sample; -1 where unlabelled
    marker: Any  # what stands for "unlabelled" among decoded labels

    @property
    def labeled(self) -> Ints:
        """Positions of the labelled samples, ascending."""
        return np.flatnonzero(self.codes >= 0)

    def decode(self, codes: npt.ArrayLike) -> Array:
        """Turn class numbers into labels, and -1 into the marker, in a dtype that holds both."""
        codes = np.asarray(codes, dtype=np.intp)
        if (codes >= 0).all():
            return np.asarray(self.classes[codes])
        # The marker goes last, where the index -1 finds it.
        table = np.empty(len(self.classes) + 1, dtype=_joint_dtype(self.classes, self.marker))
        table[:-1] = self.classes
        table[-1] = self.marker
        return np.asarray(table[codes])

    def numbers(self, labels: Array) -> Ints:
        """Turn what `decode` gave back into class numbers; -1 for everything else."""
        place = {name: code for code, name in enumerate(self.classes.tolist())}
        return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)

    def relabeled(self, codes: Ints) -> "EncodedLabels":
        """Return other class numbers, less the classes that no sample has any more."""
        used, place = np.unique(codes[codes >= 0], return_inverse=True)
        if not used.size:
            raise ValueError("y leaves no labelled sample: keep the label of at least one row.")
        renumbered = np.full(len(codes), -1, dtype=np.intp)
        renumbered[codes >= 0] = place
        return EncodedLabels(self.classes[used], renumbered, self.marker)


def encode_labels(y: Any, *, unlabeled: Any = "auto", none: bool = False) -> EncodedLabels:
    """Validate ``y``, find its unlabelled entries and number its classes, or raise ValueError.

    `y` holds integers, whole floats, booleans, strings or bytes: a sequence, a NumPy array, or a
    pandas or polars column. Categories that do not occur are no classes.

    `unlabeled` is the value that means "unlabelled", as missing values (None, NaN, NaT, NA, null,
    masked) always do. With "auto", -1 and the empty string do. With any other value -1 may be a
    class; None or NaN leave only the missing values. "auto" itself may be a class, not the marker.
    With `none`, all may be unlabelled.

    The marker of the answer is `unlabeled` where given, else -1 for integers, NaN for floats, ""
    for string dtypes, None for booleans, and for objects the first unlabelled value in `y`, or
    None.

    >>> encoded = encode_labels(["cat", None, "dog", "cat"])
    >>> encoded.codes
    array([ 0, -1,  1,  0])
    >>> encoded.decode([1, -1])
    array(['dog', None], dtype=object)
    >>> encode_labels([3, -1, 7], unlabeled=-999).classes
    array([-1,  3,  7])
    """
    if y is None:  # in the words that scikit-learn's checks look for
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    marker = unlabeled.item() if isinstance(unlabeled, np.generic) else unlabeled
    auto = isinstance(marker, str) and marker == "auto"
    values, missing, seen = _read(y)
    find = _find_in_objects if values.dtype.kind == "O" else _find_in_dtype
    skipped = find(values, marker, auto)
    labels = values[~skipped]
    if not len(labels):
        if none:
            return EncodedLabels(labels, np.full(len(missing), -1, dtype=np.intp), unlabeled)
        raise ValueError(
            f"y has no labelled sample: all {len(missing)} entries count as unlabelled with "
            f"unlabeled={unlabeled!r}. Label at least one (`manifoldknn.suggest` names rows to "
            "begin with), or change `unlabeled`."
        )
    family = _check_labels(labels)
    foreign = not (auto or is_missing(marker) or _family(marker) == family)
    if foreign and all(map(is_missing, values[skipped])):
        raise ValueError(
            f"unlabeled={unlabeled!r} is of a type that no label in y can equal: the first is "
            f"{labels[:1].tolist()[0]!r}. Pass a {family}, or None for missing values only."
        )
    if labels.dtype.kind == "O" and family in ("number", "boolean"):
        labels = _native(labels)  # numbers as objects would be refused by scikit-learn's metrics
    if skipped.any() and not missing.any():
        seen = values[skipped.argmax()]
    classes = np.unique(labels)
    codes = np.full(len(missing), -1, dtype=np.intp)
    # Quicker than return_inverse, which sorts indirectly.
    codes[np.flatnonzero(~missing)[~skipped]] = np.searchsorted(classes, labels)
    return EncodedLabels(classes, codes, _answer_marker(classes.dtype, marker, auto, seen))


def encode_further(
    y: Any, known: EncodedLabels, *, unlabeled: Any = "auto"
) -> tuple[EncodedLabels, Ints]:
    """Encode labels that come later, and number those known among all classes.

    `y` is as in `encode_labels`, but all may be unlabelled. ValueError also if it is of another
    type than the labels so far.

    >>> before, codes = encode_further(["ape", None], encode_labels(["cat", "dog"]))
    >>> before.classes, before.codes, codes
    (array(['ape', 'cat', 'dog'], dtype='<U3'), array([1, 2]), array([ 0, -1]))
    """
    marker = unlabeled.item() if isinstance(unlabeled, np.generic) else unlabeled
    values, missing, _ = _read(y)
    find = _find_in_objects if values.dtype.kind == "O" else _find_in_dtype
    skipped = find(values, marker, isinstance(marker, str) and marker == "auto")
    labels = values[~skipped]
    codes = np.full(len(missing), -1, dtype=np.intp)
    if not len(labels):
        return known, codes
    family, before = _check_labels(labels), _family(known.classes[0])
    if family != before:
        raise ValueError(
            f"y holds the {family} {labels[:1].tolist()[0]!r}, but labels so far are of another "
            f"type, such as {known.classes[:1].tolist()[0]!r}: convert y, or fit again."
        )
    if labels.dtype.kind == "O":
        labels = _native(labels)
    before_values, labels = _alike(known.classes, labels)
    classes = np.unique(np.concatenate([before_values, labels]))
    codes[np.flatnonzero(~missing)[~skipped]] = np.searchsorted(classes, labels)
    place = np.append(np.searchsorted(classes, before_values), -1)  # the index -1 finds the last
    return EncodedLabels(classes, place[known.codes].astype(np.intp), known.marker), codes


def _alike(known: Array, labels: Array) -> tuple[Array, Array]:
    """Return two arrays of labels in types that can be joined without changing a number."""
    if known.dtype.kind not in "iu" or labels.dtype.kind not in "iuf":
        return known, labels
    # Through Python's integers: joined by NumPy, int64 and uint64 become floats.
    numbers = [int(label) for label in labels.tolist()]
    smallest, largest = min(numbers), max(numbers)
    if labels.dtype.kind == "f" and max(abs(smallest), abs(largest)) > 2**53:
        raise ValueError(
            f"y holds the number {labels[np.argmax(np.abs(labels))]!r}, too large for a float to "
            "name one class: pass integers."
        )
    smallest, largest = min(smallest, int(known.min())), max(largest, int(known.max()))
    for dtype in (known.dtype, np.dtype(np.int64), np.dtype(np.uint64)):
        limits = np.iinfo(dtype)
        if limits.min <= smallest and largest <= limits.max:
            return known.astype(dtype), np.array(numbers, dtype=dtype)
    raise ValueError(
        f"labels from {smallest} to {largest} fit no integer type together: name the classes "
        "otherwise."
    )


def _read(y: Any) -> tuple[Array, Bools, Any]:
    """Return the values present in y, a mask of the missing ones, and a missing value."""
    y = as_numpy(y)
    if hasattr(y, "columns") and hasattr(y, "shape"):
        column_or_1d(np.broadcast_to(0, y.shape), warn=True)  # a frame of one column, or an error
        y = y[y.columns[0]]
    # Columns lose their missing values first, lest these turn integers into floats.
    if hasattr(y, "to_numpy") and hasattr(y, "drop_nulls"):  # polars
        missing, present = np.asarray(y.is_null().to_numpy(), dtype=np.bool_), y.drop_nulls()
    elif hasattr(y, "to_numpy") and hasattr(y, "isna"):  # pandas
        missing = np.asarray(y.isna(), dtype=np.bool_)
        present = y[~missing]
    elif np.ma.isMaskedArray(y):
        missing = np.ma.getmaskarray(y).ravel()
        return _flat(y.data)[~missing], missing, None
    else:
        values = _flat(y)
        return values, np.zeros(len(values), dtype=np.bool_), None
    seen = y.to_numpy()[missing.argmax()] if missing.any() else None
    return _flat(present.to_numpy()), missing, seen


def _flat(values: Any) -> Array:
    """Return a 1-D array whose dtype hides no mix of types."""
    if isinstance(values, list | tuple):
        # Straight to an array, [1, "a"] would become strings and [True, 2] integers.
        flat: Array = column_or_1d(np.array(values, dtype=object), warn=True)
        return _native(flat) if len(set(map(type, flat))) == 1 and _family(flat[0]) else flat
    if getattr(getattr(values, "dtype", None), "kind", None) == "c":
        raise ValueError("Complex data not supported: y must hold class labels.")
    flat = column_or_1d(values, warn=True)
    return flat.astype(object) if flat.dtype.kind == "T" else flat  # StringDType


def _native(values: Array) -> Array:
    """Objects in the dtype that NumPy infers, unless that changes a value."""
    native = np.asarray(values.tolist())
    return native if np.array_equal(native.astype(object), values) else values


def _family(value: Any) -> str | None:
    """Name the kind of label that a scalar is; None if it cannot be one."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | float | np.integer | np.floating):
        return None if isinstance(value, np.timedelta64) else "number"  # an np.integer too
    return "string" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else None


def is_missing(value: Any) -> bool:
    """Tell whether a value says that there is none: None, NaN, NaT or NA."""
    if isinstance(value, float | np.floating | np.datetime64 | np.timedelta64):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _find_in_dtype(values: Array, marker: Any, auto: bool) -> Bools:
    """Mask the unlabelled among values of a dtype other than object."""
    kind = values.dtype.kind
    found: Bools = np.isnan(values) if kind in "fmM" else np.zeros(len(values), dtype=np.bool_)
    marker = _AUTO_MARKER.get(kind) if auto else marker
    if is_missing(marker) or _family(marker) != _FAMILY.get(kind):
        return found
    with np.errstate(over="ignore"):  # a marker beyond the reach of float16
        return np.asarray(found | (values == marker), dtype=np.bool_)


def _find_in_objects(values: Array, marker: Any, auto: bool) -> Bools:
    """Mask the unlabelled among objects, judging each distinct one once."""
    given = () if is_missing(marker) else (marker,)
    markers = [(_family(m), m) for m in ((-1, "", b"") if auto else given)]
    try:
        distinct = set(zip(map(type, values), values))  # with the type, as 1 == True
    except TypeError:  # unhashable
        raise _bad_type(next(v for v in values if not (_family(v) or is_missing(v)))) from None
    found = {(t, v) for t, v in distinct if is_missing(v) or (_family(v), v) in markers}
    pairs = zip(map(type, values), values)
    return np.fromiter((pair in found for pair in pairs), dtype=np.bool_, count=len(values))


def _check_labels(labels: Array) -> str:
    """Return the one family of the labels; raise if they cannot be classes."""
    first, objects = labels[0], labels.dtype.kind == "O"
    examples = {type(v): v for v in (labels if objects else labels[:1])}  # one of each type
    for value in (first, *examples.values()):
        if _family(value) is None:
            raise _bad_type(value)
        if _family(value) != _family(first):
            raise ValueError(
                f"y mixes label types: {first!r} and {value!r}. Convert to one type, or name the "
                "marker of unlabelled rows with unlabeled=."
            )
    floats = labels if labels.dtype.kind == "f" else np.empty(0)
    if objects:
        floats = np.array([v for v in labels if isinstance(v, float | np.floating)], dtype=float)
    if np.isinf(floats).any():
        raise ValueError("y contains infinity, which is no class: remove it or name `unlabeled`.")
    broken = floats[floats != np.floor(floats)]
    if len(broken):  # only then, as sklearn also warns of many classes, usual with few labels
        check_classification_targets(broken)
    return str(_family(first))


def _bad_type(value: Any) -> ValueError:
    return ValueError(
        f"Unknown label type: y holds {value!r} of type {type(value).__name__}. Labels must be "
        "single integers, strings, bytes or booleans; convert them, for example to str."
    )


def _answer_marker(dtype: np.dtype[Any], marker: Any, auto: bool, seen: Any) -> Any:
    """Choose what stands for "unlabelled" among labels of a dtype."""
    if auto or (dtype.kind == "f" and is_missing(marker)):
        return {**_AUTO_MARKER, "O": seen, "b": None, "f": np.nan}[dtype.kind]
    whole = dtype.kind in "iu" and isinstance(marker, float) and marker.is_integer()
    return int(marker) if whole else marker


def _joint_dtype(classes: Array, marker: Any) -> npt.DTypeLike:
    """Return a dtype that holds both the classes and the marker exactly."""
    dtype = classes.dtype
    if dtype.kind == "O" or _family(marker) != _FAMILY[dtype.kind]:
        return object
    if dtype.kind not in "iu":
        return np.promote_types(dtype, np.min_scalar_type(marker))
    low, high = int(classes[0]), int(classes[-1])
    if isinstance(marker, float):
        return np.float64 if max(-low, high) <= 2**53 else object
    low, high = min(low, marker), max(high, marker)
    # The last because promotion answers float64 for uint64 and -1.
    for wider in (dtype, np.promote_types(dtype, np.min_scalar_type(marker)), np.dtype(np.int64)):
        if wider.kind in "iu" and np.iinfo(wider).min <= low and high <= np.iinfo(wider).max:
            return wider
    return object
