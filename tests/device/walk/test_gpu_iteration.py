"""Bounds on errors hold on a device as they do on the CPU, and iterations can be looked at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import built_graph, problems
from walk.test_iteration import dense_a

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from device.walk.test_gpu_levels import as_torch_graph  # noqa: E402
from manifoldknn.device.walk.normalized import NormalizedTorchGraph  # noqa: E402


def prepared(problem, alpha):
    graph = built_graph(problem, "union")
    dense = np.full((graph.n_samples,) * 2, -np.inf)
    matrix = graph.log_weights.tocoo()
    dense[matrix.row, matrix.col] = matrix.data
    normalized = NormalizedTorchGraph(as_torch_graph(dense, graph.must_link))
    parts = normalized.parts(torch.arange(graph.n_samples))
    rows = parts.rows.numpy()
    A = dense_a(graph, alpha)[np.ix_(rows, rows)]
    return normalized.restrict(parts.rows, alpha), parts, A


@settings(max_examples=40, deadline=None)
@given(
    problem=problems(max_samples=50),
    alpha=st.sampled_from([0.5, 0.99]),
    steps=st.integers(0, 6),
    seed=st.integers(0, 2**32 - 1),
    guessed=st.booleans(),
)
def test_the_error_is_never_larger_than_its_bound(problem, alpha, steps, seed, guessed):
    matrix, parts, A = prepared(problem, alpha)
    rng = np.random.default_rng(seed)
    rhs = rng.random((len(A), 3)) ** 4
    exact = np.linalg.solve(A, rhs)
    x = torch.as_tensor(exact * rng.uniform(0.9, 1.1, exact.shape)) if guessed else None
    right = torch.as_tensor(rhs)
    left = matrix.residual(right, x) if guessed else None
    solver = matrix.iteration(right, x, left)
    solver.advance(torch.full((3,), 1e-12), torch.ones(3, dtype=torch.bool), max_iter=steps)
    assert solver.n_iter <= steps
    np.testing.assert_allclose(solver.residual, rhs - A @ solver.x.numpy(), atol=1e-12)
    plain, sharp = (solver.log_error(parts, sharp=s).exp().numpy() for s in (False, True))
    assert (sharp <= plain * (1 + 1e-12)).all()
    assert (np.abs(solver.x.numpy() - exact) <= sharp * (1 + 1e-6) + 1e-12).all()


def test_iterations_end_where_somebody_is_content():
    rng = np.random.default_rng(0)
    n = 200
    X = rng.random((n, 2))
    away = np.linalg.norm(X[:, None] - X[None], axis=2)
    graph = NormalizedTorchGraph(
        as_torch_graph(np.where((away > 0) & (away < 0.15), -away, -np.inf))
    )
    matrix = graph.restrict(graph.parts(torch.arange(n)).rows, 0.999)
    rhs = torch.as_tensor(rng.random((n, 3)))
    shares, going = [], torch.tensor([True, False, True])

    def settled(share, look):
        shares.append(share)
        assert look(torch.arange(5)).shape == (5, 2)
        return share < 0.1

    solver = matrix.iteration(rhs)
    assert solver.advance(torch.full((3,), 1e-9), going, 1000, settled)
    assert shares[-1] < 0.1
    assert all(share >= 0.1 for share in shares[:-1])
    before = solver.residual.norm(dim=0)
    assert solver.advance(torch.full((3,), 1e-2), going, 1000)
    assert (solver.residual.norm(dim=0) <= 1.01e-2 * before)[going].all()
    assert not solver.advance(torch.full((3,), 1e-30), going, 1)
