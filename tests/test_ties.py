"""Data on grids, where many samples are equally far: ties are broken by row number, everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracles
from manifoldknn import ManifoldKNNClassifier, persist
from manifoldknn.graph import edges
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.products import SPARE
from manifoldknn.search.repeated import RepeatedIndex
from manifoldknn.vote.hidden import hidden_groups
from strategies import WAYS, forced, links_for

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


@st.composite
def copies(draw):
    """Kinds of rows, of which one has more copies than lists have places, and labels on any."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_kinds = draw(st.integers(2, 6))
    kinds = rng.choice(12, n_kinds, replace=False)[:, None] // [1, 4] * 1.0
    counts = [draw(st.integers(32, 40)), *rng.integers(1, 9, n_kinds - 1)]
    X = rng.permutation(np.repeat(kinds, counts, axis=0))
    y = np.full(len(X), -1)
    labeled = rng.choice(len(X), draw(st.integers(3, 9)), replace=False)
    y[labeled] = np.append([0, 1], rng.integers(0, 2, len(labeled) - 2))
    return X, y


@settings(max_examples=25, deadline=None)
@given(st.data(), copies(), st.sampled_from(WAYS), st.sampled_from(["pruned", "union"]))
@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.UnreachedWarning")
def test_copies_are_answered_as_if_walked_one_by_one(data, repeated, way, graph):
    """Loops over all rows: copies with other labels, islands, links by hand, hidden labels."""
    X, y = repeated
    must, cannot = data.draw(links_for(y)) if data.draw(st.booleans()) else ((), ())

    def weights(codes, hidden=()):
        kept = ([p for p in pairs if not set(p) & set(hidden)] for pairs in (must, cannot))
        links = dict(zip(("must", "cannot"), kept))
        how = {"graph": graph, "k": 5, "sigma": 2.0, "depth": 2, "theta": 0.1}
        return oracles.constrained_graph(X, codes, **how, **links)

    true = oracles.densities_vote(weights, y, hidden_groups(y))
    clf = ManifoldKNNClassifier(graph=graph, graph_neighbors=5, sigma=2.0, tol=1e-9)
    with forced(way):
        clf.fit(X, y, must_link=must, cannot_link=cannot)
    assert isinstance(clf.fitted_.index.first, RepeatedIndex) == (
        len(X) >= 2 * len(np.unique(X, axis=0))
    )
    reached = true.f.sum(axis=1) > 0
    np.testing.assert_array_equal(reached, ~clf.unreached_)
    p = oracles.probabilities(true.f, true.prior, clf.sharpness_)
    usual = oracles.usual_density(true.hidden_f, y[true.hidden_rows])
    p = oracles.doubted(p, true.f, usual, clf.fitted_.belonging.values.values)
    np.testing.assert_allclose(clf.label_distributions_[reached], p[reached], rtol=1e-5)
    np.testing.assert_allclose(np.log(clf.sharpness_ / true.sharpness), 0, atol=1e-2)


def many_copies(n, seed=0):
    X = grid(3, 1, n, seed)
    y = np.full(n, -1)
    y[:9] = X[:9, 0] == 1
    y[9] = 1 - (X[9, 0] == 1)  # whose copies say otherwise
    return X, y


@pytest.mark.parametrize("vote", ["classes", "neighbors"])
def test_searched_by_others_copies_are_answered_alike(vote):
    X, y = many_copies(600)
    one_by_one = ExactIndex(X).among_samples(30)
    lists = one_by_one.indices, one_by_one.distances
    brought = ManifoldKNNClassifier(vote=vote, neighbors=lists).fit(X, y)
    clf = ManifoldKNNClassifier(vote=vote).fit(X, y)
    assert isinstance(clf.fitted_.index.first, RepeatedIndex)
    np.testing.assert_array_equal(clf.label_distributions_, brought.label_distributions_)
    np.testing.assert_array_equal(clf.transduction_, brought.transduction_)
    for mine, theirs in zip(clf.kneighbors(), brought.kneighbors()):
        np.testing.assert_array_equal(mine, theirs)


def test_copies_in_a_stream_and_in_a_file(tmp_path):
    X, y = many_copies(600)
    whole = ManifoldKNNClassifier().fit(X, y)
    stream = ManifoldKNNClassifier().fit(X[:300], y[:300])
    stream.partial_fit(X[300:450], refresh=False).partial_fit(X[450:], refresh=False).refresh()
    np.testing.assert_array_equal(stream.label_distributions_, whole.label_distributions_)
    persist.save(whole, tmp_path / "model.mknn")
    again = persist.load(tmp_path / "model.mknn")
    Q = np.array([[0.0], [0.4], [1.0], [2.0]])
    np.testing.assert_array_equal(again.predict_proba(Q), whole.predict_proba(Q))
    for model in (whole, again):
        model.set_labels([20, 21], [0, 1])
    fresh = ManifoldKNNClassifier().fit(X, np.concatenate([y[:20], [0, 1], y[22:]]))
    np.testing.assert_allclose(again.label_distributions_, whole.label_distributions_, atol=1e-6)
    np.testing.assert_allclose(again.label_distributions_, fresh.label_distributions_, atol=1e-3)


def test_twenty_thousand_copies_are_not_compared_with_each_other(monkeypatch):
    joined_parts, asked = edges.joined_parts, []

    def counted(X, *rest, **how):
        asked.append(len(X))
        return joined_parts(X, *rest, **how)

    monkeypatch.setattr(edges, "joined_parts", counted)
    X, y = many_copies(20_000)
    clf = ManifoldKNNClassifier().fit(X, y)
    assert asked == [3]
    assert clf.fitted_.walk.converged
    assert (clf.transduction_[10:] == (X[10:, 0] == 1)).all()
