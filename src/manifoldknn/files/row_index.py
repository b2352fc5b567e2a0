"""The index of a fitted frame as plain arrays, so that a loaded model still knows its rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldknn.exceptions import ManifoldKNNWarning, warn_caller
from manifoldknn.files.checked_arrays import Arrays, require
from manifoldknn.model.rowids import row_ids

_NUMBERS, _MOMENTS = "row_numbers", "row_moments"
_LETTERS, _ENDS = "row_letters", "row_ends"


def put_row_index(classifier: Any) -> Arrays:
    """Return the arrays that hold the index of the frame a classifier was fitted on.

    Empty without an index, and, with a warning, where it is neither of numbers nor of texts nor of
    dates.
    """
    index = classifier.fitted_.row_index
    if index is None or len(index) != len(classifier.unreached_):
        return {}
    names = row_ids(index, len(index))
    if names.dtype.kind in "if" and names.dtype.itemsize <= 8:
        return {_NUMBERS: names}
    if names.dtype.kind == "M":
        return {_MOMENTS: names.astype("datetime64[ns]").view(np.int64)}
    texts = names.tolist()
    if all(type(text) is str for text in texts):
        letters = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(text) for text in letters], dtype=np.int64)
        return {_LETTERS: np.frombuffer(b"".join(letters), dtype=np.int8), _ENDS: ends}
    warn_caller(
        "The frame's index holds neither numbers nor texts nor dates and is not saved: pass "
        "index= to suggest and find_label_errors after loading.",
        ManifoldKNNWarning,
    )
    return {}


def restored_row_index(arrays: Arrays, n_samples: int) -> NDArray[Any] | None:
    """Return the names of rows that `put_row_index` wrote, or None; no array is trusted."""
    if _NUMBERS in arrays:
        names = arrays[_NUMBERS]
        require(names.shape == (n_samples,) and names.dtype.kind in "if", "index")
        return names
    if _MOMENTS in arrays:
        moments = arrays[_MOMENTS]
        require(moments.shape == (n_samples,) and moments.dtype == np.int64, "index")
        return moments.view("datetime64[ns]")
    if _ENDS not in arrays:
        return None
    ends, letters = arrays[_ENDS], arrays[_LETTERS]
    require(ends.shape == (n_samples,) and ends.dtype == np.int64, "index")
    require(letters.ndim == 1 and letters.dtype == np.int8, "index")
    require((np.diff(ends, prepend=0) >= 0).all() and ends[-1] == len(letters), "index")
    text = letters.tobytes()
    names = np.empty(n_samples, dtype=object)
    start = 0
    for row, end in enumerate(ends.tolist()):
        names[row] = text[start:end].decode("utf-8", "surrogatepass")
        start = end
    return names
