"""The graph's health, on graphs whose ills are known."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, inspect
from manifoldknn.insight.inspection import hops_from_labels

any_problem = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def test_hops_as_shortest_paths():
    rng = np.random.default_rng(0)
    for _ in range(20):
        W = sparse.csr_array(np.triu(rng.random((30, 30)) < 0.05, 1).astype(float))
        W = (W + W.T).tocsr()
        labeled = rng.choice(30, 3, replace=False)
        slow = csgraph.shortest_path(W, unweighted=True, indices=labeled).min(axis=0)
        np.testing.assert_array_equal(
            hops_from_labels(W, labeled), np.where(np.isinf(slow), -1, slow)
        )


def test_a_healthy_graph():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(len(X)) < 60, truth, -1)
    health = inspect(ManifoldKNNClassifier().fit(X / 16, y))
    assert health.n_components == 1
    assert sum(health.hops.values()) == health.n_rows == 1797
    assert health.hops[0] == health.n_labeled == 60
    assert 5 < health.intrinsic < 20
    assert health.ambient == 64
    assert not [line for line in health.advice if "sigma" in line]


@any_problem
def test_islands_without_labels():
    X = np.concatenate([np.arange(10.0), 1e3 + np.arange(6.0), 1e4 + np.arange(4.0)])[:, None]
    y = np.full(20, -1)
    y[[0, 2, 5, 9]] = 0, 0, 1, 1
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(20)], columns=["x"])
    union = inspect(ManifoldKNNClassifier(graph="union", graph_neighbors=2).fit(frame, y))
    assert union.n_components == 3
    assert [i["size"] for i in union.islands] == [10, 6, 4]
    assert [i["n_labeled"] for i in union.islands] == [4, 0, 0]
    assert union.islands[1]["example"] == "r10"
    assert union.hops[-1] == 10
    assert "10 rows are connected to no label" in union.advice[0]
    pruned = inspect(ManifoldKNNClassifier(graph_neighbors=2, sigma=1.0).fit(frame, y))
    assert pruned.n_components == 1
    assert pruned.n_unlabeled_islands == 2
    assert any("2 islands hang on weak edges" in line for line in pruned.advice)


def test_hubs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 50))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X = np.vstack([X, np.zeros(50)])  # nearer to every row than these are to each other
    y = np.full(401, -1)
    y[:4] = 0, 0, 1, 1
    health = inspect(ManifoldKNNClassifier(graph_neighbors=5).fit(X, y), index=np.arange(401) + 7)
    assert health.hubs[0] == {"id": 407, "count": 400}
    assert any("hubs" in line for line in health.advice)


@pytest.mark.parametrize(("sigma", "word"), [(1e4, "large"), (1e-3, "small")])
def test_advice_on_sigma(sigma, word):
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(300) < 60, truth[:300], -1)
    health = inspect(ManifoldKNNClassifier(sigma=sigma).fit(X[:300] / 16, y))
    assert any(f"is {word}" in line for line in health.advice)


@any_problem
@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("n_neighbors", [2, 10])
def test_the_automatic_sigma_is_never_large(n_columns, n_neighbors):
    """On a line the nearest neighbour weighs 0.99 with any sensible width."""
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(150, n_columns))
        y = np.where(np.arange(150) < 6, np.arange(150) % 2, -1)
        settings = {"graph_neighbors": n_neighbors}
        clf = ManifoldKNNClassifier(**settings).fit(X, y)
        assert not [line for line in inspect(clf).advice if "sigma" in line]
        for factor, found in ((2, 0), (5, 1)):
            wide = ManifoldKNNClassifier(sigma=factor * clf.sigma_, **settings).fit(X, y)
            assert sum("is large" in line for line in inspect(wide).advice) == found


@any_problem
def test_the_typical_weight_is_that_of_rows_that_differ():
    X = np.repeat(np.arange(10.0), 3)[:, None]
    y = np.where(np.arange(30) < 6, np.arange(30) // 3, -1)
    clf = ManifoldKNNClassifier(sigma=1.0, graph_neighbors=6, graph="union").fit(X, y)
    assert inspect(clf).typical_weight == pytest.approx(np.exp(-0.5))
    copies = ManifoldKNNClassifier(graph_neighbors=2, graph="union")
    copies.fit(np.repeat([[0.0], [5.0]], 3, axis=0), [0, -1, -1, 1, -1, -1])
    assert np.isnan(inspect(copies).typical_weight)


@any_problem
@pytest.mark.parametrize("wide", [1, 20])
def test_duplicates_and_contradictions(wide):
    X = np.repeat(np.array([[0.0], [1.0], [-0.0], [0.0], [3.0]]), wide, axis=1)
    for data in (X, sparse.csr_array(X)):
        health = inspect(ManifoldKNNClassifier(graph_neighbors=2).fit(data, [0, -1, 1, 0, -1]))
        assert health.n_duplicates == 2
        assert health.contradictions == [(0, 2)]
        assert "equal rows have different labels" in health.advice[0]


@any_problem
def test_full_graph_and_single_labels():
    X = np.random.default_rng(0).normal(size=(30, 2))
    health = inspect(ManifoldKNNClassifier(graph="full").fit(X, ["a", "b", "b"] + [""] * 27))
    assert health.n_edges == 30 * 29 / 2 - 2  # less the two cannot-links
    assert health.labels_per_class == {"a": 1, "b": 2}
    assert any("one label only (a): how often" in line for line in health.advice)


@any_problem
@pytest.mark.parametrize("sigma", ["auto", 100.0])
def test_advice_never_names_what_is_set_already(sigma):
    X = np.random.default_rng(0).random((60, 2))
    y = np.where(np.arange(60) < 6, np.arange(60) % 2, -1)
    clf = ManifoldKNNClassifier(sigma=100.0).fit(X, y)
    clf.sigma = sigma  # as if that width had been found
    advice = [line for line in inspect(clf).advice if "sigma" in line]
    assert "Try sigma=50" in advice[0]
    assert ("sigma='auto'" in advice[0]) == (sigma != "auto")


@any_problem
@pytest.mark.parametrize("graph", ["pruned", "union"])
def test_advice_and_the_graph(graph):
    X = np.concatenate([np.arange(10.0), 1e9 + np.arange(10.0)])[:, None]
    clf = ManifoldKNNClassifier(graph="union", graph_neighbors=2).fit(X, [0, 1] + [-1] * 18)
    clf.graph = graph
    advice = next(line for line in inspect(clf).advice if "connected to no label" in line)
    assert ("graph='pruned'" in advice) == (graph != "pruned")
