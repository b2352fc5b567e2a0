"""Tensors are checked as arrays are, with the same words."""

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base.samples import check_samples

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.checked_samples import (  # noqa: E402
    check_finite,
    check_new_tensor,
    check_size,
    check_tensor,
)

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
        (torch.rand(3, 0), Y, "minimum of 1 is required"),
        (torch.rand(1, 2), [0], "minimum of 2 is required"),
        (torch.rand(3, 2), [0, 1], "3 rows and 2 labels"),
        (torch.rand(3, 2), None, "requires y to be passed"),
        (torch.ones(3, 2), Y, "All rows of X are identical"),
        (torch.rand(3, 2).double() * 1e150, Y, "too large or too close"),
        (torch.rand(3, 2).to(torch.complex64), Y, "real numbers"),
        (torch.rand(3, 2).to_sparse(), Y, "tensors must be dense"),
        (bad(-torch.inf), Y, "Input X contains infinity"),
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


def test_checks_make_no_copy_of_the_samples(monkeypatch):
    """Extremes are enough: what is as large as X again may not fit."""
    for name in ("abs", "isfinite", "isnan"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: pytest.fail("a copy"))
        monkeypatch.setattr(torch, name, lambda *_: pytest.fail("a copy"))
    check_finite(torch.rand(5, 2))
    check_size(torch.rand(5, 2))
    both = torch.tensor([[torch.inf, torch.nan], [0.0, -torch.inf]])
    with pytest.raises(ValueError, match="contains NaN"):
        check_finite(both)
    for value in (1e101, -1e101, torch.nan):
        with pytest.raises(ValueError, match="too large"):
            check_size(torch.full((2, 2), value, dtype=torch.float64))


class OnMetal(torch.Tensor):
    """A tensor that says to be on a device without double precision, and has none."""

    device = torch.device("mps", 0)

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def double(self):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    def to(self, *_, **__):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
def test_tensors_without_double_precision_are_moved_first(dtype):
    from manifoldknn.device.torch_steps import TorchSteps

    X = torch.arange(6).reshape(3, 2).to(dtype)
    there = X.as_subclass(OnMetal)
    expected = check_samples(estimator(), X.float().numpy() if dtype.is_floating_point else X, Y)
    steps, clf = TorchSteps(there.device), estimator()
    rows = steps.samples(clf, there, Y)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == expected.dtype
    assert (rows == expected).all()
    assert (steps.new_rows(clf, there, rows[:0]) == expected).all()


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
