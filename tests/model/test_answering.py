"""Answers to many rows: the same in chunks, and in memory that does not grow with them."""

import tracemalloc

import numpy as np
import pytest

import manifoldknn.extend.reconstruct as reconstruct_module
import manifoldknn.vote.similarities as similarities_module
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.exceptions import UnreachedWarning

CHUNK = 100e6  # bytes that a batch may take beside its rows and its answers


def fitted(d=6, n=400, **parameters):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    X = rng.normal(size=(n, d)) + 2.0 * truth[:, None]
    y = np.where(np.arange(n) < 30, truth, -1)
    return ManifoldKNNClassifier(**parameters).fit(X, y)


def peak_of_predicting(clf, n):
    Q = np.random.default_rng(1).normal(size=(n, clf.n_features_in_))
    tracemalloc.start()
    try:
        clf.predict(Q)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("d", "n"), [(6, 20_000), (300, 8_000)])
def test_a_big_batch_takes_a_chunk_of_memory(d, n):
    """Four times the rows, and no more than their answers on top: 9 bytes per row."""
    clf = fitted(d)
    small, big = peak_of_predicting(clf, n), peak_of_predicting(clf, 4 * n)
    assert big < CHUNK
    assert big - small < 3 * n * 40 + 5e6


@pytest.mark.slow
def test_a_million_rows():
    assert peak_of_predicting(fitted(), 1_000_000) < CHUNK


def test_chunks_do_not_show(monkeypatch):
    clf = fitted()
    Q = np.random.default_rng(1).normal(size=(500, 6)) * 3
    expected = clf.predict(Q), clf.predict_proba(Q)
    for name, value in (("_LEAST_ROWS", 7), ("_CHUNK_BYTES", 500), ("_MOST_ROWS", 100)):
        monkeypatch.setattr(similarities_module, name, value)
    monkeypatch.setattr(reconstruct_module, "_CHUNK_BYTES", 500)
    np.testing.assert_array_equal(clf.predict(Q), expected[0])
    np.testing.assert_allclose(clf.predict_proba(Q), expected[1], rtol=1e-12)


def test_unreached_rows_of_all_chunks_are_one_warning(monkeypatch):
    """An island without a label, asked about from several chunks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[30:] += 50
    y = np.full(60, -1)
    y[:4] = 0, 1, 0, 1
    with pytest.warns(UnreachedWarning):
        clf = ManifoldKNNClassifier(graph="union", graph_neighbors=5).fit(X, y)
    monkeypatch.setattr(similarities_module, "_LEAST_ROWS", 8)
    monkeypatch.setattr(similarities_module, "_MOST_ROWS", 8)
    with pytest.warns(UnreachedWarning, match=r"30 of 60 rows .* first is row 30") as record:
        answers = clf.predict(X)
    assert len(record) == 1
    np.testing.assert_array_equal(answers[:30], clf.transduction_[:30])
    clf.set_params(on_unreached="abstain")
    with pytest.warns(UnreachedWarning):
        shares = clf.predict_proba(X)
    np.testing.assert_array_equal(shares[30:], 0.5)
