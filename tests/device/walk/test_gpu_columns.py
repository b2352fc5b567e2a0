"""The walk on a device is that of the CPU: densities, label columns, hidden labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from device.graph.test_gpu_constrained import SETTINGS, both_graphs, both_recipes
from manifoldknn.graph.links import hand_links
from manifoldknn.vote.hidden import hidden_densities, hidden_groups
from manifoldknn.vote.walks import walk_by_label
from strategies import problems, shared_graph, walk_by_class_factorised

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.walk import columns as module  # noqa: E402
from manifoldknn.device.walk.columns import (  # noqa: E402
    block_width,
    hidden_on_device,
    walk_by_class_on_device,
    walk_by_label_on_device,
)

OPTIONS = {"tol": 1e-8, "max_iter": 1000}


def check_same(found, expected, atol=1e-5):
    assert found.converged
    mine, theirs = found.similarities, expected.similarities
    assert mine.logs.dtype == theirs.logs.dtype
    np.testing.assert_allclose(np.exp(mine.logs), np.exp(theirs.logs), atol=atol)
    assert (mine.unreached == theirs.unreached).all()
    here = ~mine.unreached
    np.testing.assert_allclose(mine.log_scale[here], theirs.log_scale[here], atol=atol, rtol=1e-9)
    assert (found.log_sums is None) == (expected.log_sums is None)
    if found.log_sums is not None:
        np.testing.assert_allclose(found.log_sums, expected.log_sums, atol=atol, rtol=1e-9)


def check_hidden(found, expected, tol):
    """Relative to the largest of a row, -inf in the same ones."""
    for mine, theirs in zip(found, expected):
        reached = np.isfinite(theirs).any(axis=1)
        assert (np.isfinite(mine).any(axis=1) == reached).all()
        top = theirs[reached].max(axis=1, keepdims=True)
        np.testing.assert_allclose(
            np.exp(mine[reached] - top), np.exp(theirs[reached] - top), atol=tol
        )


@settings(max_examples=50, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    sigma=st.sampled_from(["auto", 0.7, 0.02, 0.002]),
    alpha=st.sampled_from([0.5, 0.99, 0.999]),
    width=st.sampled_from([1, 3, 128]),
)
def test_the_same_walks_as_on_the_cpu(problem, graph, sigma, alpha, width):
    """At sigma=0.002 weights of a row are ten thousands of decades below those of others."""
    X, y = problem.X, problem.y
    ours, theirs = both_graphs(X, y, graph, 5, sigma, **SETTINGS)
    labeled, n_classes = np.flatnonzero(y >= 0), int(y.max()) + 1
    accuracy = {"tol": 1e-6, "max_iter": 2000}
    usual, module._WIDEST = module._WIDEST, width
    try:
        by_class = walk_by_class_on_device(ours, n_classes, alpha, **accuracy)
        by_label = walk_by_label_on_device(ours, labeled, alpha, **accuracy)
    finally:
        module._WIDEST = usual
    check_same(
        by_class,
        walk_by_class_factorised(theirs, labeled, y[labeled], n_classes, alpha, **accuracy),
    )
    check_same(by_label, walk_by_label(theirs, labeled, alpha, **accuracy))


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    sigma=st.sampled_from(["auto", 0.7, 0.02]),
    as_one=st.booleans(),
)
def test_the_same_hidden_labels_as_on_the_cpu(problem, graph, sigma, as_one):
    X, y = problem.X, problem.y
    groups, n_classes = hidden_groups(y), int(y.max()) + 1
    if not groups:
        return
    recipe, _, theirs = both_recipes(X, y, graph, 5, sigma, **SETTINGS)
    accuracy = {"tol": 1e-6, "max_iter": 2000}
    usual, module._AS_ONE = module._AS_ONE, module._AS_ONE if as_one else 0
    try:
        found = hidden_on_device(recipe, y, groups, n_classes, 0.99, **accuracy)
    finally:
        module._AS_ONE = usual
    expected = hidden_densities(
        y,
        groups,
        n_classes,
        shared_graph(theirs, y, 0.99, "factorise"),
        n_jobs=1,
        **accuracy,
    )
    check_hidden(found, expected, 2e-6)


def small_problem(n=120, n_labeled=30):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    y = np.full(n, -1)
    y[:n_labeled] = rng.integers(0, 3, n_labeled)
    return both_recipes(X, y, "pruned", 10, 0.8, **SETTINGS), y


def test_densities_and_weights_are_those_of_the_inverse():
    (_, ours, _), y = small_problem()
    W = ours.to_numpy().to_matrix().toarray()
    K = np.linalg.inv(np.diag(W.sum(axis=1)) - 0.99 * W)
    q = K[:, :30] / K[:, :30].sum(axis=0)
    f = np.stack([q[:, y[:30] == c].mean(axis=1) for c in range(3)], axis=1)
    found = walk_by_class_on_device(ours, 3, 0.99, **OPTIONS)
    np.testing.assert_allclose(np.exp(found.similarities.logarithms()), f, rtol=1e-6)
    np.testing.assert_allclose(np.exp(found.log_sums), K[:, :30].sum(axis=0), rtol=1e-7)
    exact = oracles.walk_weights(W, 0.99)[:, :30]
    weights = walk_by_label_on_device(ours, np.arange(30), 0.99, **OPTIONS).similarities
    np.testing.assert_allclose(np.exp(weights.logarithms()), exact, rtol=1e-6)


def test_islands_and_classes_with_one_label():
    """A labelled row alone, an island without labels, and a class that nobody can hide."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [50.0], [51.0], [52.0], [90.0], [91.0]])
    y = np.array([0, -1, -1, 0, 1, -1, -1, -1, -1])
    recipe, ours, theirs = both_recipes(X, y, "union", 1, 1.0, **SETTINGS)
    cpu = theirs.constrained(y)
    found = walk_by_class_on_device(ours, 2, 0.99, **OPTIONS)
    labeled = np.flatnonzero(y >= 0)
    check_same(found, walk_by_class_factorised(cpu, labeled, y[labeled], 2, 0.99, **OPTIONS), 1e-6)
    assert found.similarities.unreached.tolist() == [False] * 7 + [True] * 2
    groups = hidden_groups(y)
    hidden = hidden_on_device(recipe, y, groups, 2, 0.99, **OPTIONS)
    expected = hidden_densities(
        y, groups, 2, shared_graph(theirs, y, 0.99, "iterate"), n_jobs=1, **OPTIONS
    )
    check_hidden(hidden, expected, 1e-6)


