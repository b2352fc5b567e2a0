"""The graph and the walk where they belong: on a GPU, beside the CPU."""

import gc
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import device.graph.test_gpu_constrained as test_gpu_graph
import device.walk.test_gpu_columns as test_gpu_walk
from device.graph.test_gpu_constrained import SETTINGS, both_recipes
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.graph.links import NO_LINKS
from manifoldknn.vote.hidden import hidden_densities, hidden_groups
from manifoldknn.vote.walks import walk_by_label
from strategies import problems, shared_graph, walk_by_class_factorised

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.torch_steps import TorchSteps  # noqa: E402
from manifoldknn.device.walk.columns import (  # noqa: E402
    hidden_on_device,
    walk_by_class_on_device,
    walk_by_label_on_device,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

ACCURACY = {"tol": 1e-6, "max_iter": 2000}


def walks(graph, y):
    labeled = np.flatnonzero(y >= 0)
    return (
        walk_by_class_on_device(graph, y.max() + 1, 0.99, **ACCURACY),
        walk_by_label_on_device(graph, labeled, 0.99, **ACCURACY),
    )


def check_walks(found, graph, y):
    labeled = np.flatnonzero(y >= 0)
    by_class = walk_by_class_factorised(
        graph,
        labeled,
        y[labeled],
        y.max() + 1,
        0.99,
        **ACCURACY,
    )
    test_gpu_walk.check_same(found[0], by_class)
    test_gpu_walk.check_same(found[1], walk_by_label(graph, labeled, 0.99, **ACCURACY))


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    sigma=st.sampled_from(["auto", 0.7, 0.02]),
)
def test_small_problems_of_every_kind(problem, graph, sigma):
    X, y = problem.X, problem.y
    _, ours, theirs = both_recipes(X, y, graph, 5, sigma, device="cuda", **SETTINGS)
    test_gpu_graph.check_same(ours, theirs.constrained(y))
    check_walks(walks(ours, y), theirs.constrained(y), y)


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
    X = X.astype(dtype)
    recipe, ours, theirs = both_recipes(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    test_gpu_graph.check_same_recipe(recipe, theirs)
    graph = theirs.constrained(y)
    test_gpu_graph.check_same(ours, graph)
    one, two = (walks(ours, y) for _ in range(2))
    check_walks(one, graph, y)
    for a, b in zip(one, two):
        assert (a.similarities.logarithms() == b.similarities.logarithms()).all()


def hidden(recipe, y):
    return hidden_on_device(recipe, y, hidden_groups(y), y.max() + 1, 0.999, **ACCURACY)


def check_hidden(found, recipe, y):
    expected = hidden_densities(
        y,
        hidden_groups(y),
        y.max() + 1,
        shared_graph(recipe, y, 0.999, "factorise"),
        n_jobs=1,
        **ACCURACY,
    )
    test_gpu_walk.check_hidden(found, expected, 1e-4)


def test_hidden_labels_give_the_same_as_on_the_cpu_and_twice_the_same():
    X, y = manifold()
    recipe, _, theirs = both_recipes(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    one, two = (hidden(recipe, y) for _ in range(2))
    check_hidden(one, theirs, y)
    assert all((a == b).all() for a, b in zip(one, two))


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


def test_little_memory_makes_the_walk_slower_and_no_worse():
    """60 columns of 20,000 rows would take 140 MB, and five graphs as one as much."""
    X, y = manifold()
    recipe, ours, theirs = both_recipes(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    with room(80e6):
        found, hid = walks(ours, y), hidden(recipe, y)
    check_walks(found, theirs.constrained(y), y)
    check_hidden(hid, theirs, y)


def test_without_memory_the_cpu_walks():
    X, y = manifold()
    cpu = ManifoldKNNClassifier(device="cpu", neighbors="exact").fit(X, y)
    steps = TorchSteps(torch.device("cuda"))
    pairs = {"graph": "pruned", "graph_neighbors": 10, "metric": "euclidean"}
    options = {"sigma": "auto", "tree_depth": 2, "theta": 0.1, "links": NO_LINKS, "n_jobs": None}
    built = steps.graph(X, cpu.fitted_.lists, y, edges=None, **options, **pairs)
    with room(4e6):
        found = steps.walk(
            built,
            y,
            3,
            cpu.alpha_,
            by_class=True,
            groups=[],
            start=None,
            n_jobs=1,
            reach=4.0,
            tol=1e-3,
            max_iter=1000,
        )
    test_gpu_walk.check_same(found, cpu.fitted_.walk, 1e-3)


def test_little_memory_makes_the_graph_slower_and_no_worse():
    X, y = manifold()
    with room(40e6):
        recipe, ours, theirs = both_recipes(X, y, "pruned", 10, "auto", device="cuda", **SETTINGS)
    test_gpu_graph.check_same_recipe(recipe, theirs)
    test_gpu_graph.check_same(ours, theirs.constrained(y))
