"""Which labels decided: K_ij / (s_j n_c) / Σf against the dense loops."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracles
from manifoldknn import ManifoldKNNClassifier, constrained_graph, simplex_weights
from manifoldknn.vote import deciders
from manifoldknn.walk.choose import Way, prepared_graph
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import WAYS, built_graph, forced, problems

pytestmark = pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.ManifoldKNNWarning")


def oracle_parts(clf, X, y, **how):
    """What each label adds to each fitted row."""
    W = constrained_graph(X, y, **how)
    W = W.toarray() if sparse.issparse(W) else W
    return oracles.label_parts(oracles.walk_matrix(W, clf.alpha_), y)


def assert_shares(found, parts, clf):
    """Weights and voters of rows against all their parts, equal ones in any order."""
    weights, voters = found
    total = parts.sum(axis=1, keepdims=True)
    shares = parts / np.where(total > 0, total, 1.0)
    k = weights.shape[1]
    assert k == min(clf.n_neighbors, len(clf.labeled_indices_))
    expected = -np.sort(-shares, axis=1)[:, :k]
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    at = np.searchsorted(clf.labeled_indices_, voters)
    np.testing.assert_array_equal(clf.labeled_indices_[at], voters)
    np.testing.assert_allclose(np.take_along_axis(shares, at, axis=1), weights, atol=1e-6)
    assert all(len(set(row)) == k for row in voters.tolist())


@settings(max_examples=50, deadline=None)
@given(
    problems(max_samples=40),
    st.sampled_from(["pruned", "union", "full"]),
    st.sampled_from(WAYS),
    st.integers(1, 6),
    st.sampled_from([1, 5, 1 << 23]),
)
def test_shares_of_fitted_rows_of_new_ones_and_of_arrivals(problem, graph, way, k, entries):
    X, y = problem.X, problem.y
    how = {"graph": graph, "graph_neighbors": 4, "sigma": 0.7}
    rng = np.random.default_rng(len(X))
    chunks = [rng.normal(size=(m, X.shape[1])) for m in (3, 2)]
    new = np.concatenate([rng.normal(size=(2, X.shape[1])), X[:2]])
    with (
        forced(way),
        mock.patch.object(deciders, "_ENTRIES", entries),  # rows times labels held at a time
        mock.patch.object(deciders, "_BLOCK", 3),
    ):
        clf = ManifoldKNNClassifier(k, alpha=0.9, tol=1e-9, **how).fit(X, y)
        parts = oracle_parts(clf, X, y, **how)
        assert_shares(clf.kneighbors(), parts, clf)
        seen = X
        for chunk in chunks:
            parts = np.concatenate([parts, combined(clf, chunk, seen, parts)])
            clf.partial_fit(chunk, refresh=False)
            seen = np.concatenate([seen, chunk])
        assert_shares(clf.kneighbors(), parts, clf)
        assert_shares(clf.kneighbors(new), combined(clf, new, seen, parts), clf)
        assert_shares(clf.kneighbors(new[:1]), combined(clf, new[:1], seen, parts), clf)


def combined(clf, rows, seen, parts):
    """Parts of new rows: those of their neighbours, by the weights of equation 7."""
    near = clf.fitted_.index.query(rows, min(clf.graph_neighbors, len(seen))).indices
    return np.einsum("ij,ijl->il", simplex_weights(rows, seen[near]), parts[near])


def test_rows_that_nobody_reaches_have_no_shares():
    X = np.concatenate([np.arange(6.0), 1e3 + np.arange(6.0)])[:, None]
    clf = ManifoldKNNClassifier(2, graph="union", graph_neighbors=2)
    clf.fit(X, [0, 1] + [-1] * 10)
    weights, _ = clf.kneighbors()
    np.testing.assert_array_equal(weights[6:], 0.0)
    np.testing.assert_allclose(weights[:6].sum(axis=1), 1.0, rtol=1e-2)


@settings(max_examples=40, deadline=None)
@given(
    problems(max_samples=40),
    st.sampled_from(["pruned", "union", "full"]),
    st.sampled_from(["factorise", "iterate"]),
)
def test_columns_of_k_are_accurate_entry_by_entry(problem, graph, name):
    built = built_graph(problem, graph)
    W = built.to_matrix()
    K = oracles.walk_matrix(W.toarray() if sparse.issparse(W) else W, 0.95)
    normalized = NormalizedGraph(built)
    sources, rows = np.array([3, 0]), np.array([5, 1, 3])
    way = Way(name if normalized.is_sparse else "dense")
    ready = prepared_graph(normalized, sources, 0.95, way)
    found = np.exp(deciders.log_columns(ready, sources, rows, 0.95, tol=1e-9, max_iter=1000))
    np.testing.assert_allclose(found, K[np.ix_(rows, sources)], rtol=1e-7, atol=1e-300)
