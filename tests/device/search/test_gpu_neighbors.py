"""Neighbours found by PyTorch are those of the exact search in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.search.neighbors import ExactIndex

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.resident_rows import DeviceRows, check_searchable, smallest  # noqa: E402
from manifoldknn.device.search import neighbors  # noqa: E402
from manifoldknn.device.search.neighbors import exact_neighbors  # noqa: E402

CPU = torch.device("cpu")
CUDA = pytest.param(
    torch.device("cuda", 0),
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    ],
)
devices = pytest.mark.parametrize("device", [CPU, CUDA], ids=str)


def among(X, k, metric="euclidean", device=CPU):
    rows = DeviceRows(X, metric, device)
    near, away = exact_neighbors(rows, rows.exact, k, itself=torch.arange(len(X), device=device))
    return near.cpu().numpy(), away.cpu().numpy()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.sampled_from([1, 2, 5, 20]),
    grid=st.booleans(),
    double=st.booleans(),
    offset=st.sampled_from([0.0, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_sorting_all_distances(n, d, grid, double, offset, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)) if grid else rng.normal(size=(n, d))
    X = (X + offset).astype(np.float64 if double else np.float32)
    k = int(rng.integers(1, n))
    near, away = among(X, k)
    expected = ExactIndex(X).among_samples(k)
    np.testing.assert_allclose(away, expected.distances, rtol=1e-14, atol=0)
    assert not (near == np.arange(n)[:, None]).any()
    if grid:  # sums without rounding: ties are the same
        assert (near == expected.indices).all()
        assert (away == expected.distances).all()
    taken = np.take_along_axis(oracles.distance_matrix(X.astype(np.float64)), near, axis=1)
    np.testing.assert_allclose(away, taken, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3000, 40), (9000, 3)])
@devices
def test_many_rows_and_groups_of_columns(shape, dtype, device):
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    near, away = among(X, 12, device=device)
    expected = ExactIndex(X).among_samples(12)
    assert (near == expected.indices).all()
    np.testing.assert_allclose(away, expected.distances, rtol=1e-14)


@devices
def test_more_duplicates_than_candidates(device):
    X = np.repeat(np.random.default_rng(2).normal(size=(30, 25)), 80, axis=0)
    near, away = among(X, 30, device=device)
    expected = ExactIndex(X).among_samples(30)
    assert (away == 0).all()
    assert (near == expected.indices).all()


def precision():
    """How PyTorch multiplies now, in the words of its version."""
    new = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    return torch.get_float32_matmul_precision() if new is None else new


def test_rounded_products_change_nothing(monkeypatch):
    """Products of 11 bits find what those of 24 bits do, since doubtful rows are searched again."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(40, 30))[rng.integers(0, 40, 2500)]).astype(np.float32)
    X += 0.003 * rng.normal(size=X.shape).astype(np.float32)
    expected = ExactIndex(X).among_samples(10)
    searched = []
    honest = neighbors._candidates

    def rounded(rows, products, width):
        searched.append("high" if precision() in ("high", "tf32") else "highest")
        if searched[-1] == "highest":
            return honest(rows, products, width)
        scores = torch.addmm(rows.norms, cut(products), cut(rows.products).T, alpha=-2)
        return smallest(scores, width)

    def cut(values):
        return (values.view(torch.int32) & ~0x1FFF).view(torch.float32)

    monkeypatch.setattr(neighbors, "_candidates", rounded)
    rows = DeviceRows(X, "euclidean", CPU)
    near, _, doubtful = neighbors._certified(rows, rows.exact, 10, torch.arange(2500), "high")
    wrong = (near.numpy() != expected.indices).any(axis=1)
    assert wrong.any()  # otherwise this test shows nothing
    assert doubtful.numpy()[wrong].all()
    assert searched == ["high"]


