import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn.base.csr import kept_entries, row_maxima, row_range


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 12), columns=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_equal_what_loops_over_the_dense_matrix_find(rows, columns, seed):
    rng = np.random.default_rng(seed)
    stored = rng.random((rows, columns)) < 0.3
    values = rng.normal(size=(rows, columns))
    at = np.nonzero(stored)
    matrix = sparse.csr_array((values[at], at), shape=(rows, columns))
    kept = kept_entries(matrix, matrix.data > 0)
    assert (kept.toarray() == np.where(stored & (values > 0), values, 0.0)).all()
    expected = [max(values[i, stored[i]], default=-np.inf) for i in range(rows)]
    assert row_maxima(matrix, -np.inf).tolist() == expected
    part = slice(*np.sort(rng.integers(0, rows + 1, 2)).tolist())
    assert (row_range(matrix, part).toarray() == matrix.toarray()[part]).all()
