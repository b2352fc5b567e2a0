import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.graph import joining
from manifoldknn.graph.joining import joined_parts, joining_edges

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import kernels  # noqa: E402
from manifoldknn.device.graph.kernels import TorchGraphKernels  # noqa: E402

HERE = TorchGraphKernels(torch.device("cpu"))


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 40),
    n_parts=st.integers(2, 8),
    grid=st.booleans(),
    single=st.booleans(),
    tile=st.sampled_from([1, 100, 1 << 25]),
    columns=st.sampled_from([6, 1 << 24]),
    seed=st.integers(0, 2**32 - 1),
)
def test_exactly_the_shortest_edges(n, n_parts, grid, single, tile, columns, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float) if grid else rng.normal(size=(n, 2))
    X = X.astype(np.float32) if single else X
    parts = np.unique(rng.integers(0, n_parts, n), return_inverse=True)[1]
    usual = kernels._TILE, kernels._COLUMNS
    kernels._TILE, kernels._COLUMNS = tile, columns
    try:
        found = joined_parts(torch.as_tensor(X), parts, metric="euclidean", kernels=HERE)
    finally:
        kernels._TILE, kernels._COLUMNS = usual
    for ours, theirs in zip(found, joining_edges(X, parts, metric="euclidean")):
        assert ours.tolist() == theirs.tolist()


def test_other_metrics_are_measured_on_the_cpu_which_is_said(caplog):
    X = np.random.default_rng(0).normal(size=(30, 3))
    parts = np.arange(30) // 10
    with caplog.at_level("INFO", logger="manifoldknn"):
        found = joined_parts(torch.as_tensor(X), parts, metric="cosine", kernels=HERE)
    assert "separate parts are joined on the CPU (metric 'cosine')" in caplog.text
    for ours, theirs in zip(found, joining_edges(X, parts, metric="cosine")):
        assert ours.tolist() == theirs.tolist()


def test_many_rows_outside_are_joined_by_short_edges(monkeypatch):
    called = []
    monkeypatch.setattr(joining, "EXACT_WORK", 0)
    monkeypatch.setattr(
        joining, "short_joining_edges", lambda *_, kernels, **__: called.append(kernels)
    )
    parts = np.array([0, 0, 1, 1])
    joined_parts(torch.zeros(4, 2), parts, metric="euclidean", kernels=HERE)
    assert called == [HERE]