def test_links_by_hand_are_there_while_labels_are_hidden():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 2)), np.full(80, -1)
    y[:12] = np.arange(12) % 3
    links = hand_links([[20, 40], [3, 50]], [[0, 60], [30, 31]], y)
    recipe, _, theirs = both_recipes(X, y, "pruned", 6, "auto", links=links, **SETTINGS)
    groups = hidden_groups(y)
    found = hidden_on_device(recipe, y, groups, 3, 0.99, **OPTIONS)
    expected = hidden_densities(
        y, groups, 3, shared_graph(theirs, y, 0.99, "factorise"), n_jobs=1, **OPTIONS
    )
    check_hidden(found, expected, 1e-6)


def test_a_guess_to_begin_with():
    (_, ours, _), _ = small_problem(400)
    found = walk_by_class_on_device(ours, 3, 0.9997, **OPTIONS)
    start = found.similarities.logarithms()
    again = walk_by_class_on_device(ours, 3, 0.9997, start=start, **OPTIONS)
    assert again.n_iter < found.n_iter
    check_same(again, found, 1e-6)


def test_running_out_of_memory_halves_the_block(monkeypatch):
    (recipe, ours, _), y = small_problem()
    labeled, groups = np.arange(30), hidden_groups(y)
    expected = walk_by_label_on_device(ours, labeled, 0.99, **OPTIONS)
    hidden = hidden_on_device(recipe, y, groups, 3, 0.99, **OPTIONS)
    sizes, solve = [], module.solve_by_levels

    def small(graph, columns, **options):
        sizes.append((graph.n_samples, columns.n_columns))
        if columns.n_columns > 9 or graph.n_samples > 120:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return solve(graph, columns, **options)

    monkeypatch.setattr(module, "solve_by_levels", small)
    found = walk_by_label_on_device(ours, labeled, 0.99, **OPTIONS)
    widths = [width for _, width in sizes]
    assert widths[:3] == [30, 2, 15]
    assert max(widths[3:]) == 8
    check_same(found, expected, 1e-6)
    sizes.clear()
    check_hidden(hidden_on_device(recipe, y, groups, 3, 0.99, **OPTIONS), hidden, 1e-6)
    assert [n for n, _ in sizes] == [600, *[120] * 10]


@pytest.mark.parametrize("error", ["illegal memory access", "CUDA out of memory"])
def test_other_errors_and_hopeless_ones_are_raised(monkeypatch, error):
    (recipe, ours, _), y = small_problem()

    def broken(*_, **__):
        raise RuntimeError(error)

    monkeypatch.setattr(module, "solve_by_levels", broken)
    with pytest.raises(RuntimeError, match=error):
        walk_by_class_on_device(ours, 3, 0.99, **OPTIONS)
    with pytest.raises(RuntimeError, match=error):
        hidden_on_device(recipe, y, hidden_groups(y), 3, 0.99, **OPTIONS)


def test_blocks_follow_the_free_memory(monkeypatch):
    device = torch.device("cpu")
    monkeypatch.setattr(module, "free_bytes", lambda _: 140e9)
    assert block_width(70_000, device) == 128
    assert block_width(10**7, device) == 26
    monkeypatch.setattr(module, "free_bytes", lambda _: 16e9)
    assert block_width(10**7, device) == 7
    assert block_width(10**9, device) == 1


def test_two_runs_give_the_same_bits():
    (recipe, ours, _), y = small_problem()
    one, two = (walk_by_class_on_device(ours, 3, 0.99, **OPTIONS) for _ in range(2))
    assert (one.similarities.logarithms() == two.similarities.logarithms()).all()
    assert (one.log_sums == two.log_sums).all()
    groups = hidden_groups(y)
    both = [hidden_on_device(recipe, y, groups, 3, 0.99, **OPTIONS) for _ in range(2)]
    assert all((a == b).all() for a, b in zip(*both))
