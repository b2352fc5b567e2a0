"""The graph and the walk where they belong: on a GPU, beside the CPU."""

import gc
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import test_gpu_graph
import test_gpu_walk
from manifoldknn.voters import label_walk
from strategies import problems
from test_gpu_graph import SETTINGS, both_graphs
from test_gpu_walk import OPTIONS

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.gpu.walk import torch_label_walk  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    sigma=st.sampled_from(["auto", 0.7, 0.02]),
    by_class=st.sampled_from([None, True, False]),
)
def test_small_problems_of_every_kind(problem, graph, sigma, by_class):
    X, y = problem.X, problem.y
    both = both_graphs(X, y, graph, 5, sigma, device="cuda", **SETTINGS)
    test_gpu_graph.check_same(*both)
    labeled = np.flatnonzero(y >= 0)
    options = OPTIONS | {"tol": 1e-6, "by_class": by_class}
    found = torch_label_walk(both[0], labeled, y[labeled], **options)
    test_gpu_walk.check_same(found, label_walk(both[1], labeled, y[labeled], **options))


def manifold(n=20_000, n_labeled=60, n_parts=3):
    """A curved surface in ten dimensions, in separate pieces."""
    rng = np.random.default_rng(0)
    u, v = rng.random((2, n))
    piece = rng.integers(0, n_parts, n)
    X = np.column_stack([np.cos(3 * u), np.sin(3 * u), v, u * v, np.cos(5 * v), 9.0 * piece])
    X = np.hstack([X, 0.01 * rng.normal(size=(n, 4))])
    y = np.full(n, -1)
    rows = rng.choice(n, n_labeled, replace=False)
    y[rows] = piece[rows]
    return X, y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_give_the_same_as_on_the_cpu_and_twice_the_same(dtype):
    X, y = manifold()
    both = both_graphs(X.astype(dtype), y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    test_gpu_graph.check_same(*both)
    labeled = np.flatnonzero(y >= 0)
    options = OPTIONS | {"tol": 1e-6}
    one, two = (torch_label_walk(both[0], labeled, y[labeled], **options) for _ in range(2))
    test_gpu_walk.check_same(one, label_walk(both[1], labeled, y[labeled], **options))
    for name in ("weights", "voters", "log_scale"):
        assert (getattr(one.nearest, name) == getattr(two.nearest, name)).all()


@contextmanager
def room(n_bytes):
    """So much memory more than is taken now; what the driver has free does not show it."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_allocated() + n_bytes) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("megabytes", [60, 8])
def test_little_memory_makes_the_walk_slower_and_no_worse(megabytes):
    """60 columns of 20,000 rows would take 140 MB; in 8, not even one has room."""
    X, y = manifold()
    ours, theirs, *_ = both_graphs(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    labeled = np.flatnonzero(y >= 0)
    options = OPTIONS | {"tol": 1e-6}
    with room(1e6 * megabytes):
        found = torch_label_walk(ours, labeled, y[labeled], **options)
    test_gpu_walk.check_same(found, label_walk(theirs, labeled, y[labeled], **options))


def test_little_memory_makes_the_graph_slower_and_no_worse():
    X, y = manifold()
    with room(40e6):
        both = both_graphs(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    test_gpu_graph.check_same(*both)
