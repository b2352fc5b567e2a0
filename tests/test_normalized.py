import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.normalized import NormalizedGraph
from strategies import Problem, built_graph, problems


def dense_a(graph, alpha):
    """A = I - αS, written out."""
    W = graph.to_matrix().toarray()
    root = np.exp(0.5 * graph.log_degrees())
    return np.eye(len(W)) - alpha * W / root[:, None] / root[None, :]


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(max_samples=50),
    alpha=st.sampled_from([0.5, 0.99]),
    steps=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_error_is_never_larger_than_its_bound(problem, alpha, steps, seed):
    """For unfinished solutions of any quality, part by part."""
    graph = built_graph(problem, "union")
    A = dense_a(graph, alpha)
    rng = np.random.default_rng(seed)
    normalized = NormalizedGraph(graph)
    rows, parts, _ = normalized.parts(np.arange(len(A)))
    matrix = normalized.restrict(rows)
    rhs = rng.random((len(A), 3)) ** 4
    x, _, _ = matrix.correction(rhs, alpha=alpha, tol=1e-12, max_iter=steps)
    residual = matrix.residual(rhs, x, alpha)
    exact = np.linalg.solve(A[np.ix_(rows, rows)], rhs)
    np.testing.assert_allclose(residual, rhs - A[np.ix_(rows, rows)] @ x, atol=1e-12)
    bound = np.exp(matrix.log_error(residual, parts, alpha))
    assert (np.abs(x - exact) <= bound * (1 + 1e-6) + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_samples=40), seed=st.integers(0, 2**32 - 1))
def test_boundary_is_the_product_with_the_final_rows(problem, seed):
    graph = built_graph(problem, "pruned")
    S = (np.eye(graph.n_samples) - dense_a(graph, 0.9)) / 0.9
    rng = np.random.default_rng(seed)
    final = rng.random(graph.n_samples) < 0.5
    rows = np.flatnonzero(~final)
    x = rng.random((graph.n_samples, 2))
    found = NormalizedGraph(graph).boundary(rows, final, np.log(x))
    np.testing.assert_allclose(np.exp(found), S[np.ix_(~final, final)] @ x[final], atol=1e-12)


def test_restriction_to_all_rows_is_made_once():
    rng = np.random.default_rng(0)

    problem = Problem(rng.normal(size=(30, 2)), np.r_[0, 1, np.full(28, -1)])
    normalized = NormalizedGraph(built_graph(problem, "pruned"))
    everything = np.arange(30)
    in_parts = normalized.parts(everything)[0]
    assert normalized.restrict(in_parts) is normalized.restrict(in_parts)
    assert normalized.restrict(everything[:5]) is not normalized.restrict(everything[:5])


@pytest.mark.parametrize("scale", [1e-170, 1.0])
def test_tiny_residuals_are_not_taken_for_none(scale):
    rng = np.random.default_rng(1)

    problem = Problem(rng.normal(size=(30, 2)), np.r_[0, 1, np.full(28, -1)])
    normalized = NormalizedGraph(built_graph(problem, "pruned"))
    matrix = normalized.restrict(np.arange(30))
    residual = rng.normal(size=(30, 2)) * scale
    bound = matrix.log_error(residual, np.zeros(30, dtype=int), 0.99)
    assert (bound >= np.log(np.abs(residual)).min(axis=0) - 1).all()
    assert np.isfinite(bound).all()
