"""Searchers that users bring give what our own exact search gives, or one clear error."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import (
    KNeighborsTransformer,
    NearestNeighbors,
    RadiusNeighborsTransformer,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from manifoldknn import ManifoldKNNClassifier, constrained_graph, persist
from manifoldknn.exceptions import MetricWarning
from manifoldknn.model_selection import SemiSupervisedSplit, TransductiveClassifier
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.user_searches import SearcherIndex, is_fitted, is_searcher, others, unfitted


class Plain:
    """Only transform, no base class of scikit-learn, and the row itself where it is a sample."""

    def __init__(self, n_neighbors=31):
        self.n_neighbors = n_neighbors
        self.fits = 0

    def fit(self, X):
        self.fits += 1
        self.samples_ = X
        return self

    def transform(self, X):
        away = pairwise_distances(X, self.samples_)
        near = np.argsort(away, axis=1, kind="stable")[:, : self.n_neighbors]
        rows = np.repeat(np.arange(len(near)), near.shape[1])
        values = np.take_along_axis(away, near, axis=1).ravel()
        return sparse.coo_array((values, (rows, near.ravel())), shape=away.shape)


class Ragged(BaseEstimator):
    """Like pynndescent: no n_features_in_, another name for the rows; more for some rows."""

    def __init__(self, least=31):
        self.least = least

    def fit(self, X):
        self.n_samples_fit = X.shape[0]
        self.index_ = Plain().fit(X)
        return self

    def transform(self, X):
        lists = []
        for row in range(X.shape[0]):
            self.index_.n_neighbors = self.least + row % 3
            lists.append(self.index_.transform(X[row : row + 1]))
        return sparse.vstack(lists).tocsr()


class Zeroless(Plain):
    """Leaves out what is at distance 0, and so the row itself."""

    def transform(self, X):
        graph = super().transform(X).tocsr()
        graph.eliminate_zeros()
        return graph


class Holed(BaseEstimator):
    """A kneighbors that knows nobody (-1) in its last place and is off by rounding."""

    def fit(self, X):
        self.search_ = NearestNeighbors().fit(X)
        return self

    def kneighbors(self, X, n_neighbors):
        distances, indices = self.search_.kneighbors(X, n_neighbors)
        indices[:, -1], distances[:, -1] = -1, np.nan
        return distances - 1e-9, indices


class Locked(Plain):
    """Cannot be cloned or copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


SEARCHERS = {
    "NearestNeighbors": NearestNeighbors,
    "KNeighborsTransformer": lambda: KNeighborsTransformer(n_neighbors=30, mode="distance"),
    "connectivity, but kneighbors": lambda: KNeighborsTransformer(mode="connectivity"),
    "pipeline": lambda: make_pipeline(
        FunctionTransformer(), KNeighborsTransformer(n_neighbors=30, mode="distance")
    ),
    "radius": lambda: RadiusNeighborsTransformer(radius=1e3),
    "plain": Plain,
    "ragged": Ragged,
    "zeroless": Zeroless,
}


def blobs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 5)) + 3 * np.eye(3, 5)[truth]
    y = np.full(n, -1)
    for c in range(3):
        y[np.flatnonzero(truth == c)[:4]] = c
    return X, y


def assert_same_answers(found, expected, X):
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=1e-6)
    for new in (X[:20] + 0.01, X[7:8] + 0.01):
        np.testing.assert_allclose(found.predict_proba(new), expected.predict_proba(new), atol=1e-6)


