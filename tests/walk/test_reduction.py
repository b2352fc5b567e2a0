import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.walk.reduction as reduction_module
from manifoldknn.walk.label_columns import log_label_weights
from manifoldknn.walk.levels import Columns
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import reduced_graph, solve_columns
from strategies import Problem, built_graph, problems


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    densest=st.sampled_from([1.5, 50.0]),
    sigma=st.sampled_from([0.05, 0.7]),
)
def test_both_ways_give_the_same_weights(problem, graph, densest, sigma):
    """With and without elimination, from samples, and from rows that are eliminated themselves."""
    normalized = NormalizedGraph(built_graph(problem, graph, sigma=sigma))
    labeled = np.flatnonzero(problem.y >= 0)
    before = reduction_module._DENSEST
    reduction_module._DENSEST = densest
    try:
        reduced = reduced_graph(normalized, labeled, 0.99)
        looked_at = reduced_graph(normalized, np.arange(0, len(problem.y), 3), 0.99)
    finally:
        reduction_module._DENSEST = before
    accuracy = {"tol": 1e-9, "max_iter": 3000}
    everyone, some = np.arange(len(problem.y)), np.arange(0, len(problem.y), 3)
    from_all = Columns(everyone, everyone % 2, np.sin(everyone), np.zeros((1, 2)))
    for plain, short in (
        (
            log_label_weights(normalized, labeled, 0.99, **accuracy),
            log_label_weights(reduced, labeled, 0.99, **accuracy),
        ),
        (
            solve_columns(normalized, from_all, alpha=0.99, rows=some, **accuracy),
            solve_columns(looked_at, from_all, alpha=0.99, rows=some, **accuracy),
        ),
    ):
        assert short.converged == plain.converged
        largest = plain.log_values.max(axis=1, keepdims=True)
        assert (np.isneginf(largest) == np.isneginf(short.log_values.max(axis=1))[:, None]).all()
        shift = np.where(np.isneginf(largest), 0.0, largest)
        difference = np.exp(plain.log_values - shift) - np.exp(short.log_values - shift)
        assert np.abs(difference).max() <= 1e-8


def test_rows_are_saved():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(500, 3)), np.r_[0, 1, np.full(498, -1)])
    normalized = NormalizedGraph(built_graph(problem, "pruned"))
    reduced = reduced_graph(normalized, np.array([0, 1]), 0.99)
    assert len(reduced.rows) < 350
    assert reduced.core.log_s.nnz < 2 * normalized.log_s.nnz
    assert {0, 1} <= set(reduced.rows.tolist())
