import numpy as np
import pytest
from scipy import sparse

import oracles
from manifoldknn import walk_weights
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.choose import chosen_alpha, chosen_way, prepared_graph
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import ReducedGraph


def test_the_way_is_chosen_by_what_a_factor_would_cost():
    """A chain is factorised, a thicket is not; both are right."""
    chain = sparse.diags_array([np.ones(299), np.ones(299)], offsets=[-1, 1]).tocsr()
    rng = np.random.default_rng(0)
    thicket = sparse.random_array((300, 300), density=0.1, rng=rng).tocsr()
    labeled = np.array([0, 150])
    for W, kind in ((chain, NormalizedGraph), (thicket + thicket.T, ReducedGraph)):
        log_weights = sparse.csr_array(W)
        log_weights.data = np.log(log_weights.data)
        graph = ConstrainedGraph(log_weights, np.full(300, -1))
        normalized = NormalizedGraph(graph)
        way = chosen_way(normalized, 0.9, n_columns=100)
        assert type(prepared_graph(normalized, labeled, 0.9, way)) is kind
        assert way.levels == ()
        expected = oracles.walk_weights(W.toarray(), 0.9)[:, labeled]
        found = walk_weights(W, labeled, 0.9, tol=1e-6)
        assert (np.abs(found - expected) <= 1e-6 * expected.max(axis=1, keepdims=True)).all()


def test_long_walks_over_many_rows_have_levels(monkeypatch):
    rng = np.random.default_rng(0)
    log_weights = sparse.random_array((400, 400), density=0.1, rng=rng).tocsr()
    graph = NormalizedGraph(ConstrainedGraph(log_weights + log_weights.T, np.full(400, -1)))
    monkeypatch.setattr("manifoldknn.walk.aggregates._COARSEST", 10)
    assert chosen_way(graph, 0.999, n_columns=3).levels == ()
    monkeypatch.setattr("manifoldknn.walk.choose.MANY_ROWS", 300)
    way = chosen_way(graph, 0.999, n_columns=3)
    assert way.name == "iterate"
    assert len(way.levels[0]) == 400
    assert chosen_way(graph, 0.99, n_columns=3).levels == ()


def test_the_way_and_its_reason_are_told(caplog):
    chain = sparse.diags_array([np.zeros(299), np.zeros(299)], offsets=[-1, 1]).tocsr()
    graphs = {
        "factorise": ConstrainedGraph(chain, np.full(300, -1)),
        "dense": ConstrainedGraph(np.zeros((5, 5)), np.full(5, -1)),
    }
    for name, graph in graphs.items():
        caplog.clear()
        with caplog.at_level("INFO", logger="manifoldknn"):
            way = chosen_way(NormalizedGraph(graph), 0.9, n_columns=100)
        assert way.name == name
        assert f"way of the walk: {name} ({way.reason})" in caplog.text


def test_a_graph_that_goes_a_way_is_another_one():
    graph = NormalizedGraph(ConstrainedGraph(np.zeros((5, 5)), np.full(5, -1)))
    assert graph.going(factorize=True).factorize
    assert not graph.factorize


@pytest.mark.parametrize(
    ("alpha", "vote", "n_labeled", "n", "expected"),
    [
        ("auto", "classes", 10, 1000, 0.997),
        ("auto", "classes", 1, 10**6, 1 - 3e-4),
        ("auto", "classes", 90, 100, 0.73),
        ("auto", "classes", 100, 100, 0.7),
        ("auto", "neighbors", 10, 1000, 0.99),
        (0.4, "classes", 10, 1000, 0.4),
        (0.4, "neighbors", 10, 1000, 0.4),
    ],
)
def test_alpha(alpha, vote, n_labeled, n, expected):
    assert chosen_alpha(alpha, vote, n_labeled, n) == pytest.approx(expected, abs=1e-12)
    if (alpha, vote) == ("auto", "classes"):
        assert expected == pytest.approx(oracles.alpha(n_labeled, n), abs=1e-12)
