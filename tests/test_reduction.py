import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.reduction as reduction_module
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.reduction import reduced_graph
from manifoldknn.walk import log_class_weights, log_label_weights
from strategies import Problem, built_graph, problems


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    densest=st.sampled_from([1.5, 50.0]),
    sigma=st.sampled_from([0.05, 0.7]),
)
def test_both_ways_give_the_same_weights(problem, graph, densest, sigma):
    """With and without elimination, for samples and for class sums, must-links included."""
    normalized = NormalizedGraph(built_graph(problem, graph, sigma=sigma))
    labeled = np.flatnonzero(problem.y >= 0)
    codes = problem.y[labeled]
    before = reduction_module._DENSEST
    reduction_module._DENSEST = densest
    try:
        reduced = reduced_graph(normalized, labeled, 0.99)
    finally:
        reduction_module._DENSEST = before
    accuracy = {"tol": 1e-9, "max_iter": 3000}
    arguments = labeled, codes, int(codes.max()) + 1, 0.99
    for plain, short in (
        (
            log_label_weights(normalized, labeled, 0.99, **accuracy),
            log_label_weights(reduced, labeled, 0.99, **accuracy),
        ),
        (
            log_class_weights(normalized, *arguments, **accuracy),
            log_class_weights(reduced, *arguments, **accuracy),
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
