"""The graph without labels: the same from samples and from a fitted classifier."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manifoldknn import ManifoldKNNClassifier, suggest
from manifoldknn.base.labels import encode_labels
from manifoldknn.insight.ground import bare_ground, walked_ground
from manifoldknn.insight.suggestions import uncertainty

NO_LINKS = {"must_link": None, "cannot_link": None}


@pytest.mark.parametrize("graph", ["pruned", "union", "full"])
@pytest.mark.parametrize("links", [NO_LINKS, {"must_link": [[3, 40]], "cannot_link": [[5, 6]]}])
def test_the_same_graph_with_labels_and_without(graph, links):
    X = np.random.default_rng(0).random((60, 3))
    y = np.where(np.arange(60) < 4, np.arange(60) % 2, -1)
    clf = ManifoldKNNClassifier(graph=graph).fit(X, y, **links)
    one, other = walked_ground(clf, uncertainty, None), bare_ground(clf, X, None, None, **links)
    for ground in (one, other):
        W = ground.graph.to_matrix()
        assert (W != W.T).sum() == 0
    difference = abs(one.graph.to_matrix() - other.graph.to_matrix())
    assert difference.max() < 1e-12
    assert one.labeled.tolist() == [0, 1, 2, 3]
    assert other.labeled.tolist() == []


def test_names_lengths_and_sparse_samples():
    X = np.random.default_rng(0).random((40, 3))
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(40)], columns=list("abc"))
    found = suggest(frame, 5)
    assert list(found) == [f"r{i}" for i in found.rows]
    assert list(suggest(frame, 5, index=range(100, 140))) == (100 + found.rows).tolist()
    np.testing.assert_array_equal(suggest(sparse.csr_array(X), 5).rows, found.rows)
    assert list(suggest(X.tolist(), 5)) == found.rows.tolist()
    with pytest.raises(ValueError, match="40 rows and 39 labels"):
        suggest(X, 5, y=[-1] * 39)
    with pytest.raises(ValueError, match="one name for each"):
        suggest(X, 5, index=range(39))
    with pytest.raises(ValueError, match="graph_neighbors"):
        suggest(X, 5, estimator=ManifoldKNNClassifier(graph_neighbors=0))


def test_too_much_memory_is_refused_beforehand(monkeypatch):
    X = np.random.default_rng(0).random((40, 3))
    clf = ManifoldKNNClassifier().fit(X, np.where(np.arange(40) < 4, np.arange(40) % 2, -1))
    monkeypatch.setenv("MANIFOLDKNN_MEMORY_GB", "0.001")
    for source in (X, clf):
        with pytest.raises(MemoryError, match="GB are free"):
            suggest(source, 5)


def test_labels_may_be_missing():
    assert encode_labels([None, ""], none=True).codes.tolist() == [-1, -1]
    assert len(encode_labels([-1, -1], none=True).classes) == 0
