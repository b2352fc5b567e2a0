"""Clusters joined by edges that hardly count, against exact arithmetic."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.walk.parts as module
from exact_walks import clusters, exact_logs
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.levels import Columns, solve_by_levels
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.parts import solve_by_parts
from manifoldknn.walk.reduction import log_sum

ACCURACY = {"alpha": 0.99, "tol": 1e-6, "max_iter": 3000}


def graph_of(log_w, group):
    rows, cols = np.nonzero(np.isfinite(log_w))
    matrix = sparse.csr_array((log_w[rows, cols], (rows, cols)), shape=log_w.shape)
    return NormalizedGraph(ConstrainedGraph(matrix, group))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_entry_is_exact(data):
    """Chains, stars and loops of clusters and single rows, linked labels, sources anywhere."""
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=5))
    m = len(sizes)
    joins = [(data.draw(st.integers(0, p - 1)), p) for p in range(1, m)]
    joins += data.draw(st.lists(st.sampled_from(joins), max_size=2))
    log_weak = [data.draw(st.sampled_from([-9.0, -15.0, -30.0, -80.0, -300.0])) for _ in joins]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    log_w, n = clusters(rng, sizes, joins, log_weak), sum(sizes)
    group = np.full(n, -1)
    if data.draw(st.booleans()):
        group[rng.choice(n, 2, replace=False)] = 0
    n_columns = data.draw(st.integers(1, 3))
    rows = rng.choice(n, min(n, n_columns + 1), replace=False)
    cols = np.arange(len(rows)) % n_columns
    views = np.zeros((1, n_columns))
    if data.draw(st.booleans()):
        views = np.where(np.eye(n_columns, dtype=bool), 0.0, -np.inf)  # none shares a place
    columns = Columns(rows, cols, rng.normal(size=len(rows)), views, np.inf)
    expected = exact_logs(log_w, group, columns, 0.99)
    wanted = np.zeros(n, dtype=bool)
    wanted[rng.choice(n, max(1, n // 3), replace=False)] = True
    told = np.isfinite(expected) & (expected > -500)
    for few in (True, False):  # by doors, and from part to part
        with mock.patch.object(module._Doors, "are_few", few):
            found = solve_by_parts(graph_of(log_w, group), columns, **ACCURACY)
            some = solve_by_parts(graph_of(log_w, group), columns, wanted=wanted, **ACCURACY)
        assert found.converged
        np.testing.assert_allclose(found.log_values[told], expected[told], atol=2e-6)
        nobody = ~np.isin(np.arange(n_columns), cols)
        assert np.isneginf(found.log_values[:, nobody]).all()
        here = told & wanted[:, None]
        np.testing.assert_allclose(some.log_values[here], expected[here], atol=2e-6)


def separated(n_parts=6, size=60, seed=0):
    rng = np.random.default_rng(seed)
    joins = [(p - 1, p) for p in range(1, n_parts)]
    log_w = clusters(rng, [size] * n_parts, joins, [-40.0] * (n_parts - 1))
    return graph_of(log_w, np.full(len(log_w), -1)), size


def test_an_outlier_with_many_edges_is_one_door():
    """Rows that one row elsewhere is joined to are one right-hand side, on both sides."""
    log_w = np.full((20, 20), -np.inf)
    for i in [*range(8), *range(9, 19)]:
        log_w[i, i + 1] = -0.5
    log_w[8, 10:16] = -40.0 - np.arange(6)
    log_w[3, 18] = -50.0
    graph = graph_of(np.maximum(log_w, log_w.T), np.full(20, -1))
    columns = Columns(np.array([0, 19]), np.arange(2), np.zeros(2), np.zeros((1, 2)), np.inf)
    doors = module._Doors(graph.divided(np.log(1e-4)), columns)
    np.testing.assert_array_equal(doors.numbers, [3, 3])  # a source, the outlier, the other edge
    assert not doors.are_few
    expected = exact_logs(np.maximum(log_w, log_w.T), np.full(20, -1), columns, 0.99)
    found = doors.solution(**ACCURACY, wanted=None)
    np.testing.assert_allclose(found.log_values, expected, atol=2e-6)


def test_doors_are_not_few_where_one_part_has_many():
    """Right-hand sides of one small part would be as wide in all rows."""
    rng = np.random.default_rng(0)
    joins = [(4, k) for k in range(4)] * 8
    log_w = clusters(rng, [200] * 4 + [8], joins, -40.0 - np.arange(len(joins)))
    columns = Columns(np.array([0, 200]), np.arange(2), np.zeros(2), np.zeros((1, 2)), np.inf)
    graph = graph_of(log_w, np.full(len(log_w), -1))
    doors = module._Doors(graph.divided(np.log(1e-4)), columns)
    assert doors.numbers.max() > 4
    assert not doors.are_few


@pytest.mark.parametrize(("few", "times"), [(True, 16), (False, 36)])
def test_columns_share_solves(monkeypatch, few, times):
    """Six classes in a chain of six parts: solved once for each source and door, or each class."""
    monkeypatch.setattr(module._Doors, "are_few", few)
    graph, size = separated()
    sources = size * np.arange(6)
    columns = Columns(sources, np.arange(6), np.zeros(6), np.zeros((1, 6)), 4.0)
    widths = []

    def counted(inside, right, **options):
        there = np.unique(np.stack([right.rows // size, right.cols]), axis=1)
        widths.append(there.shape[1])
        return solve_by_levels(inside, right, **options)

    monkeypatch.setattr(module, "solve_by_levels", counted)
    found = solve_by_parts(graph, columns, **ACCURACY)
    assert sum(widths) == times
    assert found.reach == np.inf  # for most rows the second class is far
    assert np.isfinite(found.log_values).all()
    # Each step along the chain costs a weak edge.
    assert (np.diff(found.log_values[sources, 0]) < -30).all()


def test_what_is_small_beside_other_columns_is_left_out(monkeypatch):
    graph, size = separated()
    columns = Columns(np.array([0]), np.array([0]), np.zeros(1), np.zeros((1, 1)))
    calls = []

    def counted(inside, right, **options):
        calls.append(len(right.rows))
        return solve_by_levels(inside, right, **options)

    monkeypatch.setattr(module, "solve_by_levels", counted)
    reference = np.zeros((1, graph.n_samples))
    found = solve_by_parts(graph, columns, reference=reference, **ACCURACY)
    assert len(calls) == 1
    assert np.isfinite(found.log_values[:size]).all()
    assert np.isneginf(found.log_values[size:]).all()


def test_one_part_is_left_alone():
    rng = np.random.default_rng(0)
    graph = graph_of(clusters(rng, [30], [], []), np.full(30, -1))
    assert graph.divided(-20.0) is None
    columns = Columns(np.array([3]), np.array([0]), np.zeros(1), np.zeros((1, 1)))
    plain = solve_by_levels(graph, columns, **ACCURACY)
    found = solve_by_parts(graph, columns, **ACCURACY)
    assert (found.log_values == plain.log_values).all()


def test_views_that_leave_columns_out_and_nothing_known_beside():
    rng = np.random.default_rng(0)
    graph = graph_of(clusters(rng, [3, 3], [(0, 1)], [-30.0]), np.full(6, -1))
    views = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)
    columns = Columns(np.array([0, 1]), np.array([0, 1]), np.zeros(2), views)
    plain = solve_by_parts(graph, columns, **ACCURACY)
    nothing = np.full((2, 6), -np.inf)
    found = solve_by_parts(graph, columns, reference=nothing, **ACCURACY)
    np.testing.assert_array_equal(found.log_values, plain.log_values)
    assert np.isfinite(found.log_values).all()


def test_rows_that_nobody_asks_for_cost_nothing():
    """A part that hangs on a long chain does not make all of the chain be solved."""
    rng = np.random.default_rng(0)
    columns = Columns(np.array([0]), np.array([0]), np.zeros(1), np.zeros((1, 1)))
    spent = []
    for sizes, joins in (([400], []), ([400, 3], [(0, 1)])):
        graph = graph_of(clusters(rng, sizes, joins, [-40.0] * len(joins)), np.full(sum(sizes), -1))
        wanted = np.zeros(sum(sizes), dtype=bool)
        wanted[[0, 5]] = True
        found = solve_by_parts(graph, columns, wanted=wanted, alpha=0.9, tol=1e-3, max_iter=3000)
        spent.append(found.n_iter)
    assert spent[1] <= 12 * spent[0]


def test_a_class_in_some_parts_with_others_near():
    """Two classes in both parts and one in the first only, looked at as far as it is told."""
    rng = np.random.default_rng(0)
    log_w = clusters(rng, [80, 80], [(0, 1)], [-40.0])
    rows, cols = np.array([0, 80, 20, 100, 40]), np.array([0, 0, 1, 1, 2])
    columns = Columns(rows, cols, np.zeros(5), np.zeros((1, 3)), 4.0)
    found = solve_by_parts(graph_of(log_w, np.full(160, -1)), columns, **{**ACCURACY, "alpha": 0.5})
    assert found.reach == 4.0
    expected = exact_logs(log_w, np.full(160, -1), columns, 0.5)
    near = expected > expected.max(axis=1, keepdims=True) - 4.0
    np.testing.assert_allclose(found.log_values[near], expected[near], atol=2e-6)


def test_how_far_a_class_is_beyond_what_is_looked_at():
    """The prior of the sharpness goes by it; levels alone leave nothing of such classes."""
    rng = np.random.default_rng(0)
    log_w = clusters(rng, [80, 10, 10], [(0, 1), (1, 2)], [-200.0, -200.0])
    graph, nobody = graph_of(log_w, np.full(100, -1)), np.full(100, -1)
    columns = Columns(np.array([0, 20, 85]), np.arange(3), np.zeros(3), np.zeros((1, 3)), 4.0)
    found = solve_by_parts(graph, columns, **ACCURACY)
    assert found.reach == 4.0
    expected = exact_logs(log_w, nobody, columns, 0.99)
    np.testing.assert_allclose(found.log_values, expected, atol=2e-6)
    assert np.isneginf(solve_by_levels(graph, columns, **ACCURACY).log_values).any()


def test_very_many_weak_edges_are_right_too():
    """More comes back than over a single edge; it takes longer."""
    rng = np.random.default_rng(0)
    log_w = clusters(rng, [12, 12], [], [])
    log_w[:12, 12:] = log_w[12:, :12] = -9.3
    columns = Columns(np.array([0, 13]), np.array([0, 1]), np.zeros(2), np.zeros((1, 2)), np.inf)
    found = solve_by_parts(graph_of(log_w, np.full(24, -1)), columns, **ACCURACY)
    expected = exact_logs(log_w, np.full(24, -1), columns, 0.99)
    np.testing.assert_allclose(found.log_values, expected, atol=2e-6)


def test_divisions_are_kept_apart():
    graph, _ = separated(2, 10)
    assert graph.divided(-20.0) is graph.divided(-20.0)
    assert graph.divided(-60.0) is None
    whole = graph.going(n_jobs=2)
    assert whole.divided(-20.0).inside.n_jobs == 2
    assert graph.divided(-20.0).inside.n_jobs == 1


@pytest.mark.parametrize("seed", range(5))
def test_log_sum_of_a_matrix_and_a_few_entries(seed):
    rng = np.random.default_rng(seed)
    a, b = (sparse.random_array((9, 9), density=d, rng=rng, format="csr") for d in (0.4, 0.1))
    logs = [m.copy() for m in (a, b)]
    for m in logs:
        m.data = np.log(m.data)
    entries = logs[1].tocoo()
    mixed = rng.permutation(entries.nnz)
    logs[0].sort_indices()
    found = log_sum(logs[0], *(part[mixed] for part in (entries.row, entries.col, entries.data)))
    assert found.has_sorted_indices
    found.data = np.exp(found.data)
    np.testing.assert_allclose(found.toarray(), (a + b).toarray())
