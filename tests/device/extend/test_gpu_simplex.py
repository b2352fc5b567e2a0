"""Convex weights by PyTorch are those of NumPy, to rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extend.test_simplex import (
    assert_feasible,
    degenerate_problems,
    kkt_violation,
    objectives,
    random_problem,
    scales,
)
from manifoldknn.extend.simplex import simplex_weights

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.extend import simplex  # noqa: E402
from manifoldknn.device.extend.simplex import torch_simplex_weights  # noqa: E402


def weights(X, neighbors, device="cpu"):
    m, k, d = neighbors.shape
    samples = torch.as_tensor(np.ascontiguousarray(neighbors).reshape(m * k, d), device=device)
    near = torch.arange(m * k, device=device).reshape(m, k)
    return torch_simplex_weights(torch.as_tensor(X, device=device), samples, near).cpu().numpy()


@settings(max_examples=50, deadline=None)
@given(
    m=st.integers(1, 30),
    k=st.integers(1, 12),
    d=st.integers(1, 20),
    exponent=st.integers(-90, 90),
    seed=st.integers(0, 2**32 - 1),
)
def test_optimal_and_equal_to_numpy(m, k, d, exponent, seed):
    X, neighbors = (part * 10.0**exponent for part in random_problem(m, k, d, seed))
    z = weights(X, neighbors)
    assert_feasible(z)
    assert kkt_violation(X, neighbors, z) < 1e-13
    if k <= d:  # otherwise several weightings may reach the same point
        np.testing.assert_allclose(z, simplex_weights(X, neighbors), atol=1e-9)


@pytest.mark.parametrize("problem", degenerate_problems(), ids=lambda case: case[0])
def test_every_kind_of_dependence(problem):
    _, X, neighbors = problem
    z, expected = weights(X, neighbors), simplex_weights(X, neighbors)
    assert_feasible(z)
    unit = scales(X, neighbors)
    unit = np.where(unit > 0, unit, 1)
    values = (objectives(X, neighbors, one) / unit for one in (z, expected))
    np.testing.assert_allclose(*values, atol=1e-13)
    assert kkt_violation(X, neighbors, z) < max(1e-13, 2 * kkt_violation(X, neighbors, expected))


def test_a_point_equal_to_a_neighbor_has_all_weight_on_the_first_such():
    X, neighbors = random_problem(50, 6, 4)
    neighbors[:, 3], neighbors[:, 5] = X, X
    np.testing.assert_array_equal(weights(X, neighbors), np.tile(np.eye(6)[3], (50, 1)))


def test_single_precision_samples_are_taken_as_they_are():
    X, neighbors = (part.astype(np.float32) for part in random_problem(40, 5, 8))
    expected = simplex_weights(X, neighbors)
    np.testing.assert_allclose(weights(X, neighbors), expected, atol=1e-12)


def test_least_squares_solve_what_runs_out_of_iterations(monkeypatch):
    X, neighbors = random_problem(8, 6, 10)
    honest = simplex.active_set
    monkeypatch.setattr(simplex, "active_set", lambda gram, _, kernels: honest(gram, 1, kernels))
    z = weights(X, neighbors)
    assert_feasible(z)
    np.testing.assert_allclose(z, simplex_weights(X, neighbors), atol=1e-7)
