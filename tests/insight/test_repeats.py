"""Equal rows have equal keys, whatever holds them."""

import numpy as np
from scipy import sparse

from manifoldknn.insight.repeats import first_of_equal, row_keys

X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]] * 5)


def test_keys_of_rows():
    for rows in (X, np.tile(X, (1, 20)), sparse.csr_array(X)):
        keys = list(row_keys(rows))
        assert keys[0] == keys[1] == keys[3] != keys[2]


def test_the_first_of_equal_rows_stays():
    for rows in (X, np.tile(X, (1, 20))):
        np.testing.assert_array_equal(first_of_equal(rows), rows[[0, 2]])
    np.testing.assert_array_equal(first_of_equal(sparse.csr_array(X)).toarray(), X[[0, 2]])
    assert first_of_equal(X[1:3]).base is X
