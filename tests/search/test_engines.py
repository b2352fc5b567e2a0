import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.search.engines import automatic_engine, check_neighbors, open_index
from manifoldknn.search.growing import GrowingIndex
from manifoldknn.search.inverted import InvertedIndex
from manifoldknn.search.neighbors import ExactIndex


def labelled_blobs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 5)) + 3 * np.eye(3, 5)[truth]
    y = np.full(n, -1)
    for c in range(3):
        y[np.flatnonzero(truth == c)[:4]] = c
    return X, y


@pytest.mark.parametrize(
    ("X", "metric", "engine"),
    [
        (np.empty((1000, 784)), "euclidean", "exact"),
        (np.empty((20_000, 784), dtype=np.float32), "euclidean", "inverted"),
        (np.empty((20_000, 784), dtype=np.float32), "cosine", "inverted"),
        (np.empty((20_000, 784), dtype=np.float32), "manhattan", "exact"),
        (np.empty((200_000, 3)), "euclidean", "exact"),
        (sparse.csr_array((20_000, 784)), "euclidean", "exact"),
        (np.empty((20_000, 10)), max, "exact"),
    ],
)
def test_automatic_choice(X, metric, engine):
    assert automatic_engine(X, metric) == engine


def test_names():
    X, _ = labelled_blobs()
    arguments = {"metric": "euclidean", "n_jobs": None, "seed": 0}
    assert isinstance(open_index(X, "auto", **arguments), ExactIndex)
    assert isinstance(open_index(X, "exact", **arguments), ExactIndex)
    assert isinstance(open_index(X, "inverted", **arguments), InvertedIndex)


@pytest.mark.parametrize("form", ["pair", "pair with self", "sparse"])
def test_neighbours_brought_along_give_the_same_answer(form):
    X, y = labelled_blobs()
    expected = ManifoldKNNClassifier(neighbors="exact").fit(X, y)
    search = NearestNeighbors(n_neighbors=30).fit(X)
    if form == "pair":
        brought = search.kneighbors()[::-1]
    elif form == "pair with self":
        brought = search.kneighbors(X, n_neighbors=31)[::-1]
    else:
        brought = kneighbors_graph(X, 30, mode="distance")
    found = ManifoldKNNClassifier(neighbors=brought).fit(X, y)
    assert (found.transduction_ == expected.transduction_).all()
    np.testing.assert_allclose(found.label_distributions_, expected.label_distributions_, atol=1e-6)
    new = X[:20] + 0.01
    assert (found.predict(new) == expected.predict(new)).all()


def test_inverted_lists_in_the_classifier():
    X, y = labelled_blobs(2000)
    exact = ManifoldKNNClassifier(neighbors="exact").fit(X, y)
    found = ManifoldKNNClassifier(neighbors="inverted", random_state=1).fit(X, y)
    again = ManifoldKNNClassifier(neighbors="inverted", random_state=1).fit(X, y)
    assert (found.transduction_ == exact.transduction_).mean() > 0.97
    assert (found.label_distributions_ == again.label_distributions_).all()
    unlabeled = y < 0
    assert (found.predict(X)[unlabeled] == found.transduction_[unlabeled]).all()


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        ("annoy", "must be one of 'auto', 'exact', 'inverted'"),
        (3, "neighbors of type int is not understood"),
        ((np.zeros((300, 5)), np.zeros((300, 5))), "of type tuple is not understood"),
        ((np.zeros((10, 5), int), np.zeros((10, 5))), "for each of the 300 rows"),
        ((np.full((300, 12), 400), np.zeros((300, 12))), "rows from 0 to 299"),
        ((np.ones((300, 12), int), np.full((300, 12), np.nan)), "finite distances"),
        ((np.ones((300, 4), int), np.zeros((300, 4))), "bring more neighbours or lower"),
        (sparse.csr_array(np.tri(300)), "equally many distances in every row"),
    ],
)
def test_bad_neighbours_are_refused_before_heavy_work(brought, message):
    X, y = labelled_blobs()
    with pytest.raises(ValueError, match=message):
        ManifoldKNNClassifier(neighbors=brought).fit(X, y)


def test_inverted_lists_need_dense_rows_and_a_metric_they_know():
    X, _ = labelled_blobs()
    for rows, metric in ((sparse.csr_array(X), "euclidean"), (X, "manhattan")):
        with pytest.raises(ValueError, match="use neighbors='exact'"):
            check_neighbors("inverted", rows, metric=metric, graph_neighbors=5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_copies_without_a_direction_are_not_near_each_other(form):
    """They were at distance 0 where copies were searched once, and at 1 elsewhere."""
    X = np.repeat(np.random.default_rng(0).normal(size=(9, 3)), 4, axis=0)
    X[8:20] = 0
    how = {"metric": "cosine", "n_jobs": 1, "seed": 0}
    found, other = (
        open_index(form(X), **how).among_samples(5),
        GrowingIndex(ExactIndex(form(X[:10]), metric="cosine")).appended(form(X[10:])).query(X, 5),
    )
    np.testing.assert_allclose(found.distances[8:20], 1.0)
    np.testing.assert_allclose(other.distances[8:20], 1.0)
    assert (found.distances[:8, 0] < 1e-12).all()