@devices
def test_tight_clusters_far_apart(device):
    """Where TF32 cannot tell neighbours apart, and single precision hardly."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(40, 30))[rng.integers(0, 40, 2500)]).astype(np.float32)
    X += 0.003 * rng.normal(size=X.shape).astype(np.float32)
    near, away = among(X, 10, device=device)
    expected = ExactIndex(X).among_samples(10)
    assert (near == expected.indices).all()
    np.testing.assert_allclose(away, expected.distances, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1e30, 1e90])
def test_any_scale(scale):
    X = np.random.default_rng(4).normal(size=(300, 6))
    near, away = among(X * scale, 7)
    expected = ExactIndex(X).among_samples(7)
    assert (near == expected.indices).all()
    np.testing.assert_allclose(away, expected.distances * scale, rtol=1e-13)


def test_an_outlier_leaves_the_others_their_neighbours():
    X = np.random.default_rng(5).normal(size=(400, 5)).astype(np.float32)
    X[17] = 1e12  # products of rows moved by 1e9 have no digits left
    near, _ = among(X, 6)
    assert near.tolist() == oracles.nearest(X.astype(np.float64), 6)


def test_cosine_with_rows_of_zeros():
    X = np.random.default_rng(6).normal(size=(500, 8))
    X[[3, 99]] = 0.0
    near, away = among(X, 9, "cosine")
    expected = ExactIndex(X, metric="cosine").among_samples(9)
    np.testing.assert_allclose(away, expected.distances, atol=1e-14)
    others = np.setdiff1d(np.arange(500), [3, 99])
    assert (near[others] == expected.indices[others]).all()
    assert near[3].tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]  # all are 1 away


def test_new_rows_find_a_sample_itself_first():
    X = np.random.default_rng(7).normal(size=(600, 30)).astype(np.float32)
    rows = DeviceRows(X, "euclidean", CPU)
    near, away = exact_neighbors(rows, rows.new(X[100:200]), 5)
    assert (near[:, 0].numpy() == np.arange(100, 200)).all()
    assert (away[:, 0] == 0).all()
    expected = ExactIndex(X).query(X[100:200], 5)
    assert (near.numpy() == expected.indices).all()


@settings(max_examples=30, deadline=None)
@given(
    columns=st.integers(1, 3000),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0, 1),
    whole=st.booleans(),
)
def test_smallest_of_every_row(columns, seed, share, whole):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 50, (4, columns)) if whole else rng.normal(size=(4, columns))
    scores = scores.astype(np.float32)
    count = 1 + int(share * min(columns - 1, 40))
    values, places = smallest(torch.from_numpy(scores), count)
    assert (np.sort(values.numpy(), axis=1) == np.sort(scores, axis=1)[:, :count]).all()
    assert (np.take_along_axis(scores, places.numpy(), axis=1) == values.numpy()).all()
    assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize("most_columns", [64, 1000])
def test_running_selection_over_tiles_of_columns(monkeypatch, most_columns):
    monkeypatch.setattr(neighbors, "_MOST_COLUMNS", most_columns)
    X = np.random.default_rng(8).normal(size=(1500, 10))
    near, _ = among(X, 30)
    assert (near == ExactIndex(X).among_samples(30).indices).all()


def test_out_of_memory_shrinks_the_tile(monkeypatch):
    X = np.random.default_rng(9).normal(size=(900, 10))
    sizes = []
    honest = neighbors._candidates

    def full(rows, products, width):
        sizes.append(len(products))
        if len(products) > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return honest(rows, products, width)

    monkeypatch.setattr(neighbors, "_candidates", full)
    near, _ = among(X, 4)
    assert (near == ExactIndex(X).among_samples(4).indices).all()
    assert sizes[0] == 900
    assert max(sizes[4:]) <= 100


def test_other_errors_are_not_taken_for_a_lack_of_memory(monkeypatch):
    def broken(*_):
        raise RuntimeError("a device-side assertion")

    monkeypatch.setattr(neighbors, "_candidates", broken)
    with pytest.raises(RuntimeError, match="assertion"):
        among(np.random.default_rng(0).normal(size=(50, 3)), 4)


@pytest.mark.parametrize("metric", ["manhattan", max])
def test_metrics_of_the_cpu_alone(metric):
    with pytest.raises(ValueError, match=r"metric=.* is not available on device='cuda'"):
        check_searchable(np.zeros((3, 2)), metric, "cuda")
