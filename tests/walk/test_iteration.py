from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.walk import aggregates, iteration
from manifoldknn.walk.iteration import Parts
from manifoldknn.walk.normalized import NormalizedGraph
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
    parts = normalized.parts(np.arange(len(A)))
    rows, matrix = parts.rows, normalized.restrict(parts.rows, alpha)
    rhs = rng.random((len(A), 3)) ** 4
    x, _, _ = matrix.correction(rhs, tol=1e-12, max_iter=steps)
    residual = matrix.residual(rhs, x)
    exact = np.linalg.solve(A[np.ix_(rows, rows)], rhs)
    np.testing.assert_allclose(residual, rhs - A[np.ix_(rows, rows)] @ x, atol=1e-12)
    bound = np.exp(matrix.log_error(residual, parts))
    assert (np.abs(x - exact) <= bound * (1 + 1e-6) + 1e-12).all()


@pytest.mark.parametrize("scale", [1e-170, 1.0])
def test_tiny_residuals_are_not_taken_for_none(scale):
    rng = np.random.default_rng(1)

    problem = Problem(rng.normal(size=(30, 2)), np.r_[0, 1, np.full(28, -1)])
    normalized = NormalizedGraph(built_graph(problem, "pruned"))
    matrix = normalized.restrict(np.arange(30), 0.99)
    residual = rng.normal(size=(30, 2)) * scale
    bound = matrix.log_error(residual, Parts(np.arange(30), np.zeros(30, dtype=int), 0))
    assert (bound >= np.log(np.abs(residual)).min(axis=0) - 1).all()
    assert np.isfinite(bound).all()


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(max_samples=50),
    graph=st.sampled_from(["pruned", "union", "full"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_factorisations_are_right_to_rounding(problem, graph, seed):
    """Sparse with must-links, and dense, for all rows and for some of them."""
    built = built_graph(problem, graph)
    W = built.to_matrix()
    W = W if isinstance(W, np.ndarray) else W.toarray()
    root = np.exp(0.5 * built.log_degrees())
    A = np.eye(len(W)) - 0.9 * W / root[:, None] / root[None, :]
    rng = np.random.default_rng(seed)
    normalized = NormalizedGraph(built)
    normalized = normalized.going(factorize=True)
    for rows in (np.arange(len(A)), np.flatnonzero(rng.random(len(A)) < 0.6)):
        if not rows.size:
            continue
        rhs = rng.random((len(rows), 3))
        found = np.exp(normalized.restrict(rows, 0.9).log_solution(rhs.copy()))
        expected = np.linalg.solve(A[np.ix_(rows, rows)], rhs)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    problem=problems(max_samples=60, min_classes=2),
    alpha=st.sampled_from([0.5, 0.99, 0.9997]),
    n_jobs=st.sampled_from([1, 2]),
)
def test_levels_and_threads_lead_to_the_same_solution(problem, alpha, n_jobs):
    """Corrections and bounds with the preconditioner, must-links and all."""
    graph = built_graph(problem, "pruned")
    A = dense_a(graph, alpha)
    normalized = NormalizedGraph(graph)
    with mock.patch.object(aggregates, "_COARSEST", 3):
        normalized.levels = aggregates.aggregates(normalized.log_s)
    normalized.n_jobs = n_jobs
    with mock.patch.object(iteration, "_ENTRIES_PER_THREAD", 1):
        parts = normalized.parts(np.arange(len(A)))
        rows, matrix = parts.rows, normalized.restrict(parts.rows, alpha)
        rhs = np.random.default_rng(0).random((len(A), 3))
        x, _, converged = matrix.correction(rhs, tol=1e-4, max_iter=500)
        residual = matrix.residual(rhs, x)
        bound = np.exp(matrix.log_error(residual, parts))
    A = A[np.ix_(rows, rows)]
    assert converged
    np.testing.assert_allclose(residual, rhs - A @ x, atol=1e-9 * np.abs(x).max())
    assert (np.abs(x - np.linalg.solve(A, rhs)) <= bound * (1 + 1e-6) + 1e-9).all()
