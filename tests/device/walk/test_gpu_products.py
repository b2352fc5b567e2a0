import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.walk import products  # noqa: E402
from manifoldknn.device.walk.products import SparseProduct, WalkMatrix, WalkOperator  # noqa: E402

CUDA = pytest.param(
    "cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    ],
)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@settings(max_examples=80, deadline=None)
@given(n=st.integers(1, 30), share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_products_are_those_of_dense_matrices(device, n, share, seed):
    rng = np.random.default_rng(seed)
    S = np.where(rng.random((n, n)) < share, rng.random((n, n)), 0.0)
    S[0] = rng.random(n)
    np.fill_diagonal(S, 0.0)  # as S has none; cuSPARSE refuses a place that is named twice
    matrix = sparse.csr_array(S)
    v = rng.normal(size=(n, 4))
    linked = np.sort(rng.choice(n, int(rng.integers(0, n + 1)), replace=False))
    group = np.sort(rng.integers(0, 3, len(linked)))
    scale = rng.random(len(linked))
    parts = matrix.indptr.astype(np.int64), matrix.indices, matrix.data, linked, group, scale
    tensors = [torch.as_tensor(part, device=device) for part in parts]
    product, whole = SparseProduct(*tensors[:3]), WalkOperator(WalkMatrix(*tensors, 0.9))
    found, walked = (f(torch.as_tensor(v, device=device)).cpu() for f in (product, whole))
    np.testing.assert_allclose(found, S @ v, atol=1e-13)
    links = np.zeros((n, n))
    same = (group[:, None] == group[None, :]) & ~np.eye(len(linked), dtype=bool)
    links[np.ix_(linked, linked)] = same * scale[:, None] * scale[None, :]
    np.testing.assert_allclose(walked, v - 0.9 * (S + links) @ v, atol=1e-13)


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("longest", [5, 700, 3000])
@pytest.mark.parametrize("n_columns", [1, 3, 10, 64, 130])
def test_rows_of_any_length_and_blocks_of_any_width(device, longest, n_columns):
    """Long rows and wide blocks are cut; sums come out the same again."""
    rng = np.random.default_rng(n_columns)
    matrix = sparse.random_array((400, 4000), density=0.001, rng=rng, format="lil")
    matrix[7, :longest] = rng.random(longest)
    matrix = matrix.tocsr()
    parts = matrix.indptr.astype(np.int64), matrix.indices, matrix.data
    product = SparseProduct(*(torch.as_tensor(part, device=device) for part in parts))
    v = rng.normal(size=(4000, n_columns))
    there = torch.as_tensor(v, device=device)
    found = product(there).cpu().numpy()
    np.testing.assert_allclose(found, matrix @ v, atol=1e-11)
    assert np.array_equal(product(there).cpu().numpy(), found)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_products_by_rows_work_here():
    """Otherwise cuSPARSE does the work, and no test would tell."""
    assert products._by_rows(torch.device("cuda"))
