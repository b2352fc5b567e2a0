"""What a user calls a row: the index of the frame, or the row's number."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldknn.base import Array, Ints


def check_all_walked(classifier: Any) -> None:
    """Raise ValueError if rows joined a fitted classifier that its graph does not have yet."""
    check_is_fitted(classifier)
    late = len(classifier.unreached_) - classifier.n_walked_
    if late:
        raise ValueError(
            f"{late} rows came by partial_fit since the last walk and are not in the graph yet: "
            "call refresh() first."
        )


def fitted_row_ids(classifier: Any, index: Any = None) -> Array:
    """Return a name for each row that a classifier was fitted on.

    `index` are names that the user brings, as `row_ids` takes them; else, if all rows came in
    pandas frames, the index of these names them.
    """
    index = classifier.fitted_.row_index if index is None else index
    return row_ids(index, len(classifier.unreached_))


def grown_row_index(classifier: Any, X: Any) -> Array | None:
    """Return the index of a fitted frame with that of a further one; None if either has none."""
    known = classifier.fitted_.row_index
    if known is None or not hasattr(X, "iloc"):
        return None
    both = row_ids(known, len(classifier.unreached_)), row_ids(X, len(X))
    if both[0].dtype.kind != both[1].dtype.kind:  # lest numbers become text
        return np.concatenate([names.astype(object) for names in both])
    return np.concatenate(both)


def own_names(index: Any, n_samples: int) -> Array | None:
    """Return the names that the index of a fitted frame gives rows; None if they are numbers.

    So they are without an index, and if the index just counts from 0.
    """
    if index is None or len(index) != n_samples:
        return None
    names = row_ids(index, n_samples)
    counts = names.dtype.kind in "iu" and np.array_equal(names, np.arange(n_samples))
    return None if counts else names


def row_numbers(what: str, asked: Any, names: Array) -> Ints:
    """Return the numbers of rows that a user asks for by name; `what` is said in errors.

    >>> row_numbers("indices", ["c", "a"], np.array(["a", "b", "c"]))
    array([2, 0])
    """
    place: dict[Any, int] = {}
    twice = set()
    for number, name in enumerate(names.tolist()):
        if place.setdefault(name, number) != number:
            twice.add(name)
    if isinstance(asked, Hashable) and asked in place:
        asked = [asked]
    elif names.dtype.kind == "M":
        asked = np.atleast_1d(np.asarray(asked, dtype=names.dtype))
    found = []
    for name in asked.tolist() if hasattr(asked, "tolist") else asked:
        if not isinstance(name, Hashable) or name not in place:
            raise ValueError(
                f"{what} names row {name!r}, and the index of the fitted frame has no such name: "
                f"name rows as it does, such as {names[0]!r}."
            )
        if name in twice:
            raise ValueError(
                f"{what} names row {name!r}, and the index of the fitted frame has several of that "
                "name: make it unique and fit again."
            )
        found.append(place[name])
    return np.array(found, dtype=np.intp)


def numbered_pairs(what: str, pairs: Any, names: Array | None) -> Any:
    """Return pairs of rows by their numbers, if rows have names; else as they are."""
    if names is None or pairs is None:
        return pairs
    two = pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs
    both = [pair for pair in two if np.ndim(pair) and len(pair) == 2]
    if len(both) < len(two):
        raise ValueError(f"{what} must hold pairs, such as [[{names[0]!r}, {names[-1]!r}]].")
    ends = [row_numbers(what, [pair[end] for pair in both], names) for end in (0, 1)]
    return np.column_stack(ends)


def row_ids(index: Any, n_samples: int) -> Array:
    """Return a name for each row; rows without an index are numbered from 0.

    A pandas frame or series stands for its index; anything else must hold one name per row.

    >>> row_ids(["a", "b"], 2)
    array(['a', 'b'], dtype='<U1')
    >>> row_ids(None, 3)
    array([0, 1, 2])
    """
    if index is None:
        return np.arange(n_samples)
    if hasattr(index, "iloc"):  # a frame or a series
        index = index.index
    levels = getattr(index, "nlevels", 1)
    names: Array
    if levels > 1:
        names = np.empty(len(index), dtype=object)
        names[:] = list(index)
    else:
        names = index.to_numpy() if hasattr(index, "to_numpy") else np.asarray(index)
    if names.shape != (n_samples,):
        raise ValueError(
            f"index must hold one name for each of the {n_samples} fitted rows, not an array of "
            f"shape {names.shape}: pass the frame that was fitted, its index, or a column of it."
        )
    return names
