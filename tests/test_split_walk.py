import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.first_hits as hits_module
import manifoldknn.halves as halves_module
import manifoldknn.selection as selection_module
import manifoldknn.split_walk as split_module
import manifoldknn.voters as voters_module
import oracles
from manifoldknn import ManifoldKNNClassifier, constrained_graph
from manifoldknn.graph import automatic_sigma, build_graph
from manifoldknn.nearest import NearestLabeled
from manifoldknn.neighbors import ExactIndex
from manifoldknn.normalized import NormalizedGraph
from manifoldknn.split_walk import most_entries, split_walk
from manifoldknn.voters import nearest_labeled


def half_labeled(n, n_classes, share, seed, spread=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 3)) + spread * np.eye(max(3, n_classes), 3)[truth]
    y = np.where(rng.random(n) < share, truth, -1)
    return X, y


def built(X, y, *, graph="pruned", width=1.0):
    lists = ExactIndex(X).among_samples(min(30, len(X) - 1))
    return build_graph(
        X,
        lists,
        y,
        graph=graph,
        graph_neighbors=10,
        sigma=width * automatic_sigma(lists),
        tree_depth=2,
        theta=0.1,
        metric="euclidean",
    )


def check(found, truth, n_kept, tol):
    """Weights are within tol of the row's largest, and nobody clearly heavier is missing."""
    largest = truth.max(axis=1)
    visible = largest > 1e-8  # below, a plain inverse is wrong itself
    weights = np.take_along_axis(truth, found.voters.astype(np.intp), axis=1)
    error = np.abs(found.absolute_weights() - weights)[visible] / largest[visible, None]
    assert error.max() <= tol
    others = truth.copy()
    np.put_along_axis(others, found.voters.astype(np.intp), 0.0, axis=1)
    short = (others.max(axis=1) - weights.min(axis=1))[visible] / largest[visible]
    assert short.max() <= 2 * tol
    assert (np.diff(found.weights, axis=1) <= 0).all()
    for row in found.voters[visible]:
        assert len(set(row.tolist())) == n_kept


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(60, 200),
    n_classes=st.integers(1, 3),
    share=st.floats(0.4, 0.9),
    graph=st.sampled_from(["pruned", "union"]),
    width=st.sampled_from([0.5, 1.0, 3.0]),
    alpha=st.sampled_from([0.5, 0.99]),
    tol=st.sampled_from([1e-2, 1e-3, 1e-4]),
    n_kept=st.integers(1, 12),
    n_jobs=st.sampled_from([1, 2]),
    panel=st.sampled_from([1, 8, 256]),
    sparsely=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_plain_inverse(
    n, n_classes, share, graph, width, alpha, tol, n_kept, n_jobs, panel, sparsely, seed
):
    X, y = half_labeled(n, n_classes, share, seed)
    labeled = np.flatnonzero(y >= 0)
    W = built(X, y, graph=graph, width=width)
    usual = halves_module._MOST_LEAVING, split_module._ROWS, hits_module._PANEL
    usually_cheaper = split_module.columns_are_cheaper
    split_module.columns_are_cheaper = lambda *_: not sparsely
    # Fewer must-links than it is made for: the series takes more terms and is right all the same.
    halves_module._MOST_LEAVING, split_module._ROWS, hits_module._PANEL = 0.9, 50, panel
    try:
        found = split_walk(NormalizedGraph(W), labeled, alpha, n_kept, tol=tol, n_jobs=n_jobs)
    finally:
        halves_module._MOST_LEAVING, split_module._ROWS, hits_module._PANEL = usual
        split_module.columns_are_cheaper = usually_cheaper
    if found is None:
        return  # must-links are too few, or weights too small
    check(found, oracles.walk_weights(W.to_matrix().toarray(), alpha)[:, labeled], n_kept, tol)


def test_is_taken_where_half_is_labeled():
    """The property above returns early where this is not the way; here it is."""
    X, y = half_labeled(500, 3, 0.5, 0)
    labeled = np.flatnonzero(y >= 0)
    W = built(X, y)
    found = split_walk(NormalizedGraph(W), labeled, 0.99, 20, tol=1e-3)
    assert found is not None
    check(found, oracles.walk_weights(W.to_matrix().toarray(), 0.99)[:, labeled], 20, 1e-3)


def test_labels_without_must_links():
    """A class with one label has none."""
    X, y = half_labeled(400, 2, 0.5, 1)
    y[np.flatnonzero(y < 0)[:1]] = 2
    labeled = np.flatnonzero(y >= 0)
    W = built(X, y)
    found = split_walk(NormalizedGraph(W), labeled, 0.99, 10, tol=1e-3)
    assert found is not None
    check(found, oracles.walk_weights(W.to_matrix().toarray(), 0.99)[:, labeled], 10, 1e-3)
    lonely = int(np.flatnonzero(y[labeled] == 2)[0])
    assert (found.voters[:, 0] == lonely).any()


def test_rows_that_no_label_reaches():
    X, y = half_labeled(400, 2, 0.5, 2)
    X, y = np.vstack([X, X[:40] * 0.1 + 1e3]), np.append(y, np.full(40, -1))
    labeled = np.flatnonzero(y >= 0)
    found = split_walk(NormalizedGraph(built(X, y, graph="union")), labeled, 0.99, 8, tol=1e-3)
    assert found is not None
    assert np.isneginf(found.log_scale[-40:]).all()
    assert (found.weights[-40:] == 0).all()
    assert np.isfinite(found.log_scale[:-40]).all()


