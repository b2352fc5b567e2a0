import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.voters as voters_module
from manifoldknn.graph import build_graph
from manifoldknn.neighbors import ExactIndex
from manifoldknn.voters import kept_per_row, label_walk, nearest_labeled
from strategies import built_graph, problems

GRAPHS = ("pruned", "union", "full")


@settings(max_examples=30, deadline=None)
@given(problem=problems(max_samples=50), n_kept=st.integers(1, 6), n_jobs=st.sampled_from([1, 2]))
def test_blocks_of_columns_with_a_running_selection(problem, n_kept, n_jobs):
    built = built_graph(problem, "pruned")
    labeled = np.flatnonzero(problem.y >= 0)
    n_kept = min(n_kept, len(labeled))
    whole, _, _ = nearest_labeled(built, labeled, 0.99, n_kept, tol=1e-10, max_iter=1000)
    usual = voters_module._BLOCK
    voters_module._BLOCK = 2
    try:
        blocks, _, converged = nearest_labeled(
            built, labeled, 0.99, n_kept, tol=1e-10, max_iter=1000, n_jobs=n_jobs
        )
    finally:
        voters_module._BLOCK = usual
    assert converged
    np.testing.assert_allclose(blocks.weights, whole.weights, atol=1e-8)
    finite = np.isfinite(whole.log_scale)
    assert (np.isfinite(blocks.log_scale) == finite).all()
    np.testing.assert_allclose(blocks.log_scale[finite], whole.log_scale[finite], atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_samples=50), n_kept=st.integers(1, 6), graph=st.sampled_from(GRAPHS))
def test_some_rows_are_those_rows_of_all(problem, n_kept, graph):
    built = built_graph(problem, graph)
    labeled = np.flatnonzero(problem.y >= 0)
    n_kept = min(n_kept, len(labeled))
    accuracy = {"tol": 1e-10, "max_iter": 1000}
    whole, _, _ = nearest_labeled(built, labeled, 0.99, n_kept, **accuracy)
    for rows in (labeled, np.arange(len(problem.y))[::-2]):  # in the core, and eliminated ones
        some, _, _ = nearest_labeled(built, labeled, 0.99, n_kept, rows=rows, **accuracy)
        np.testing.assert_allclose(some.weights, whole.rows(rows).weights, atol=1e-8)
        finite = np.isfinite(whole.log_scale[rows])
        assert (np.isfinite(some.log_scale) == finite).all()
        np.testing.assert_allclose(some.log_scale[finite], whole.log_scale[rows][finite], atol=1e-8)


def test_collapsed_mode_is_chosen_when_everyone_votes():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = np.full(80, -1)
    y[:8] = [0, 0, 0, 0, 1, 1, 1, 1]
    built = build_graph(
        X,
        ExactIndex(X).among_samples(30),
        y,
        graph="pruned",
        graph_neighbors=10,
        sigma=0.5,
        tree_depth=2,
        theta=0.1,
        metric="euclidean",
    )
    arguments = {"alpha": 0.99, "tol": 1e-9, "max_iter": 1000}
    labeled, codes = np.arange(8), y[:8]
    assert label_walk(built, labeled, codes, n_neighbors=8, **arguments).by_class
    assert not label_walk(built, labeled, codes, n_neighbors=7, **arguments).by_class
    assert not label_walk(built, labeled[3:5], codes[3:5], n_neighbors=9, **arguments).by_class


def test_same_weights_for_any_number_of_threads():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    y = np.full(400, -1)
    y[:90] = rng.integers(0, 3, 90)
    graph = build_graph(
        X,
        ExactIndex(X).among_samples(30),
        y,
        graph="pruned",
        graph_neighbors=10,
        sigma=0.4,
        tree_depth=2,
        theta=0.1,
        metric="euclidean",
    )
    arguments = {"n_neighbors": 5, "alpha": 0.99, "tol": 1e-3, "max_iter": 1000}
    one, two, three = (
        label_walk(graph, np.arange(90), y[:90], n_jobs=jobs, **arguments) for jobs in (1, 2, 3)
    )
    assert one.nearest.weights.shape == (400, 90)
    for other in (two, three):
        assert (one.nearest.voters == other.nearest.voters).all()
        assert (one.nearest.weights == other.nearest.weights).all()
        assert (one.nearest.log_scale == other.nearest.log_scale).all()


def test_all_weights_are_kept_where_they_fit():
    assert kept_per_row(1000, 500, 5) == 500
    assert kept_per_row(70_000, 100, 5) == 100
    assert kept_per_row(581_012, 700, 5) == 64
    assert kept_per_row(581_012, 700, 30) == 120
    assert kept_per_row(10**7, 3, 5) == 3
