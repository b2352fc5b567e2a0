import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracles
from manifoldknn import constrained_graph
from manifoldknn.graph.constrained import automatic_sigma, candidate_count, log_strengthening
from manifoldknn.graph.weights import row_logsumexp
from manifoldknn.search.neighbors import ExactIndex
from strategies import built_graph, problems, recipe_of

GRAPHS = ("pruned", "union", "full")


def dense(W):
    return W.toarray() if sparse.issparse(W) else W


@settings(max_examples=100, deadline=None)
@given(
    problem=problems(max_samples=45, ties=False),
    graph=st.sampled_from(GRAPHS),
    k=st.sampled_from([1, 3, 10]),
    depth=st.integers(0, 3),
    theta=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_equals_table_1_pair_by_pair(problem, graph, k, depth, theta):
    X, y = problem.X, problem.y
    k = min(k, len(X) - 1)
    W = constrained_graph(
        X, y, graph=graph, graph_neighbors=k, sigma=0.7, tree_depth=depth, theta=theta
    )
    expected = oracles.constrained_graph(
        X, y, graph=graph, k=k, sigma=0.7, depth=depth, theta=theta
    )
    np.testing.assert_allclose(dense(W), expected, rtol=1e-9, atol=1e-300)


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_samples=60), graph=st.sampled_from(GRAPHS), depth=st.integers(0, 3))
def test_properties_of_the_weights(problem, graph, depth):
    """Duplicates and grids included: symmetric, in [0, 1], constraints as they are."""
    X, y = problem.X, problem.y
    W = dense(constrained_graph(X, y, graph=graph, graph_neighbors=4, tree_depth=depth))
    assert (W == W.T).all()
    assert (np.diag(W) == 0).all()
    assert np.isfinite(W).all()
    assert W.min() >= 0
    assert W.max() <= 1
    labeled = y >= 0
    same = y[:, None] == y[None, :]
    both = labeled[:, None] & labeled[None, :] & ~np.eye(len(y), dtype=bool)
    assert (W[both & same] == 1).all()
    assert (W[both & ~same] == 0).all()


@settings(max_examples=40, deadline=None)
@given(problem=problems(max_samples=40, ties=False), graph=st.sampled_from(GRAPHS))
def test_degrees_are_row_sums(problem, graph):
    built = built_graph(problem, graph, sigma=0.8)
    sums = dense(built.to_matrix()).sum(axis=1)
    np.testing.assert_allclose(
        np.exp(built.log_degrees()), np.where(sums > 0, sums, 1.0), rtol=1e-12
    )


def test_weights_that_no_float_holds_survive_as_logarithms():
    X = np.array([[0.0], [1.0], [500.0]])
    recipe = recipe_of(X, "union", k=1, depth=0, sigma=1.0)
    built = recipe.constrained(np.array([0, -1, -1]))
    assert built.to_matrix().toarray()[1, 2] == 0
    assert built.log_degrees()[2] == pytest.approx(-0.5 * 499**2)


def test_strengthening_keeps_weights_below_one():
    log_weight = np.log(np.linspace(1e-3, 1, 200))
    for level in (1, 2, 3):
        factor = np.exp(log_strengthening(log_weight, np.full(200, level), 0.999))
        assert (np.exp(log_weight) * factor <= 1 + 1e-12).all()
        assert (factor >= 1).all()
    assert log_strengthening(np.zeros(1), np.ones(1, dtype=int), 0.5)[0] == 0


def test_automatic_sigma():
    X = np.random.default_rng(0).normal(size=(80, 3))
    found = ExactIndex(X).among_samples(10)
    expected = oracles.sigma(X, oracles.nearest(X, 10))
    assert automatic_sigma(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 20, axis=0),
        np.eye(12),
        np.array([[0.0], [0.0], [0.0], [1.0]]),
        np.repeat([[0.0], [1.0]], 50, axis=0),
    ],
    ids=["duplicates", "all equally far", "few rows", "two points"],
)
def test_automatic_sigma_is_positive_where_the_rule_gives_zero(X):
    found = ExactIndex(X).among_samples(candidate_count("pruned", 3, len(X)))
    assert 0 < automatic_sigma(found) < np.inf


def test_row_logsumexp_with_empty_rows():
    matrix = sparse.csr_array(
        (np.array([0.0, -1e4, -1e4]), np.array([1, 0, 2]), np.array([0, 1, 1, 3])), shape=(3, 3)
    )
    expected = [0.0, -np.inf, -1e4 + np.log(2)]
    np.testing.assert_allclose(row_logsumexp(matrix), expected)


def test_bad_arguments():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.r_[0, 1, np.full(18, -1)]
    with pytest.raises(ValueError, match="graph='knn' must be one of 'pruned', 'union', 'full'"):
        constrained_graph(X, y, graph="knn")
    with pytest.raises(ValueError, match=r"sigma=0 must be a positive"):
        constrained_graph(X, y, sigma=0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        constrained_graph(X, y[:-1])
    with pytest.raises(ValueError, match="metrics offered"):
        constrained_graph(X, y, metric="nonsense")


@pytest.mark.parametrize("graph", ["full", "pruned"])
@pytest.mark.parametrize("sigma", [1e-200, 1e200, 1e308])
def test_any_sigma_a_float_holds(graph, sigma):
    X = np.random.default_rng(0).normal(size=(30, 2))
    W = constrained_graph(X, np.arange(30) % 3 - 1, graph=graph, sigma=sigma)
    W = W if graph == "full" else W.toarray()
    assert np.isfinite(W).all()
    if sigma > 1:
        assert set(np.unique(W)) <= {0.0, 1.0}
