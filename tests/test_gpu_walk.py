import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.voters import label_walk
from strategies import problems
from test_gpu_graph import SETTINGS, both_graphs

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.gpu import walk as walk_module  # noqa: E402
from manifoldknn.gpu.walk import block_width, torch_label_walk  # noqa: E402


def full_weights(walk, n_voters):
    """Weights relative to the largest of their row, by voter."""
    out = np.zeros((len(walk.nearest.weights), n_voters))
    np.put_along_axis(out, walk.nearest.voters, walk.nearest.weights, axis=1)
    return out


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    sigma=st.sampled_from(["auto", 0.7, 0.02, 0.002]),
    alpha=st.sampled_from([0.5, 0.99, 0.999]),
    by_class=st.sampled_from([None, True, False]),
    width=st.sampled_from([1, 3, 128]),
)
def test_the_same_walk_as_on_the_cpu(problem, graph, sigma, alpha, by_class, width):
    """At sigma=0.002 weights of a row are ten thousands of decades below those of others."""
    X, y = problem.X, problem.y
    ours, theirs, *_ = both_graphs(X, y, graph, 5, sigma, **SETTINGS)
    labeled = np.flatnonzero(y >= 0)
    options = {"n_neighbors": 3, "alpha": alpha, "tol": 1e-6, "max_iter": 2000}
    usual, walk_module._WIDEST = walk_module._WIDEST, width
    try:
        found = torch_label_walk(ours, labeled, y[labeled], by_class=by_class, **options)
    finally:
        walk_module._WIDEST = usual
    check_same(found, label_walk(theirs, labeled, y[labeled], by_class=by_class, **options))


def check_same(found, expected):
    assert found.converged
    for name in ("n_voting", "by_class"):
        assert getattr(found, name) == getattr(expected, name)
    assert (found.voter_classes == expected.voter_classes).all()
    assert found.nearest.voters.dtype == np.int32
    assert (np.diff(found.nearest.weights, axis=1) <= 0).all()
    n_voters = len(expected.voter_classes)
    np.testing.assert_allclose(
        full_weights(found, n_voters), full_weights(expected, n_voters), atol=1e-5
    )
    mine, scale = found.nearest.log_scale, expected.nearest.log_scale
    reached = np.isfinite(scale)
    assert (np.isfinite(mine) == reached).all()
    np.testing.assert_allclose(mine[reached], scale[reached], atol=1e-5, rtol=1e-9)


def small_problem(n=120, n_labeled=30):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    y = np.full(n, -1)
    y[:n_labeled] = rng.integers(0, 3, n_labeled)
    ours, theirs, *_ = both_graphs(X, y, "pruned", 10, 0.8, **SETTINGS)
    return ours, theirs, np.arange(n_labeled), y[:n_labeled]


OPTIONS = {"n_neighbors": 5, "alpha": 0.99, "tol": 1e-8, "max_iter": 1000}


def test_weights_are_those_of_the_inverse():
    ours, _, labeled, codes = small_problem()
    W = ours.to_numpy()[1].to_matrix().toarray()
    exact = oracles.walk_weights(W, 0.99)[:, labeled]
    found = torch_label_walk(ours, labeled, codes, **OPTIONS)
    weights = full_weights(found, 30) * np.exp(found.nearest.log_scale)[:, None]
    np.testing.assert_allclose(weights, exact, rtol=1e-6)


def test_only_the_heaviest_are_kept_and_ties_go_by_position(monkeypatch):
    ours, _, labeled, codes = small_problem()
    whole = torch_label_walk(ours, labeled, codes, **OPTIONS)
    monkeypatch.setattr(walk_module, "kept_per_row", lambda *_: 7)
    monkeypatch.setattr(walk_module, "_WIDEST", 4)
    monkeypatch.setattr(walk_module, "_SORTED_AT_ONCE", 100)
    few = torch_label_walk(ours, labeled, codes, **OPTIONS)
    assert few.nearest.weights.shape == (120, 7)
    assert (few.nearest.voters == whole.nearest.voters[:, :7]).all()
    np.testing.assert_allclose(few.nearest.weights, whole.nearest.weights[:, :7], atol=1e-6)


def test_selection_in_blocks_is_the_sorted_selection():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 6, (50, 23)).astype(float)
    values[3] = -np.inf
    chosen = walk_module._Heaviest(torch.as_tensor(values[:, :5]), 9)
    for start in range(5, 23, 5):
        chosen.add(torch.as_tensor(values[:, start : start + 5]), start)
    order = np.argsort(-values, axis=1, kind="stable")[:, :9]
    assert (chosen.voters.numpy() == order).all()
    found = chosen.relative()
    assert not found.weights[3].any()
    assert np.isneginf(found.log_scale[3])
    assert (found.weights[:3, 0] == 1.0).all()


def test_running_out_of_memory_halves_the_block(monkeypatch):
    ours, _, labeled, codes = small_problem()
    expected = torch_label_walk(ours, labeled, codes, **OPTIONS)
    widths = []
    solve = walk_module.solve_on_device

    def small(graph, columns, **options):
        widths.append(columns.n_columns)
        if columns.n_columns > 9:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return solve(graph, columns, **options)

    monkeypatch.setattr(walk_module, "solve_on_device", small)
    found = torch_label_walk(ours, labeled, codes, **OPTIONS)
    assert widths[:3] == [30, 2, 15]
    assert max(widths[3:]) == 8
    np.testing.assert_allclose(full_weights(found, 30), full_weights(expected, 30), atol=1e-6)

    def hopeless(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(walk_module, "solve_on_device", hopeless)
    on_cpu = torch_label_walk(ours, labeled, codes, **OPTIONS)
    np.testing.assert_allclose(full_weights(on_cpu, 30), full_weights(expected, 30), atol=1e-6)


def test_other_errors_are_not_taken_for_it(monkeypatch):
    ours, _, labeled, codes = small_problem()

    def broken(*_, **__):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(walk_module, "solve_on_device", broken)
    with pytest.raises(RuntimeError, match="illegal"):
        torch_label_walk(ours, labeled, codes, **OPTIONS)


def test_blocks_follow_the_free_memory(monkeypatch):
    device = torch.device("cpu")
    monkeypatch.setattr(walk_module, "free_bytes", lambda _: 140e9)
    assert block_width(70_000, device) == 128
    assert block_width(10**7, device) == 26
    monkeypatch.setattr(walk_module, "free_bytes", lambda _: 16e9)
    assert block_width(10**7, device) == 7
    assert block_width(10**9, device) == 1


def test_two_runs_give_the_same_bits():
    ours, _, labeled, codes = small_problem()
    one, two = (torch_label_walk(ours, labeled, codes, **OPTIONS).nearest for _ in range(2))
    assert (one.weights == two.weights).all()
    assert (one.log_scale == two.log_scale).all()
