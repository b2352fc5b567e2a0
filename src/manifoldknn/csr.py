"""What scipy's CSR matrices cannot do by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def kept_entries(matrix: Any, chosen: NDArray[np.bool_]) -> Any:
    """Return a CSR matrix with some of its entries.

    Parameters
    ----------
    matrix : csr_array
        The matrix.
    chosen : ndarray of bool
        One per entry, in the order of ``matrix.data``.

    Returns
    -------
    csr_array
        The same shape, fewer entries.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldknn.csr import kept_entries
    >>> matrix = sparse.csr_array([[1, 2], [0, 3]])
    >>> kept_entries(matrix, matrix.data > 1).toarray()
    array([[0, 2],
           [0, 3]])
    """
    indptr = np.concatenate([[0], np.cumsum(chosen)])[matrix.indptr]
    return sparse.csr_array(
        (matrix.data[chosen], matrix.indices[chosen], indptr), shape=matrix.shape
    )


def row_maxima(matrix: Any, empty: float) -> NDArray[Any]:
    """Return the largest entry of every row.

    Parameters
    ----------
    matrix : csr_array
        The matrix; entries that it does not store do not count.
    empty : float
        What stands for a row without entries.

    Returns
    -------
    ndarray of shape (n_rows,)
        Of the matrix's dtype.

    Examples
    --------
    >>> from scipy import sparse
    >>> from manifoldknn.csr import row_maxima
    >>> row_maxima(sparse.csr_array([[-1.0, -2.0], [0.0, 0.0]]), 7.0)
    array([-1.,  7.])
    """
    out = np.full(matrix.shape[0], empty, dtype=matrix.dtype)
    filled = np.diff(matrix.indptr) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(matrix.data, matrix.indptr[:-1][filled])
    return out