@pytest.mark.parametrize("fitted", [False, True], ids=["unfitted", "fitted"])
@pytest.mark.parametrize("kind", SEARCHERS)
def test_every_kind_of_searcher_gives_the_answers_of_exact_search(kind, fitted, monkeypatch):
    X, y = blobs()
    searcher = SEARCHERS[kind]()
    expected = ManifoldKNNClassifier(neighbors="exact").fit(X, y)
    if fitted:
        searcher.fit(X)
        monkeypatch.setattr(type(searcher), "fit", lambda *_: pytest.fail("fitted twice"))
    before = pickle.dumps(searcher)
    found = ManifoldKNNClassifier(neighbors=searcher).fit(X, y)
    assert_same_answers(found, expected, X)
    if fitted:
        assert found.fitted_.index.first._searcher is searcher
    else:
        assert pickle.dumps(searcher) == before  # the user's own is not touched


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(3, 40), k=st.integers(1, 12), itself=st.booleans(), grid=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_sparse_distances_of_any_form_are_read_as_they_are(n, k, itself, grid, seed):
    """Against a loop over the rows; grids have duplicates, whose distances are explicit zeros."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float) if grid else rng.normal(size=(n, 2))
    away = pairwise_distances(X)
    listed = [rng.permutation(n)[: rng.integers(2, n + 1)] for _ in range(n)]
    listed = [row if itself else row[row != i] for i, row in enumerate(listed)]

    class Fixed:
        def fit(self, _):
            return self

        def transform(self, _):
            counts = np.cumsum([0, *map(len, listed)])
            values = np.concatenate([away[i, row] for i, row in enumerate(listed)])
            return sparse.csr_array((values, np.concatenate(listed), counts), shape=(n, n))

    found = SearcherIndex(X, Fixed(), metric="euclidean").among_samples(k)
    rows = [sorted((away[i, j], j) for j in row if j != i)[:k] for i, row in enumerate(listed)]
    width = min(map(len, rows))
    assert found.indices.shape == (n, width)
    assert found.indices.tolist() == [[j for _, j in row[:width]] for row in rows]
    assert found.distances.tolist() == [[d for d, _ in row[:width]] for row in rows]


def test_places_where_an_approximate_search_found_nobody():
    X, _ = blobs(60)
    found = SearcherIndex(X, Holed(), metric="euclidean")
    exact = ExactIndex(X)
    lists = found.among_samples(6)
    np.testing.assert_array_equal(lists.indices, exact.among_samples(5).indices)
    assert (lists.distances >= 0).all()
    new = X + 0.1
    np.testing.assert_array_equal(found.query(new, 5).indices, exact.query(new, 5).indices)


def test_rows_that_are_classified_together_do_not_change_each_other():
    X, y = blobs()
    clf = ManifoldKNNClassifier(neighbors=Ragged(12)).fit(X, y)
    new = X[:9] + 0.01
    together = clf.predict_proba(new)
    np.testing.assert_array_equal(together[:1], clf.predict_proba(new[:1]))


# What does not fit.


@pytest.mark.parametrize(
    "kind", ["NearestNeighbors", "pipeline", "plain", "ragged", "radius", "zeroless"]
)
@pytest.mark.parametrize(
    "other",
    [
        lambda X: X[:200], lambda X: np.concatenate([X, X + 9]), lambda X: X[:, :4],
        lambda X: X[::-1], lambda X: 10 * X + 7,
    ],
    ids=["fewer rows", "more rows", "fewer columns", "another order", "another scale"],
)  # fmt: skip
def test_searchers_fitted_on_something_else_are_refused(kind, other):
    X, y = blobs()
    searcher = SEARCHERS[kind]().fit(other(X))
    with pytest.raises(ValueError, match=r"searcher that was fitted (on|so) .*pass it unfitted"):
        ManifoldKNNClassifier(neighbors=searcher).fit(X, y)


def test_duplicates_do_not_make_a_searcher_a_stranger():
    X, y = blobs(40)
    X, y = np.repeat(X, 20, axis=0), np.repeat(y, 20)
    searcher = NearestNeighbors()
    for rows in (X, sparse.csr_array(X)):
        clf = ManifoldKNNClassifier(neighbors=searcher.fit(rows)).fit(rows, y)
        assert clf.fitted_.index.first._searcher is searcher


@pytest.mark.parametrize(
    ("searcher", "message"),
    [
        (Plain(6), "found only 5 other rows for some row, but graph_neighbors=10: .* at least 11"),
        (Ragged(8), "found only 7 other rows"),
        (RadiusNeighborsTransformer(radius=1e-9), "found only 0 other rows"),
        (RadiusNeighborsTransformer(mode="connectivity"), "make it with mode='distance'"),
        (NearestNeighbors(metric="precomputed"), "precomputed distances"),
        (PCA(2), "of type PCA is no searcher: its transform must return a sparse"),
        (NearestNeighbors, "neighbors of type ABCMeta is not understood"),
        (Locked(), "can be neither cloned nor copied .*: fit it on the same X"),
    ],
    ids=lambda value: "" if isinstance(value, str) else getattr(value, "__name__", str(value)[:30]),
)
def test_one_error_that_says_what_to_do(searcher, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        ManifoldKNNClassifier(neighbors=searcher).fit(X, y)
    with pytest.raises(ValueError, match=message):
        constrained_graph(X, y, neighbors=searcher)


def test_similarities_are_no_distances():
    class Similar(Plain):
        def transform(self, X):
            return -super().transform(X)

    X, y = blobs()
    with pytest.raises(ValueError, match="negative or NaN"):
        ManifoldKNNClassifier(neighbors=Similar()).fit(X, y)


def test_what_is_not_of_scikit_learn_may_say_itself_whether_it_is_fitted():
    class Telling(Plain):
        def __sklearn_is_fitted__(self):
            return self.fits == 2

    searcher = Telling()
    assert not is_fitted(searcher.fit(np.eye(3)))
    assert is_fitted(searcher.fit(np.eye(3)))


def test_what_cannot_be_copied_serves_when_it_is_fitted():
    X, y = blobs()
    searcher = Locked().fit(X)
    clf = ManifoldKNNClassifier(neighbors=searcher).fit(X, y)
    assert searcher.fits == 1
    assert_same_answers(clf, ManifoldKNNClassifier().fit(X, y), X)


def test_a_searcher_without_fit_is_a_fitted_one():
    class Closed:
        def __init__(self, X):
            self.kneighbors = NearestNeighbors().fit(X).kneighbors

    X, y = blobs()
    clf = ManifoldKNNClassifier(neighbors=Closed(X)).fit(X, y)
    assert_same_answers(clf, ManifoldKNNClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="has no fit"):
        clf.partial_fit(X[:200] + 0.1, refresh=True)


def test_new_rows_near_which_it_finds_too_few_are_compared_with_all():
    X, y = blobs()
    clf = ManifoldKNNClassifier(neighbors=RadiusNeighborsTransformer(radius=8.0)).fit(X, y)
    new = np.concatenate([np.full((1, 5), 1e3), X[:3] + 0.01, [[-50.0, 0, 9, 9, 9]]])
    found, exact = clf.fitted_.index.query(new, 10), ExactIndex(X).query(new, 10)
    np.testing.assert_array_equal(found.indices, exact.indices)
    for rows in (new, new[:1]):
        expected = ManifoldKNNClassifier().fit(X, y).predict(rows)
        np.testing.assert_array_equal(clf.predict(rows), expected)


def test_a_searcher_fitted_again_behind_the_models_back_is_noticed():
    X, y = blobs()
    for searcher in (NearestNeighbors().fit(X), Plain().fit(X)):
        clf = ManifoldKNNClassifier(neighbors=searcher).fit(X, y)
        searcher.fit(np.concatenate([X + 50, X]))
        with pytest.raises(ValueError, match="searcher that was fitted on"):
            clf.predict(X[:3])


# Metrics.


@pytest.mark.parametrize(
    ("searcher", "metric"),
    [
        (NearestNeighbors(), "cosine"),
        (NearestNeighbors(metric="cosine"), "euclidean"),
        (NearestNeighbors(p=1), "euclidean"),
        (NearestNeighbors(p=3), "euclidean"),
        (NearestNeighbors(metric="sqeuclidean"), "euclidean"),
        (NearestNeighbors(metric=lambda a, b: abs(a - b).sum()), "euclidean"),
    ],
    ids=str,
)
@pytest.mark.parametrize("fitted", [False, True])
def test_another_metric_is_told_once(searcher, metric, fitted):
    X, y = blobs(90)
    searcher = clone(searcher).fit(X) if fitted else searcher
    with pytest.warns(MetricWarning, match="Give both the same metric") as told:
        ManifoldKNNClassifier(neighbors=searcher, metric=metric).fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__


def city(a, b):
    return abs(a - b).sum()


@pytest.mark.parametrize(
    ("searcher", "metric"),
    [
        (NearestNeighbors(metric="l2"), "euclidean"),
        (NearestNeighbors(), "minkowski"),
        (NearestNeighbors(p=1), "cityblock"),
        (NearestNeighbors(metric="manhattan"), "l1"),
        (NearestNeighbors(p=np.inf), "chebyshev"),
        (NearestNeighbors(metric="minkowski", metric_params={"p": 1}), "manhattan"),
        (NearestNeighbors(metric="cosine"), "cosine"),
        (NearestNeighbors(metric=city), city),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Parameter p is found in metric_params")
def test_the_same_metric_by_another_name(searcher, metric):
    """Warnings are errors here."""
    X, y = blobs(90)
    for one in (searcher, clone(searcher).fit(X)):
        clf = ManifoldKNNClassifier(neighbors=one, metric=metric).fit(X, y)
    expected = ManifoldKNNClassifier(metric=metric).fit(X, y)
    np.testing.assert_array_equal(clf.transduction_, expected.transduction_)


# In company.


def test_frames_and_sparse_rows():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = ManifoldKNNClassifier(neighbors=NearestNeighbors().fit(frame)).fit(frame, y)
    expected = ManifoldKNNClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.predict(frame[:9] + 0.01), expected.predict(X[:9] + 0.01))
    rows = sparse.csr_array(X)
    clf = ManifoldKNNClassifier(neighbors=NearestNeighbors().fit(rows)).fit(rows, y)
    np.testing.assert_array_equal(clf.transduction_, expected.transduction_)


def test_clone_parameters_and_grid_search():
    X, y = blobs()
    clf = ManifoldKNNClassifier(neighbors=KNeighborsTransformer(n_neighbors=30).fit(X))
    assert clf.get_params()["neighbors__n_neighbors"] == 30
    assert not is_fitted(clone(clf).neighbors)
    half = clone(clf).fit(X[:150], y[:150])  # a clone has forgotten X, and learns other rows
    assert half.set_params(neighbors__leaf_size=10).neighbors.leaf_size == 10
    for estimator, prefix in ((clf, ""), (TransductiveClassifier(clf), "estimator__")):
        search = GridSearchCV(
            estimator,
            {f"{prefix}sigma": [0.5, 1.0]},
            cv=SemiSupervisedSplit(2),
            error_score="raise",
        ).fit(X, y)
        assert search.best_score_ > 0.9


@pytest.mark.parametrize("make", [NearestNeighbors, Plain], ids=["kneighbors", "transform"])
@pytest.mark.parametrize("fitted", [False, True])
def test_growing_models_fit_a_copy(make, fitted):
    X, y = blobs(1500)
    searcher = make().fit(X[:1200]) if fitted else make()
    clf = ManifoldKNNClassifier(neighbors=searcher).fit(X[:1200], y[:1200])
    clf.partial_fit(X[1200:], y[1200:], refresh=False).refresh()
    assert_same_answers(clf, ManifoldKNNClassifier(neighbors="exact").fit(X, y), X)
    if fitted:  # the user's own is as it was
        assert len(searcher._fit_X if make is NearestNeighbors else searcher.samples_) == 1200


@pytest.mark.parametrize("make", [NearestNeighbors, Ragged])
def test_models_with_searchers_are_pickled_but_not_saved(make, tmp_path):
    X, y = blobs(90)
    clf = ManifoldKNNClassifier(neighbors=make().fit(X)).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X + 0.1), clf.predict_proba(X + 0.1))
    with pytest.raises(ValueError, match="a searcher, which cannot be saved"):
        persist.save(clf, tmp_path / "a.mknn")


def test_what_is_a_searcher():
    assert all(is_searcher(make()) for make in SEARCHERS.values())
    for other in ("exact", NearestNeighbors, pd.DataFrame(), sparse.eye_array(3), (1, 2), None):
        assert not is_searcher(other)
    assert not is_fitted(unfitted(NearestNeighbors().fit(np.eye(3))))


def test_samples_are_taken_from_their_own_lists():
    indices, distances = np.array([[1, 0, 2], [2, 0, 1], [1, 0, 2]]), np.array([[2.0, 0, 1]] * 3)
    found = others(indices, distances, 1)
    assert found.indices.tolist() == [[2], [0], [0]]
    assert found.distances.tolist() == [[1.0], [0.0], [0.0]]
