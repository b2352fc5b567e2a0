"""What a user calls a row: the index of the frame, or the row's number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted


def check_all_walked(classifier: Any) -> None:
    """Raise ValueError if rows joined a fitted classifier that its graph does not have yet."""
    check_is_fitted(classifier)
    late = len(classifier.unreached_) - classifier.n_walked_
    if late:
        raise ValueError(
            f"{late} rows came by partial_fit since the last walk and are not in the graph yet: "
            "call refresh() first."
        )


def fitted_row_ids(classifier: Any, index: Any = None) -> NDArray[Any]:
    """Return a name for each row that a classifier was fitted on.

    `index` are names that the user brings, as `row_ids` takes them; else, if all rows came in
    pandas frames, the index of these names them.
    """
    index = classifier.fitted_.row_index if index is None else index
    return row_ids(index, len(classifier.unreached_))


def grown_row_index(classifier: Any, X: Any) -> NDArray[Any] | None:
    """Return the index of a fitted frame with that of a further one; None if either has none."""
    known = classifier.fitted_.row_index
    if known is None or not hasattr(X, "iloc"):
        return None
    both = row_ids(known, len(classifier.unreached_)), row_ids(X, len(X))
    if both[0].dtype.kind != both[1].dtype.kind:  # lest numbers become text
        return np.concatenate([names.astype(object) for names in both])
    return np.concatenate(both)


def row_ids(index: Any, n_samples: int) -> NDArray[Any]:
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
    names: NDArray[Any]
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
