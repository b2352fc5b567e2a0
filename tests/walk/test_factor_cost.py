import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu

from manifoldknn.graph.constrained import automatic_sigma
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.walk.factor_cost import factorization_pays, predicted_fill
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import Problem, built_graph, recipe_of


def graph_of(n, d, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    sigma = automatic_sigma(ExactIndex(X).among_samples(7))
    recipe = recipe_of(X, "pruned", k=10, depth=0, sigma=sigma)
    return NormalizedGraph(recipe.constrained(np.full(n, -1)))


def true_fill(graph):
    S = graph.log_s.copy()
    S.data = np.exp(S.data)
    matrix = sparse.csc_array(sparse.eye_array(graph.n_samples) - 0.99 * S)
    options = {"SymmetricMode": True}
    return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).L.nnz


@pytest.mark.parametrize(("n", "d"), [(20000, 2), (8000, 3), (5000, 5), (3000, 12)])
def test_the_prediction_is_right_within_a_factor_of_four(n, d):
    graph = graph_of(n, d)
    ratio = predicted_fill(graph, 0.99) / true_fill(graph)
    assert 1 / 4 < ratio < 4


def test_stops_as_soon_as_it_is_too_much():
    graph = graph_of(3000, 12)
    little = graph.log_s.nnz
    whole = predicted_fill(graph, 0.99)
    assert little < predicted_fill(graph, 0.99, enough=little) <= whole


def test_pays_for_flat_data_and_many_labels():
    flat, deep = graph_of(5000, 2), graph_of(3000, 12)
    assert factorization_pays(flat, 10, 0.9997)
    assert not factorization_pays(deep, 10, 0.9)
    assert not factorization_pays(flat, 1, 0.5)


def test_does_not_pay_where_very_many_rows_hang_on_a_few():
    def hanging(n):
        rows, hubs = np.repeat(np.arange(3, n), 3), np.tile([0, 1, 2], n - 3)
        W = sparse.coo_array((np.full(len(rows), -1.0), (rows, hubs)), shape=(n, n))
        return NormalizedGraph(ConstrainedGraph(sparse.csr_array(W + W.T), np.full(n, -1)))

    assert factorization_pays(hanging(500), 3, 0.9997)
    assert not factorization_pays(hanging(20_000), 3, 0.9997)


def test_a_dense_graph_is_not_for_it():
    X = np.random.default_rng(0).random((30, 2))
    graph = NormalizedGraph(built_graph(Problem(X, np.full(30, -1)), "full"))
    assert not factorization_pays(graph, 10, 0.99)


def test_crowded_graphs_are_not_looked_into():
    rng = np.random.default_rng(0)
    W = sparse.csr_array(np.triu(-rng.random((100, 100)), 1))
    graph = NormalizedGraph(ConstrainedGraph(sparse.csr_array(W + W.T), np.full(100, -1)))
    assert predicted_fill(graph, 0.99) == np.inf


def test_a_graph_whose_weights_all_vanish():
    """One unlabelled row far from a clique of labelled ones, whose edges are the only ones."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = np.zeros(10, dtype=int)
    y[1] = -1
    graph = NormalizedGraph(built_graph(Problem(X, y), "pruned", sigma=0.002))
    assert graph.log_s.nnz
    assert predicted_fill(graph, 0.5) == graph.log_s.nnz / 2
