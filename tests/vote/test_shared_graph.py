"""An open graph, closed by the pairs of some labels, is the graph of those labels."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.graph.links import hand_links
from manifoldknn.vote import shared_graph as sharing
from manifoldknn.vote.densities import class_densities
from manifoldknn.vote.hidden import hidden_densities, hidden_groups
from manifoldknn.vote.shared_graph import OpenGraph, log_inflow, pairs_among, ready_graph
from manifoldknn.walk.choose import Way
from strategies import links_for, problems, recipe_of, shared_graph

ALPHA = 0.97
EXACT = {"tol": 1e-9, "max_iter": 2000, "reach": np.inf}


def assert_same(found, expected, rtol=1e-6):
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    there = np.isfinite(expected)
    np.testing.assert_allclose(found[there], expected[there], rtol=1e-9, atol=rtol)


@settings(max_examples=80, deadline=None)
@given(
    st.data(),
    problems(max_samples=40, min_classes=2),
    st.sampled_from(["pruned", "union"]),
    st.sampled_from([0, 1, 2]),
    st.integers(0, 1000),
)
def test_closed_is_what_the_labels_alone_would_make(data, problem, graph, depth, seed):
    X, y = problem.X, problem.y
    links = hand_links(*data.draw(links_for(y)), y)
    recipe = recipe_of(X, graph, depth=depth, links=links)
    touched = recipe.touched(y)
    opened = OpenGraph(recipe.constrained(y), touched, ALPHA, Way("iterate"))
    rng = np.random.default_rng(seed)
    labeled = np.flatnonzero(y >= 0)
    for hidden in (labeled[:0], rng.choice(labeled, rng.integers(0, len(labeled)), replace=False)):
        visible = y.copy()
        visible[hidden] = -1
        whole = recipe.without_links_of(hidden).constrained(visible)
        part = recipe.among(touched).without_links_of(hidden).constrained(visible)
        assert pairs_among(part, touched).log_weights.nnz == part.log_weights.nnz
        found = opened.closed(part)
        np.testing.assert_allclose(found.log_degrees, whole.log_degrees(), rtol=1e-9, atol=1e-9)
        assert_same(found.log_inflow, log_inflow(whole, whole.log_degrees()))
        known = np.flatnonzero(visible >= 0)
        classes = known, visible[known], y.max() + 1, ALPHA
        ready = ready_graph(whole, labeled, ALPHA, Way("factorise"))
        assert_same(
            class_densities(found, *classes, **EXACT).log_values,
            class_densities(ready, *classes, **EXACT).log_values,
        )


def test_a_label_that_hangs_on_others_by_almost_nothing():
    """Weights of e^-3000 beside must-links of 1: open parts are added to, never taken from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[:3] += [[200.0, 0.0], [0.0, 200.0], [-200.0, 0.0]]
    y = np.full(60, -1)
    y[:12] = np.arange(12) % 2
    recipe = recipe_of(X, "pruned")
    assert recipe.constrained(np.full(60, -1)).log_degrees()[:3].max() < -3000
    for hidden in ([], [0], [0, 1, 2, 3]):
        visible = y.copy()
        visible[hidden] = -1
        whole = recipe.constrained(visible)
        opened = OpenGraph(recipe.constrained(y), recipe.touched(y), ALPHA, Way("iterate"))
        known = np.flatnonzero(visible >= 0)
        classes = known, visible[known], 2, ALPHA
        expected = class_densities(
            ready_graph(whole, known, ALPHA, Way("factorise")), *classes, **EXACT
        )
        closed = opened.closed(pairs_among(whole, opened.touched))
        found = class_densities(closed, *classes, **EXACT)
        assert_same(found.log_values, expected.log_values)


@pytest.mark.parametrize("few", [0.0, 1.0])
def test_hidden_rows_settle_within_the_tolerance(few):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4)) + 2.5 * rng.integers(0, 3, 3000)[:, None]
    y = np.full(3000, -1)
    y[rng.choice(3000, 60, replace=False)] = np.arange(60) % 3
    recipe, groups = recipe_of(X, "pruned", k=10, sigma=0.6), hidden_groups(y)
    with mock.patch.object(sharing, "_FEW", few):
        shared = shared_graph(recipe, y, 0.999, "iterate")
        assert (shared.recipe is recipe) == (not few)
        how = {"max_iter": 2000, "reach": np.inf, "n_jobs": 1}
        exact = hidden_densities(y, groups, 3, shared, tol=1e-9, **how)
        for tol in (1e-4, 1e-2):
            found = hidden_densities(y, groups, 3, shared, tol=tol, **how)
            error = np.abs(np.concatenate(found) - np.concatenate(exact)).max()
            assert tol / 1e3 < error < tol  # no better than it has to be, and good enough


def test_hidden_rows_are_those_of_the_dense_inverse():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 3)), np.full(50, -1)
    y[:15] = np.arange(15) % 3
    recipe, groups = recipe_of(X, "union"), hidden_groups(y)
    with mock.patch.object(sharing, "_FEW", 1.0):
        shared = shared_graph(recipe, y, ALPHA, "iterate")
        found = hidden_densities(y, groups, 3, shared, tol=1e-8, max_iter=2000)
    for hidden, logs in zip(groups, found):
        visible = y.copy()
        visible[hidden] = -1
        W = recipe.constrained(visible).to_matrix().toarray()
        f = oracles.class_densities(oracles.walk_matrix(W, ALPHA), visible, 3)
        np.testing.assert_allclose(np.exp(logs), f[hidden], rtol=1e-6)
