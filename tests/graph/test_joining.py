import numpy as np
import pytest
from scipy import sparse

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.graph import joining
from manifoldknn.graph.edges import pruned_edges
from manifoldknn.graph.joining import (
    is_affordable,
    joined_parts,
    joining_edges,
    short_joining_edges,
)
from manifoldknn.graph.kernels import GRAPH
from manifoldknn.search.neighbors import ExactIndex


def far_clusters(seed=1, n_parts=12):
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(n_parts), rng.integers(31, 90, n_parts))
    centres = 50 * rng.normal(size=(n_parts, 4))
    return centres[parts] + 0.01 * rng.normal(size=(len(parts), 4)), parts


def equal(one, other):
    return all((a == b).all() for a, b in zip(one, other))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_exactly_the_shortest_edges_where_that_is_affordable(metric, form, monkeypatch):
    X, parts = far_clusters()
    X = form(X)
    assert equal(joined_parts(X, parts, metric=metric), joining_edges(X, parts, metric=metric))
    monkeypatch.setattr(joining, "EXACT_WORK", 0)
    short = short_joining_edges(X, parts, kernels=GRAPH, metric=metric)
    assert equal(joined_parts(X, parts, metric=metric), short)


def test_few_columns_do_not_make_pairs_cheap():
    for metric in ("euclidean", "cosine"):
        assert is_affordable(10_000, 90_000, 3, metric)
        assert not is_affordable(10_000, 110_000, 3, metric)
        assert is_affordable(10_000, 7_000, 700, metric)
        assert not is_affordable(10_000, 8_000, 700, metric)


@pytest.mark.parametrize("metric", ["manhattan", lambda x, y: abs(x - y).max()])
def test_pairs_cost_more_where_no_product_measures_them(metric):
    assert is_affordable(10_000, 12_000, 50, metric)
    assert not is_affordable(10_000, 13_000, 50, metric)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_large_problems_take_this_way_and_stay_connected(metric, monkeypatch):
    X, _ = far_clusters()
    lists = ExactIndex(X, metric=metric).among_samples(30)
    exact = pruned_edges(X, lists, 10, metric=metric)
    monkeypatch.setattr(joining, "EXACT_WORK", 0)
    short = pruned_edges(X, lists, 10, metric=metric)
    assert len(short[0]) == len(exact[0])
    assert exact[2].sum() <= short[2].sum() * (1 + 1e-9)
    assert short[2].sum() <= 1.05 * exact[2].sum()


@pytest.mark.filterwarnings("ignore:.*rows are so far from others:")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_labels_do_not_depend_on_threads(metric, monkeypatch):
    monkeypatch.setattr(joining, "EXACT_WORK", 0)
    X, parts = far_clusters()
    y = np.where(np.arange(len(X)) % 40 == 0, parts % 3, -1)
    one, two = (ManifoldKNNClassifier(metric=metric, n_jobs=n).fit(X, y) for n in (1, 2))
    assert (one.label_distributions_ == two.label_distributions_).all()
    assert not one.unreached_.any()
