import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.walk.cg import ConjugateGradients  # noqa: E402


def system(n=60, columns=5):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(n, n))
    A = torch.as_tensor(half @ half.T / n + np.eye(n))
    return A, torch.as_tensor(rng.normal(size=(n, columns)))


def test_solves_and_goes_on_where_it_stopped():
    A, b = system()
    solver = ConjugateGradients(A.__matmul__, b)
    assert solver.advance(1e-3 * b.norm(dim=0), max_iter=100)
    assert ((b - A @ solver.x).norm(dim=0) <= 1.001e-3 * b.norm(dim=0)).all()
    early = solver.n_iter
    assert solver.advance(1e-12 * b.norm(dim=0), max_iter=100)
    in_one_go = ConjugateGradients(A.__matmul__, b)
    assert in_one_go.advance(1e-12 * b.norm(dim=0), max_iter=100)
    assert early < solver.n_iter <= in_one_go.n_iter + 4
    np.testing.assert_allclose(solver.x, torch.linalg.solve(A, b), atol=1e-10)


def test_columns_that_are_done_or_zero_do_no_harm():
    A, b = system()
    b[:, 1] = 0.0
    b[:, 2] = 0.0
    b[3, 2] = 1e-200  # its squares vanish
    solver = ConjugateGradients(A.__matmul__, b)
    assert solver.advance(torch.zeros(5, dtype=torch.float64), max_iter=400) in (True, False)
    assert torch.isfinite(solver.x).all()
    assert not solver.x[:, 1].any()


def test_too_few_iterations_are_told():
    A, b = system()
    solver = ConjugateGradients(A.__matmul__, b)
    assert not solver.advance(1e-9 * b.norm(dim=0), max_iter=3)
    assert solver.n_iter == 3


def test_a_restart_corrects_what_rounding_has_left():
    A, b = system()
    solver = ConjugateGradients(A.__matmul__, b)
    solver.advance(1e-6 * b.norm(dim=0), max_iter=100)
    solver.x += 1e-4  # as if by rounding
    solver.restart(b - A @ solver.x)
    assert solver.advance(1e-12 * b.norm(dim=0), max_iter=100)
    np.testing.assert_allclose(solver.x, torch.linalg.solve(A, b), atol=1e-10)


def test_a_preconditioner_saves_iterations_and_a_restart_uses_it():
    A, b = system()
    stretch = torch.logspace(-2, 2, 60, dtype=torch.float64)
    A = stretch[:, None] * A * stretch
    inverse = 1.0 / A.diagonal()[:, None]
    plain, solver = (ConjugateGradients(A.__matmul__, b, p) for p in (None, inverse.__mul__))
    goals = 1e-8 * b.norm(dim=0)
    assert solver.advance(goals, max_iter=200)
    assert not plain.advance(goals, max_iter=solver.n_iter)
    assert ((b - A @ solver.x).norm(dim=0) <= 1.01 * goals).all()
    solver.x += 1e-6  # as if by rounding
    solver.restart(b - A @ solver.x)
    assert solver.advance(goals, max_iter=200)
    assert ((b - A @ solver.x).norm(dim=0) <= 1.01 * goals).all()
