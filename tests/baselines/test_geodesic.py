"""Geodesic kNN against shortest paths by Floyd and Warshall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

import manifoldknn.baselines.geodesic as module
from manifoldknn.baselines import GeodesicKNNClassifier
from manifoldknn.exceptions import UnreachedError, UnreachedWarning
from oracles import distance_matrix, nearest

EXPECTED_FAILURES = {
    "check_classifiers_classes": "-1 is one of its classes; here it marks unlabelled rows"
}
QUIET = (
    "EverythingLabeledWarning",
    "OneClassWarning",
    "GraphSizeWarning",
    "UnreachedWarning",
)


@parametrize_with_checks(
    [GeodesicKNNClassifier()], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
@pytest.mark.filterwarnings(*(f"ignore::manifoldknn.exceptions.{name}" for name in QUIET))
def test_sklearn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings(*(f"ignore::manifoldknn.exceptions.{name}" for name in QUIET))
def test_the_expected_failure_is_only_about_the_marker():
    check_classifiers_classes("GeodesicKNNClassifier", GeodesicKNNClassifier(unlabeled=None))


def path_lengths(X, k):
    """All shortest paths over the graph in which one is among the other's k nearest."""
    D, n = distance_matrix(X), len(X)
    G = np.full((n, n), np.inf)
    np.fill_diagonal(G, 0)
    for i, others in enumerate(nearest(X, k)):
        for j in others:
            G[i, j] = G[j, i] = D[i, j]
    for m in range(n):
        G = np.minimum(G, G[:, m, None] + G[None, m, :])
    return G


def rows_and_labels(seed, n=30, duplicates=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    y = np.full(n, -1)
    rows = rng.choice(n, 8, replace=False)
    y[rows] = np.arange(8) % 3
    return X, y


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 10), st.booleans())
@pytest.mark.filterwarnings("ignore::manifoldknn.exceptions.UnreachedWarning")
def test_distances_and_answers_equal_the_oracle(seed, linked, k, duplicates):
    X, y = rows_and_labels(seed, duplicates=duplicates)
    clf = GeodesicKNNClassifier(k, graph_neighbors=linked).fit(X, y)
    G = path_lengths(X, linked)
    labeled = np.flatnonzero(y >= 0)
    k = min(k, len(labeled))
    distances, indices = clf.kneighbors()
    np.testing.assert_allclose(distances, np.sort(G[:, labeled], axis=1)[:, :k], atol=1e-12)
    assert ((indices == -1) == np.isinf(distances)).all()
    for i in range(len(X)):
        reached = indices[i][indices[i] >= 0]
        np.testing.assert_allclose(G[i, reached], distances[i][: len(reached)], atol=1e-12)
        assert len(set(reached.tolist())) == len(reached)
        votes = np.bincount(y[reached], minlength=3)
        if y[i] >= 0:
            assert clf.transduction_[i] == y[i]
        elif len(reached):
            assert clf.transduction_[i] == votes.argmax()
        else:
            assert clf.unreached_[i]
            near = labeled[np.argmin(distance_matrix(X)[i, labeled])]
            assert clf.transduction_[i] == y[near]


def test_blocks_change_nothing(monkeypatch):
    X, y = rows_and_labels(3)
    whole = GeodesicKNNClassifier(4, graph_neighbors=5).fit(X, y).kneighbors()
    monkeypatch.setattr(module, "_BLOCK", 3)
    for a, b in zip(whole, GeodesicKNNClassifier(4, graph_neighbors=5).fit(X, y).kneighbors()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(5))
