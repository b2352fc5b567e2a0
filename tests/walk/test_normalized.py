import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.walk.normalized import NormalizedGraph
from strategies import Problem, built_graph, problems


def dense_a(graph, alpha):
    """A = I - αS, written out."""
    W = graph.to_matrix().toarray()
    root = np.exp(0.5 * graph.log_degrees())
    return np.eye(len(W)) - alpha * W / root[:, None] / root[None, :]


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


@pytest.mark.parametrize("graph", ["pruned", "full"])
def test_restriction_to_all_rows_is_made_once(graph):
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(30, 2)), np.r_[0, 1, np.full(28, -1)])
    normalized = NormalizedGraph(built_graph(problem, graph))
    everything = np.arange(30)
    in_parts = normalized.parts(everything).rows
    assert normalized.restrict(in_parts, 0.9) is normalized.restrict(in_parts, 0.9)
    assert normalized.restrict(everything[:5], 0.9) is not normalized.restrict(everything[:5], 0.9)
