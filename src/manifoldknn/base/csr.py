"""What scipy's CSR matrices cannot do by themselves."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldknn.base import Array, Bools


def kept_entries(matrix: Any, chosen: Bools) -> Any:
    """Return a CSR matrix with some of its entries, `chosen` in the order of ``matrix.data``.

    >>> matrix = sparse.csr_array([[1, 2], [0, 3]])
    >>> kept_entries(matrix, matrix.data > 1).toarray()
    array([[0, 2],
           [0, 3]])
    """
    before = np.zeros(len(chosen) + 1, dtype=matrix.indptr.dtype)
    np.cumsum(chosen, out=before[1:])
    indptr = before[matrix.indptr]
    del before  # entries may be very many
    return sparse.csr_array(
        (matrix.data[chosen], matrix.indices[chosen], indptr), shape=matrix.shape
    )


def narrowest(largest: int) -> Any:
    """Return the type of integers that takes least memory for numbers up to `largest`.

    scipy keeps the type that a matrix is made with, and products take longer with the wider one.

    >>> narrowest(10), narrowest(2**40)
    (<class 'numpy.int32'>, <class 'numpy.int64'>)
    """
    return np.int32 if largest < 2**31 else np.int64


def row_maxima(matrix: Any, empty: float) -> Array:
    """Return the largest stored entry of every row, `empty` for a row without entries.

    >>> row_maxima(sparse.csr_array([[-1.0, -2.0], [0.0, 0.0]]), 7.0)
    array([-1.,  7.])
    """
    out = np.full(matrix.shape[0], empty, dtype=matrix.dtype)
    filled = np.diff(matrix.indptr) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(matrix.data, matrix.indptr[:-1][filled])
    return out


def assembled(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Return a CSR matrix that shares these arrays, without looking at them.

    scipy's own constructor copies arrays that are small parts of others, and takes longer than
    a small product. `indices` and `indptr` must be of the same type.

    >>> assembled(np.ones(2), np.array([1, 0]), np.array([0, 1, 2]), (2, 2)).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    matrix = sparse.csr_array(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def row_range(matrix: Any, rows: slice) -> Any:
    """Return consecutive rows of a CSR matrix, as a matrix that shares its entries.

    >>> row_range(sparse.csr_array([[1, 2], [0, 3], [4, 0]]), slice(1, 3)).toarray()
    array([[0, 3],
           [4, 0]])
    """
    ends = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(ends[0], ends[-1])
    shape = (rows.stop - rows.start, matrix.shape[1])
    return assembled(matrix.data[entries], matrix.indices[entries], ends - ends[0], shape)
