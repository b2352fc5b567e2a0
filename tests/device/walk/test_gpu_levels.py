"""Accuracy per row on a device, against solutions in as many digits as it takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.walk.levels import Columns, solve_by_levels
from walk.test_levels import clusters_on_a_line, exact_log_weights, relative_error

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph.constrained import TorchGraph  # noqa: E402
from manifoldknn.device.walk import normalized  # noqa: E402
from manifoldknn.device.walk.normalized import NormalizedTorchGraph  # noqa: E402


def as_torch_graph(log_weights, must_link=None):
    n = len(log_weights)
    i, j = np.nonzero(np.isfinite(log_weights))
    offsets = torch.as_tensor(np.searchsorted(i, np.arange(n + 1)))
    columns = torch.as_tensor(j, dtype=torch.int32)
    must_link = np.full(n, -1) if must_link is None else must_link
    return TorchGraph(offsets, columns, torch.as_tensor(log_weights[i, j]), must_link)


def weights(log_weights, labeled, alpha, *, tol, max_iter=1000, must_link=None, **more):
    """Label columns of the walk, as `log_label_weights` of the CPU has them."""
    graph = NormalizedTorchGraph(as_torch_graph(log_weights, must_link))
    at = torch.as_tensor(labeled)
    half = 0.5 * graph.log_degrees
    columns = Columns(
        at, torch.arange(len(at)), torch.zeros(len(at)).double(), torch.stack([half[at], -half[at]])
    )
    found = solve_by_levels(graph, columns, alpha=alpha, tol=tol, max_iter=max_iter, **more)
    difference = half[:, None] - half[at]
    found.log_values.add_(torch.logaddexp(difference, -difference) - np.log(2.0))
    return found


@pytest.mark.parametrize("decades", [12, 60, 250, 700])
def test_clusters_behind_gaps(decades):
    """Labels only in the first cluster; behind each gap weights fall by `decades` decades."""
    rng = np.random.default_rng(decades)
    log_weights = clusters_on_a_line([8, 7, 9], -decades * np.log(10), rng)
    labeled = np.array([0, 3, 5])
    exact = exact_log_weights(log_weights, labeled, 0.99)
    for tol in (1e-3, 1e-6):
        found = weights(log_weights, labeled, 0.99, tol=tol)
        assert found.converged
        assert relative_error(found.log_values.numpy(), exact) <= tol


@pytest.mark.parametrize("decades", [8, 60, 250, 700])
@pytest.mark.parametrize("labeled_outlier", [False, True])
def test_outliers(decades, labeled_outlier):
    """A sample far from all others walks straight to its nearest, however far that is."""
    rng = np.random.default_rng(decades)
    n = 14
    log_weights = clusters_on_a_line([n - 1], 0.0, rng)
    log_weights = np.pad(log_weights, ((0, 1), (0, 1)), constant_values=-np.inf)
    for i in range(n - 1):
        log_weights[i, -1] = log_weights[-1, i] = -decades * np.log(10) * (1 + i)
    labeled = np.array([2, 5, n - 1]) if labeled_outlier else np.array([2, 5])
    exact = exact_log_weights(log_weights, labeled, 0.99)
    found = weights(log_weights, labeled, 0.99, tol=1e-4)
    assert found.converged
    assert relative_error(found.log_values.numpy(), exact) <= 1e-4


@settings(max_examples=300, deadline=None)
@given(
    n=st.integers(3, 14),
    spread=st.sampled_from([1.0, 30.0, 300.0, 3000.0]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    seed=st.integers(0, 2**32 - 1),
    terms=st.sampled_from([1, 1 << 26]),
)
def test_any_weights_at_all(n, spread, tol, seed, terms):
    """Random graphs with weights over any range: the error bound is kept."""
    rng = np.random.default_rng(seed)
    log_weights = -spread * rng.random((n, n)) ** 2
    log_weights[rng.random((n, n)) < 0.5] = -np.inf
    log_weights = np.maximum(log_weights, log_weights.T)
    np.fill_diagonal(log_weights, -np.inf)
    labeled = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    exact = exact_log_weights(log_weights, labeled, 0.99)
    usual, normalized._TERMS = normalized._TERMS, terms
    try:
        found = weights(log_weights, labeled, 0.99, tol=tol).log_values.numpy()
    finally:
        normalized._TERMS = usual
    reached = np.isfinite(exact).any(axis=1)
    assert (np.isfinite(found).any(axis=1) == reached).all()
    assert relative_error(found, exact) <= tol


@settings(max_examples=80, deadline=None)
@given(
    spread=st.sampled_from([1.0, 100.0, 1000.0]),
    n_linked=st.integers(0, 8),
    seed=st.integers(0, 2**32 - 1),
)
def test_implicit_must_links_over_any_range(spread, n_linked, seed):
    """Cliques that are not written out count like edges of weight 1, behind gaps as well."""
    rng = np.random.default_rng(seed)
    n = 12
    log_weights = -spread * rng.random((n, n))
    log_weights[rng.random((n, n)) < 0.6] = -np.inf
    log_weights = np.maximum(log_weights, log_weights.T)
    must_link = np.full(n, -1)
    must_link[rng.choice(n, n_linked, replace=False)] = rng.integers(0, 3, n_linked)
    labeled_pair = (must_link[:, None] >= 0) & (must_link[None, :] >= 0)
    log_weights[labeled_pair] = -np.inf
    np.fill_diagonal(log_weights, -np.inf)
    explicit = log_weights.copy()
    explicit[labeled_pair & (must_link[:, None] == must_link[None, :])] = 0.0
    np.fill_diagonal(explicit, -np.inf)
    labeled = rng.choice(n, 3, replace=False)
    exact = exact_log_weights(explicit, labeled, 0.99)
    found = weights(log_weights, labeled, 0.99, tol=1e-6, must_link=must_link)
    assert relative_error(found.log_values.numpy(), exact) <= 1e-6


def test_islands_are_unreached_and_alone_is_fine():
    log_weights = np.full((5, 5), -np.inf)
    log_weights[0, 1] = log_weights[1, 0] = 0.0
    log_weights[2, 3] = log_weights[3, 2] = 0.0
    found = weights(log_weights, np.array([0, 4]), 0.99, tol=1e-6).log_values
    assert torch.isneginf(found[2:4]).all()
    assert found[4].tolist() == [-np.inf, 0.0]  # a walker with nowhere to go
    assert torch.isfinite(found[:2, 0]).all()


@pytest.mark.parametrize("decades", [1, 60, 700])
def test_rows_that_nobody_asks_for_cost_nothing(decades):
    """Only the first cluster is wanted: what is behind the gap need not be accurate."""
    log_weights = clusters_on_a_line([12, 30, 30], -decades * np.log(10), np.random.default_rng(1))
    labeled, wanted = np.array([0, 3]), torch.arange(72) < 12
    exact = exact_log_weights(log_weights, labeled, 0.99)
    every = weights(log_weights, labeled, 0.99, tol=1e-6)
    found = weights(log_weights, labeled, 0.99, tol=1e-6, wanted=wanted)
    assert found.converged
    assert relative_error(found.log_values.numpy()[:12], exact[:12]) <= 1e-6
    assert found.n_iter <= every.n_iter
    if decades > 1:
        assert found.n_iter < every.n_iter


def test_a_good_guess_saves_iterations_and_a_bad_one_does_no_harm():
    X = np.random.default_rng(2).random((500, 2))
    away = np.linalg.norm(X[:, None] - X[None], axis=2)
    log_weights = np.where((away > 0) & (away < 0.1), -50 * away, -np.inf)
    labeled = np.array([0, 250])
    graph = NormalizedTorchGraph(as_torch_graph(log_weights))
    columns = Columns(
        torch.as_tensor(labeled),
        torch.arange(2),
        torch.zeros(2).double(),
        torch.zeros(1, 2).double(),
    )
    accuracy = {"alpha": 0.999, "tol": 1e-6, "max_iter": 1000}
    plain = solve_by_levels(graph, columns, **accuracy)
    near = plain.log_values + 1e-4
    for start, fewer in ((near, True), (near + 300.0, False), (near - torch.inf, False)):
        found = solve_by_levels(graph, columns, start=start, **accuracy)
        assert found.converged
        np.testing.assert_allclose(found.log_values, plain.log_values, atol=1e-5)
        assert (found.n_iter < plain.n_iter) == fewer


def test_too_few_iterations_are_told():
    rng = np.random.default_rng(6)
    log_weights = clusters_on_a_line([30, 30], -1.0, rng)
    found = weights(log_weights, np.array([0]), 0.999, tol=1e-10, max_iter=2)
    assert not found.converged
    assert not torch.isnan(found.log_values).any()


@pytest.mark.parametrize("log_gap", [-690.0, -705.0, -720.0, -740.0, -760.0])
def test_nothing_passes_between_parts_on_different_scales(log_gap):
    """Two clusters far from one label each, with an edge between them that is nearly lost.

    Its weight fits into a double precision number, but what it passes belongs to another scale.
    """
    rng = np.random.default_rng(3)
    log_weights = clusters_on_a_line([3, 3, 3, 3], -np.inf, rng)
    log_weights[6:9, 6:9] -= 2000.0  # sparse, so that its edges count for more
    for i, j, value in ((0, 3, -3000.0), (9, 6, -4500.0), (4, 7, log_gap - 1000.0)):
        log_weights[i, j] = log_weights[j, i] = value
    labeled = np.array([1, 10])
    exact = exact_log_weights(log_weights, labeled, 0.99)
    found = weights(log_weights, labeled, 0.99, tol=1e-6)
    assert found.converged
    assert relative_error(found.log_values.numpy(), exact) <= 1e-6