@pytest.mark.parametrize("sparsely", [True, False])
@pytest.mark.parametrize("distance", [8.0, 15.0, 24.0, 30.0, 33.0])
def test_rows_that_labels_hardly_reach(monkeypatch, distance, sparsely):
    """Rows far out have degrees and weights that no single precision holds as they are."""
    rng = np.random.default_rng(7)
    X, y = half_labeled(400, 2, 0.5, 7)
    lists = ExactIndex(X).among_samples(30)
    away = automatic_sigma(lists) * distance
    far = X[:12] * 0.02 + np.array([X[:, 0].max() + away, 0, 0])
    alone = np.array([[X[:, 0].min() - away, 0, 0], [0, X[:, 1].max() + 0.7 * away, 0]])
    X, y = np.vstack([X, far, alone]), np.append(y, np.full(14, -1))
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    labeled = np.flatnonzero(y >= 0)
    W = built(X, y)
    assert np.ptp(NormalizedGraph(W).log_degrees) > distance**2 / 3
    monkeypatch.setattr(split_module, "columns_are_cheaper", lambda *_: not sparsely)
    found = split_walk(NormalizedGraph(W), labeled, 0.99, 10, tol=1e-3)
    assert found is not None
    monkeypatch.setattr(voters_module, "split_walk", lambda *_, **__: None)
    monkeypatch.setattr(voters_module, "_at_once", lambda *_, **__: None)
    exact, _, _ = nearest_labeled(W, labeled, 0.99, len(labeled), tol=1e-9, max_iter=10_000)
    truth = np.zeros((len(X), len(labeled)))
    np.put_along_axis(truth, exact.voters.astype(np.intp), exact.weights, axis=1)
    relative = NearestLabeled(
        found.weights * np.exp(found.log_scale - exact.log_scale)[:, None],
        found.voters,
        np.zeros(len(X)),
    )
    check(relative, truth, 10, 1e-3)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tol": 1e-9}, "single precision does not do"),
        ({"share": 0.02}, "must-links are few"),
        ({"share": 1.0}, "no row is without them"),
        ({"width": 0.01}, "degrees leave single precision"),
    ],
)
def test_is_not_the_way(change, why):
    X, y = half_labeled(300, 3, change.get("share", 0.5), 3)
    W = built(X, y, width=change.get("width", 1.0))
    labeled = np.flatnonzero(y >= 0)
    tol = change.get("tol", 1e-3)
    assert split_walk(NormalizedGraph(W), labeled, 0.99, 2, tol=tol) is None, why


def test_is_not_the_way_from_some_of_the_linked_rows():
    X, y = half_labeled(300, 3, 0.5, 3)
    labeled = np.flatnonzero(y >= 0)
    assert split_walk(NormalizedGraph(built(X, y)), labeled[:-1], 0.99, 2, tol=1e-3) is None


def test_the_classifier_answers_alike_with_and_without(monkeypatch):
    """Where not all weights are kept; both ways are within tol, so votes are as good as equal."""
    X, y = half_labeled(900, 3, 0.5, 4)
    monkeypatch.setattr(voters_module, "_ENTRIES_KEPT", 1000)
    split = ManifoldKNNClassifier().fit(X, y)
    monkeypatch.setattr(voters_module, "split_walk", lambda *_, **__: None)
    plain = ManifoldKNNClassifier().fit(X, y)
    np.testing.assert_allclose(split.label_distributions_, plain.label_distributions_, atol=5e-3)
    assert (split.transduction_ == plain.transduction_).mean() > 0.995


def test_threads_and_blocks_change_nothing(monkeypatch):
    X, y = half_labeled(700, 3, 0.5, 5)
    labeled, W = np.flatnonzero(y >= 0), NormalizedGraph(built(X, y))
    whole = split_walk(W, labeled, 0.99, 9, tol=1e-3, n_jobs=1)
    threads = split_walk(W, labeled, 0.99, 9, tol=1e-3, n_jobs=2)
    assert (whole.voters == threads.voters).all()
    assert (whole.weights == threads.weights).all()
    monkeypatch.setattr(split_module, "_ROWS", 33)
    monkeypatch.setattr(selection_module, "_GROUPS", 3)
    parts = split_walk(W, labeled, 0.99, 9, tol=1e-3)
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=1e-5)


def test_constrained_graph_is_what_these_tests_build():
    """The graph of the public function has the same must-links."""
    X, y = half_labeled(60, 2, 0.5, 6)
    W = constrained_graph(X, y)
    same = (y[:, None] == y) & (y[:, None] >= 0)
    np.fill_diagonal(same, False)
    assert (W.toarray()[same] == 1).all()
    assert (built(X, y).to_matrix().toarray()[same] == 1).all()


def test_more_weights_than_memory_is_meant_for_are_walked_otherwise(monkeypatch):
    X, y = half_labeled(600, 2, 0.5, seed=3)
    labeled = np.flatnonzero(y >= 0)
    graph = NormalizedGraph(built(X, y))
    monkeypatch.setattr(split_module, "_MOST_ENTRIES", 0)
    assert split_walk(graph, labeled, 0.99, 5, tol=1e-3) is not None
    monkeypatch.setattr(split_module, "_LEAST_PER_ROW", 1)
    monkeypatch.setattr(split_module, "_MOST_PER_ROW", 1)
    for n_jobs in (1, 2):
        assert split_walk(graph, labeled, 0.99, 5, tol=1e-3, n_jobs=n_jobs) is None


def test_the_more_labels_the_more_weights_are_held():
    assert most_entries(1000, 500) == 1 << 22
    assert most_entries(10**6, 1000) == 64 * 10**6
    assert most_entries(10**6, 100) == 25 * 10**6
    assert most_entries(10**6, 5_000) == 128 * 10**6
    assert most_entries(10**6, 500_000) == most_entries(10**6, 10_000) == 256 * 10**6
