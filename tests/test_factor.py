import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.voters as voters_module
import manifoldknn.walk as walk_module
import oracles
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.factorized_walk import FactorizedWalk
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.precision import single_precision_serves
from manifoldknn.sorted_factor import _heights
from manifoldknn.voters import nearest_labeled
from strategies import built_graph, problems


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    alpha=st.sampled_from([0.5, 0.99]),
)
def test_equals_the_plain_inverse(problem, graph, alpha):
    built = built_graph(problem, graph)
    labeled = np.flatnonzero(problem.y >= 0)
    expected = oracles.walk_weights(built.to_matrix().toarray(), alpha)[:, labeled]
    largest = expected.max(axis=1, keepdims=True)
    visible = largest.ravel() > 1e-8  # below, a plain inverse is wrong itself
    normalized = NormalizedGraph(built)
    for dtype, accuracy in ((np.float64, 1e-9), (np.float32, 1e-4)):
        if dtype == np.float32 and not single_precision_serves(normalized.log_degrees, accuracy):
            continue  # nobody asks for it then
        found = FactorizedWalk(normalized, alpha, dtype).weights(labeled)
        assert found.dtype == dtype
        difference = np.abs(found - expected)[visible] / largest[visible]
        assert difference.max() <= accuracy


def many_labels(n=900, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 6)) + 2.5 * np.eye(4, 6)[truth]
    y = np.where(rng.random(n) < 0.4, truth, -1)
    return X, y, truth


@pytest.mark.parametrize(("tol", "at_once"), [(1e-4, True), (1e-7, False)])
def test_both_ways_choose_the_same_voters_with_the_same_weights(monkeypatch, tol, at_once):
    """In single precision on one scale, or in levels, if single precision does not do."""
    X, y, _ = many_labels()
    graph = ManifoldKNNClassifier().fit(X, y)._graph
    labeled = np.flatnonzero(y >= 0)
    direct, n_iter, _ = nearest_labeled(graph, labeled, 0.99, 20, tol=tol, max_iter=2000)
    assert (n_iter == 1) == at_once
    monkeypatch.setattr(walk_module, "factorization_pays", lambda *_: False)
    iterated, n_more, _ = nearest_labeled(graph, labeled, 0.99, 20, tol=1e-8, max_iter=2000)
    assert n_more > n_iter
    np.testing.assert_allclose(direct.weights, iterated.weights, atol=tol)
    np.testing.assert_allclose(direct.log_scale, iterated.log_scale, atol=tol)
    clear = iterated.weights[:, 4] - iterated.weights[:, 5] > 1e-5
    assert clear.mean() > 0.9
    assert (np.sort(direct.voters[clear, :5]) == np.sort(iterated.voters[clear, :5])).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_and_threads_change_nothing(monkeypatch, n_jobs):
    X, y, _ = many_labels()
    whole = ManifoldKNNClassifier().fit(X, y)
    monkeypatch.setattr(voters_module, "_FACTOR_BLOCK", 37)
    parts = ManifoldKNNClassifier(n_jobs=n_jobs).fit(X, y)
    assert (whole.transduction_ == parts.transduction_).all()
    np.testing.assert_allclose(whole.label_distributions_, parts.label_distributions_, atol=1e-5)


def test_weights_too_small_for_single_precision_are_computed_the_other_way():
    """Unlabelled rows far behind a gap still get the class of the near side."""
    X, y, _ = many_labels()
    sigma = ManifoldKNNClassifier().fit(X, y).sigma_
    far = X[:30] * 0.1 + 100 * sigma
    X, y = np.vstack([X, far]), np.append(y, np.full(30, -1))
    clf = ManifoldKNNClassifier(sigma=sigma).fit(X, y)
    assert clf.n_iter_ > 1
    assert not clf.unreached_.any()
    assert len(np.unique(clf.transduction_[-30:])) == 1


def test_islands_are_unreached():
    X, y, _ = many_labels()
    X, y = np.vstack([X, X[:30] * 0.1 + 1e3]), np.append(y, np.full(30, -1))
    clf = ManifoldKNNClassifier(graph="union", on_unreached="abstain")
    with pytest.warns(UserWarning, match="30 of 930 rows are connected to no labelled sample"):
        clf.fit(X, y)
    assert clf.n_iter_ == 1
    assert clf.unreached_.tolist() == [False] * 900 + [True] * 30


def test_entries_that_underflow_do_not_upset_the_order_of_rows():
    """Node 3 depends on node 0 only by way of a fill-in of 1e-320, which is not stored."""
    lower = sparse.csc_array(
        (
            [1.0, 0.5, 0.5, 1.0, 1.0, 0.5, 1.0],
            ([0, 1, 2, 1, 2, 3, 3], [0, 0, 0, 1, 2, 2, 3]),
        )
    )
    heights = _heights(lower)
    coo = lower.tocoo()
    off = coo.row != coo.col
    assert (heights[coo.row[off]] > heights[coo.col[off]]).all()


@settings(max_examples=100, deadline=None)
@given(n=st.integers(2, 30), density=st.floats(0.05, 0.9), seed=st.integers(0, 2**32 - 1))
def test_every_node_is_above_those_it_depends_on(n, density, seed):
    """For any pattern of entries, also those that no factorisation has."""
    rng = np.random.default_rng(seed)
    pattern = np.tril(rng.random((n, n)) < density)
    np.fill_diagonal(pattern, True)
    heights = _heights(sparse.csc_array(pattern.astype(float)))
    row, column = np.nonzero(np.tril(pattern, -1))
    assert (heights[row] > heights[column]).all()
    assert heights.max() < n
