import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from frames import NAMED_POLARS
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.samples import check_new_samples, check_samples

ROWS = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 1.0]])
Y = [0, -1, 1]


def checked(X, y=Y):
    return check_samples(ManifoldKNNClassifier(), X, y)


def fitted_on(X):
    """An estimator that knows the columns of X, and X as it keeps it."""
    estimator = ManifoldKNNClassifier()
    return estimator, check_samples(estimator, X, Y)


SMALL_TYPES = ["float32", "int8", "uint8", "int16", "uint16"]
LARGE_TYPES = ["float64", "int32", "int64", "uint32", "longdouble"]


@pytest.mark.parametrize("given", SMALL_TYPES + LARGE_TYPES)
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_types_become_floats_that_hold_them(given, wrap):
    X = checked(wrap(ROWS.astype(given)))
    assert X.dtype == (np.float32 if given in SMALL_TYPES else np.float64)
    assert sparse.issparse(X) == (wrap is sparse.csr_array)
    np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, ROWS)


def test_half_precision_and_booleans():
    X = checked(ROWS.astype(np.float16))  # sparse matrices cannot hold this type
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, ROWS)
    for wrap in (np.asarray, sparse.csr_array):
        X = checked(wrap(ROWS > 1))
        assert X.dtype == np.float32
        np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, ROWS > 1)


def test_numbers_as_objects():
    X = checked(ROWS.astype(object))
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, ROWS)


def test_nothing_is_copied_without_need():
    assert np.shares_memory(checked(ROWS), ROWS)
    X = sparse.csr_array(ROWS)
    assert np.shares_memory(checked(X).data, X.data)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
def test_sparse_formats_become_csr(form, kind):
    X = checked(kind(ROWS).asformat(form))
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), ROWS)


@pytest.mark.parametrize("frame", [pd.DataFrame, NAMED_POLARS], ids=["pandas", "polars"])
def test_frames_give_their_names(frame):
    estimator, X = fitted_on(frame({"height": ROWS[:, 0], "width": ROWS[:, 1]}))
    np.testing.assert_array_equal(X, ROWS)
    assert estimator.n_features_in_ == 2
    assert estimator.feature_names_in_.tolist() == ["height", "width"]
    with pytest.raises(ValueError, match="feature names should match"):
        check_new_samples(estimator, frame({"height": [1.0], "depth": [2.0]}), X)


def test_arrays_have_no_names():
    estimator, _ = fitted_on(ROWS)
    assert estimator.n_features_in_ == 2
    assert not hasattr(estimator, "feature_names_in_")


BAD = {
    "nan": (np.where(ROWS == 2, np.nan, ROWS), "NaN.*TableEncoder"),
    "infinity": (np.where(ROWS == 2, np.inf, ROWS), "infinity"),
    "nan in sparse": (sparse.csr_array(np.where(ROWS == 2, np.nan, ROWS)), "NaN"),
    "infinity in sparse": (sparse.csr_array(np.where(ROWS == 2, -np.inf, ROWS)), "infinity"),
    "one dimension": (ROWS[:, 0], r"Expected 2D array.*[Rr]eshape"),
    "three dimensions": (ROWS[:, :, None], r"dim 3.*dim <= 2 is required"),
    "a scalar": (1.0, r"Expected 2D array"),
    "no rows": (ROWS[:0], r"0 sample\(s\).*minimum of 2 is required"),
    "one row": (ROWS[:1], r"1 sample\(s\).*minimum of 2 is required"),
    "no columns": (ROWS[:, :0], r"0 feature\(s\).*minimum of 1 is required"),
    "strings": (np.array([["a", "b"], ["c", "d"], ["e", "f"]]), "Convert your data to numeric"),
    "complex": (ROWS + 1j, "Complex data not supported"),
    "identical rows": (np.ones((3, 2)), "All rows of X are identical.*check how X was made"),
    "identical sparse rows": (sparse.csr_array(np.ones((3, 2))), "All rows of X are identical"),
    "empty sparse rows": (sparse.csr_array((3, 2)), "All rows of X are identical"),
    "masked": (np.ma.masked_equal(ROWS, 2), r"masked array, and 1 of its values.*fill them"),
    "huge": (ROWS * 1e101, r"too large.*rescale the features.*MinMaxScaler"),
    "tiny": (ROWS * 1e-103, r"too close together.*rescale the features.*MinMaxScaler"),
}  # fmt: skip


@pytest.mark.parametrize(("X", "message"), BAD.values(), ids=BAD.keys())
def test_bad_samples(X, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        checked(X)


def test_labels_of_another_length():
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 3 rows and 2 labels"):
        checked(ROWS, [0, 1])


def test_missing_labels_altogether():
    with pytest.raises(ValueError, match=r"requires y to be passed.*-1 \(or None\) where"):
        checked(ROWS, None)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
def test_rows_that_differ_in_one_value_are_not_identical(offset):
    X = np.full((3, 2), offset)
    X[1, 1] += 1e-3
    assert checked(X).shape == (3, 2)
    assert checked(sparse.csr_array(X)).shape == (3, 2)


@pytest.mark.parametrize("fitted", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "new", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_matrix, pd.DataFrame]
)
def test_new_samples_take_the_form_of_the_fitted_ones(fitted, new):
    estimator, X = fitted_on(fitted(ROWS))
    Q = check_new_samples(estimator, new(ROWS[:2] + 1), X)
    assert sparse.issparse(Q) == sparse.issparse(X)
    assert Q.dtype == X.dtype
    if sparse.issparse(Q):
        assert Q.format == "csr"
        Q = Q.toarray()
    np.testing.assert_array_equal(Q, ROWS[:2] + 1)


@pytest.mark.parametrize(
    ("Q", "message"),
    [
        (np.ones((2, 3)), "X has 3 features, but ManifoldKNNClassifier is expecting 2"),
        (np.ones(2), r"Expected 2D array.*[Rr]eshape"),
        (np.ones((0, 2)), "minimum of 1 is required"),
        (np.array([[np.nan, 1.0]]), "NaN"),
        (np.array([[np.inf, 1.0]]), "infinity"),
        (np.array([[1e101, 1.0]]), "too large.*rescale the features"),
        (sparse.csr_array(np.array([[-1e101, 1.0]])), "too large.*rescale the features"),
    ],
)
def test_bad_new_samples(Q, message):
    estimator, X = fitted_on(ROWS)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        check_new_samples(estimator, Q, X)


def test_one_new_row_is_enough():
    estimator, X = fitted_on(ROWS)
    np.testing.assert_array_equal(check_new_samples(estimator, [[5, 7]], X), [[5.0, 7.0]])


def test_new_sparse_rows_of_zeros():
    estimator, X = fitted_on(sparse.csr_array(ROWS))
    assert check_new_samples(estimator, sparse.csr_array((2, 2)), X).nnz == 0
