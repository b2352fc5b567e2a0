import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.walk.blockcg import block_cg, column_dots


def spd(n, rng):
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * n * np.eye(n)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 40), columns=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_equals_a_direct_solve(n, columns, seed):
    rng = np.random.default_rng(seed)
    A = spd(n, rng)
    B = rng.normal(size=(n, columns))
    B[:, rng.random(columns) < 0.2] = 0  # columns that are finished before they begin
    x, _, converged = block_cg(A.__matmul__, B, tol=1e-12, max_iter=1000)
    assert converged
    np.testing.assert_allclose(x, np.linalg.solve(A, B), atol=1e-9 * max(1, np.abs(B).max()))


def test_columns_converge_at_different_times_without_dividing_by_zero():
    A = np.diag(np.arange(1.0, 51.0))
    B = np.zeros((50, 3))
    B[0, 0] = 1.0  # an eigenvector: one step
    B[:10, 1] = 1.0
    B[:, 2] = 1.0
    widths = []

    def apply(v):
        widths.append(v.shape[1])
        return A @ v

    x, n_iter, converged = block_cg(apply, B, tol=1e-13, max_iter=200)
    assert converged
    assert n_iter == len(widths)
    assert widths[0] == 3
    assert widths[1] == 2
    assert widths[-1] == 1
    np.testing.assert_allclose(A @ x, B, atol=1e-11)


def test_says_when_it_ran_out_of_iterations():
    rng = np.random.default_rng(0)
    A = spd(60, rng)
    x, n_iter, converged = block_cg(A.__matmul__, rng.normal(size=(60, 2)), tol=1e-12, max_iter=3)
    assert (n_iter, converged) == (3, False)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-10])
def test_tolerance_is_the_relative_residual_of_each_column(tol):
    rng = np.random.default_rng(1)
    A = spd(80, rng)
    B = rng.normal(size=(80, 4)) * np.array([1e-8, 1.0, 1e8, 1e20])
    x, _, _ = block_cg(A.__matmul__, B, tol=tol, max_iter=1000)
    residual = np.linalg.norm(B - A @ x, axis=0) / np.linalg.norm(B, axis=0)
    assert (residual <= 1.01 * tol).all()


def test_tells_the_largest_residual_after_every_product():
    rng = np.random.default_rng(2)
    A, B = spd(30, rng), rng.normal(size=(30, 3))
    told = []
    _, n_iter, _ = block_cg(
        A.__matmul__, B, tol=1e-8, max_iter=100, watch=lambda *line: told.append(line)
    )
    assert [count for count, _, _ in told] == list(range(1, n_iter + 1))
    for count in (1, 5, n_iter):
        x, _, _ = block_cg(A.__matmul__, B, tol=1e-8, max_iter=count)
        left = np.linalg.norm(B - A @ x, axis=0) / np.linalg.norm(B, axis=0)
        assert told[count - 1][1] == pytest.approx(left.max(), rel=1e-3)


def test_who_watches_sees_all_columns_and_may_stop():
    rng = np.random.default_rng(2)
    A, B = spd(30, rng), rng.normal(size=(30, 3))
    B[:, 1] = A[:, 0] * 1e-9  # converges at another time
    rows, seen = np.array([4, 0]), {}

    def watch(n_iter, _, look):
        seen[n_iter] = look(rows)
        return n_iter == 7

    x, n_iter, converged = block_cg(A.__matmul__, B, tol=1e-8, max_iter=100, watch=watch)
    assert (n_iter, converged) == (7, True)
    np.testing.assert_array_equal(x[rows], seen[7])
    for count in (1, 4, 7):
        unwatched, _, _ = block_cg(A.__matmul__, B, tol=1e-8, max_iter=count)
        np.testing.assert_array_equal(unwatched[rows], seen[count])


def told(preconditioner):
    """Return a preconditioner that tells products too."""

    def conditioned(r):
        z = preconditioner(r)
        return z, np.stack([column_dots(r, r), column_dots(r, z)])

    return conditioned


def test_a_preconditioner_changes_the_way_and_not_the_end():
    rng = np.random.default_rng(3)
    scales = np.logspace(0, 4, 200)
    A = spd(200, rng) / 200 * np.sqrt(scales[:, None] * scales)
    B = rng.normal(size=(200, 5)) * np.logspace(-3, 3, 5)
    B[:, 2] = 0
    plain, slow, _ = block_cg(A.__matmul__, B, tol=1e-9, max_iter=3000)
    inverse = 1 / np.diag(A)[:, None]
    x, quick, converged = block_cg(
        A.__matmul__, B, tol=1e-9, max_iter=3000, precondition=told(lambda r: inverse * r)
    )
    assert converged
    assert quick < 0.5 * slow
    left = np.linalg.norm(B - A @ x, axis=0)
    assert (left <= 1.01e-9 * np.linalg.norm(B, axis=0)).all()
    assert (x[:, 2] == 0).all()
    exact, n_iter, _ = block_cg(
        A.__matmul__, B, tol=1e-9, max_iter=10, precondition=told(np.linalg.inv(A).__matmul__)
    )
    assert n_iter <= 2
    np.testing.assert_allclose(exact, plain, atol=1e-6 * np.abs(plain).max())


@pytest.mark.parametrize("broken", ["matrix", "preconditioner"])
def test_a_column_ends_where_something_is_not_definite(broken):
    rng = np.random.default_rng(0)
    A, M = 2 * np.eye(6), np.eye(6)
    (A if broken == "matrix" else M)[5, 5] = -1e3
    rhs = rng.normal(size=(6, 2))
    rhs[5, 0] = 0.0  # this column never meets it
    x, _, converged = block_cg(
        A.__matmul__, rhs, tol=1e-8, max_iter=500, precondition=told(M.__matmul__)
    )
    assert not converged
    assert np.isfinite(x).all()
    np.testing.assert_allclose(A @ x[:, 0], rhs[:, 0], atol=1e-7)