def test_new_rows_go_through_the_neighbour_that_makes_it_shortest(seed):
    X, y = rows_and_labels(seed)
    clf = GeodesicKNNClassifier(4, graph_neighbors=6).fit(X, y)
    G = path_lengths(X, 6)
    labeled = np.flatnonzero(y >= 0)
    Q = np.random.default_rng(seed + 100).normal(size=(9, 2))
    distances, indices = clf.kneighbors(Q)
    for q, found, rows in zip(Q, distances, indices):
        away = np.linalg.norm(X - q, axis=1)
        near = np.argsort(away)[:6]
        length = (away[near, None] + G[np.ix_(near, labeled)]).min(axis=0)
        np.testing.assert_allclose(found, np.sort(length)[:4], atol=1e-12)
        np.testing.assert_array_equal(rows, labeled[np.argsort(length)[:4]])


def test_training_rows_asked_again_get_their_own_answer():
    X, y = rows_and_labels(1)
    clf = GeodesicKNNClassifier(3, graph_neighbors=6).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X)[y < 0], clf.transduction_[y < 0])
    np.testing.assert_allclose(clf.predict_proba(X), clf.label_distributions_)


class TestRowsThatNoPathReaches:
    """Two groups far apart, labels only in the first."""

    def rows(self):
        X = np.concatenate([np.linspace(0, 1, 10), np.linspace(50, 51, 10)])[:, None]
        y = np.full(20, -1)
        y[0], y[9] = 0, 1
        return X, y

    def test_nearest(self):
        X, y = self.rows()
        with pytest.warns(UnreachedWarning, match=r"10 of 20 rows .*first is row 10") as caught:
            clf = GeodesicKNNClassifier(1, graph_neighbors=2).fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert (clf.transduction_[10:] == 1).all()
        assert clf.unreached_.tolist() == [False] * 10 + [True] * 10
        assert (clf.transduction_[:5] == 0).all()
        with pytest.warns(UnreachedWarning, match="1 of 2 rows"):
            assert clf.predict([[0.1], [50.5]]).tolist() == [0, 1]

    def test_abstain(self):
        X, y = self.rows()
        with pytest.warns(UnreachedWarning, match="they stay unlabelled"):
            clf = GeodesicKNNClassifier(1, graph_neighbors=2, on_unreached="abstain").fit(X, y)
        assert (clf.transduction_[10:] == -1).all()
        np.testing.assert_array_equal(clf.label_distributions_[10:], 0.5)

    def test_raise_leaves_the_model_as_it_was(self):
        X, y = self.rows()
        clf = GeodesicKNNClassifier(1, graph_neighbors=2, on_unreached="raise")
        clf.fit(X[:10], y[:10])
        before = clf.transduction_
        with pytest.raises(UnreachedError, match="raise graph_neighbors"):
            clf.fit(np.hstack([X, X]), y)
        assert clf.transduction_ is before
        assert clf.n_features_in_ == 1
        np.testing.assert_array_equal(clf.predict(X[:10]), before)

    def test_fewer_reached_than_asked_for(self):
        X, y = self.rows()
        y[10] = 2
        clf = GeodesicKNNClassifier(3, graph_neighbors=2).fit(X, y)
        assert (clf.transduction_[10:] == 2).all()
        assert not clf.unreached_.any()


def test_strings_frames_and_sparse_rows():
    pd = pytest.importorskip("pandas")
    X, y = rows_and_labels(2)
    names = np.array(["a", "b", "c", None], dtype=object)[y]
    plain = GeodesicKNNClassifier(3, graph_neighbors=6).fit(X, y)
    frame = pd.DataFrame(X, columns=["u", "v"])
    named = GeodesicKNNClassifier(3, graph_neighbors=6).fit(frame, pd.Series(names))
    np.testing.assert_array_equal(
        named.transduction_, np.array(["a", "b", "c"])[plain.transduction_]
    )
    assert named.feature_names_in_.tolist() == ["u", "v"]
    sparsely = GeodesicKNNClassifier(3, graph_neighbors=6).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(sparsely.transduction_, plain.transduction_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"graph_neighbors": 1.5}, "graph_neighbors=1.5"),
        ({"on_unreached": "guess"}, "on_unreached='guess' must be one of 'nearest'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        GeodesicKNNClassifier(**options).fit([[0.0], [1.0], [2.0]], [0, -1, 1])
