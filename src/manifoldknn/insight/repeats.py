"""Rows that repeat others: a key for each, equal where rows are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

_LONGEST_KEY = 64  # bytes


def row_keys(X: Any) -> Iterator[bytes]:
    """Yield a key for each row, equal where rows are equal; long rows are hashed.

    >>> len(set(row_keys(np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]]))))
    2
    """
    if sparse.issparse(X):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        bounds = zip(X.indptr[:-1], X.indptr[1:])
        contents = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in bounds)
    else:
        rows = np.ascontiguousarray(X) + X.dtype.type(0)  # adding 0 turns -0 into 0
        contents = (row.tobytes() for row in rows)
    for content in contents:
        short = len(content) <= _LONGEST_KEY
        yield content if short else hash(content).to_bytes(8, "little", signed=True)


def first_of_equal(X: Any) -> Any:
    """Return the rows of X without those that repeat an earlier one."""
    first: dict[bytes, int] = {}
    for i, key in enumerate(row_keys(X)):
        first.setdefault(key, i)
    return X if len(first) == X.shape[0] else X[list(first.values())]
