"""Tensors are checked as arrays are, with the same words."""

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.samples import check_samples

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.gpu.samples import check_new_tensor, check_tensor  # noqa: E402

Y = [0, -1, 1]


def estimator():
    return ManifoldKNNClassifier()


def bad(value):
    X = torch.rand(3, 2)
    X[1, 0] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (bad(torch.nan), Y, "Input X contains NaN.*Remove or replace"),
        (bad(torch.inf), Y, "Input X contains infinity"),
        (torch.rand(3), Y, "Expected 2D array"),
        (torch.rand(3, 0), Y, "at least one column"),
        (torch.rand(1, 2), [0], "minimum of 2 is required"),
        (torch.rand(3, 2), [0, 1], "3 rows and 2 labels"),
        (torch.rand(3, 2), None, "requires y to be passed"),
        (torch.ones(3, 2), Y, "All rows of X are identical"),
        (torch.rand(3, 2).double() * 1e150, Y, "too large or too close"),
        (torch.rand(3, 2).to(torch.complex64), Y, "real numbers"),
        (torch.rand(3, 2).to_sparse(), Y, "dense tensor"),
    ],
)
def test_what_cannot_be_fitted(X, y, message):
    with pytest.raises(ValueError, match=message):
        check_tensor(estimator(), X, y)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "uint8", "int16", "int32", "int64"]
)
def test_dtypes_become_those_of_arrays(dtype):
    X = np.arange(6).reshape(3, 2).astype(dtype)
    clf = estimator()
    checked = check_tensor(clf, torch.from_numpy(X), Y)
    expected = check_samples(estimator(), X, Y)
    assert checked.numpy().dtype == expected.dtype
    assert (checked.numpy() == expected).all()
    assert clf.n_features_in_ == 2


def test_a_tensor_that_is_right_is_not_copied():
    X = torch.rand(3, 2)
    assert check_tensor(estimator(), X, Y).data_ptr() == X.data_ptr()


def test_new_rows():
    clf = estimator()
    clf.n_features_in_ = 2
    template = np.empty((0, 2), dtype=np.float32)
    assert check_new_tensor(clf, torch.rand(3, 2).double(), template).dtype == torch.float32
    for X, message in [
        (torch.rand(3, 4), "X has 4 features, but ManifoldKNNClassifier is expecting 2"),
        (torch.rand(0, 2), "minimum of 1 is required"),
        (bad(torch.nan), "contains NaN"),
        (torch.full((1, 2), 1e60, dtype=torch.float64), "too large"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_new_tensor(clf, X, template)
