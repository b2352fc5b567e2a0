"""Data on grids, where many samples are equally far: ties are broken by row number, everywhere."""

import numpy as np
import pytest
from scipy import sparse

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.products import SPARE

GRIDS = [(2, 10, 300), (3, 6, 300), (4, 3, 300)]  # values, columns, rows


def grid(values, columns, rows, seed=0):
    return np.random.default_rng(seed).integers(0, values, (rows, columns)).astype(float)


def literal(Q, X, k, itself):
    away = np.sqrt(np.square(Q[:, None, :] - X[None, :, :]).sum(axis=2))
    if itself:
        np.fill_diagonal(away, np.inf)
    everyone = np.broadcast_to(np.arange(len(X)), away.shape)
    return np.lexsort((everyone, away), axis=1)[:, :k]


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_lists_are_those_of_distance_and_number(shape, form):
    X, Q = grid(*shape), grid(*shape, seed=1)[:50]
    index = ExactIndex(form(X))
    assert len(X) > 10 + SPARE + 1
    assert (index.among_samples(10).indices == literal(X, X, 10, True)).all()
    assert (index.query(form(Q), 10).indices == literal(Q, X, 10, False)).all()
    one_by_one = [index.query(form(Q[[i]]), 10).indices[0] for i in range(20)]
    assert (np.array(one_by_one) == literal(Q[:20], X, 10, False)).all()


def test_other_metrics_too():
    X = grid(3, 6, 200)
    away = np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    everyone = np.broadcast_to(np.arange(200), away.shape)
    expected = np.lexsort((everyone, away), axis=1)[:, :7]
    assert (ExactIndex(X, metric="manhattan").among_samples(7).indices == expected).all()


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("graph", ["pruned", "union"])
@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.UnreachedWarning")
def test_a_refreshed_model_equals_a_fit(shape, graph):
    X = grid(*shape)
    y = np.where(np.arange(len(X)) < 12, (X[:, 0] > 0).astype(int), -1)
    whole = ManifoldKNNClassifier(graph=graph, on_unreached="nearest")
    stream = ManifoldKNNClassifier(graph=graph)
    whole.fit(X, y)
    stream.fit(X[:200], y[:200])
    for start in range(200, 300, 25):
        stream.partial_fit(X[start : start + 25], refresh=False)
    stream.refresh()
    assert (whole.transduction_ == stream.transduction_).all()
    np.testing.assert_allclose(whole.label_distributions_, stream.label_distributions_, atol=1e-9)
