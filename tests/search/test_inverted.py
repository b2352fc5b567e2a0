import copy
import pickle

import numpy as np
import pytest

import manifoldknn.base.distances as distances
from manifoldknn.base.heap import return_spare_memory
from manifoldknn.search.inverted import RECALL, InvertedIndex
from manifoldknn.search.neighbors import ExactIndex


def recall(found, true):
    hits = [len(set(f) & set(t)) for f, t in zip(found.indices.tolist(), true.indices.tolist())]
    return np.mean(hits) / true.indices.shape[1]


def clustered(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, d))[rng.integers(0, 20, n)] + 0.3 * rng.normal(size=(n, d))


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(3000, 12)),
        clustered(3000, 100).astype(np.float32),
        np.random.default_rng(1).random((2500, 300)),
    ],
    ids=["gaussian", "clusters", "300 uniform columns"],
)
def test_recall_is_measured_and_reached_whatever_the_data(X):
    """Uniform columns have no leading components: then all of them are used."""
    index = InvertedIndex(X)
    found, true = index.among_samples(30), ExactIndex(X).among_samples(30)
    assert index.recall >= RECALL
    assert recall(found, true) == pytest.approx(index.recall, abs=0.02)
    assert not (found.indices == np.arange(len(X))[:, None]).any()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    # What was found is measured in all dimensions.
    difference = X[:, None, :] - X[found.indices]
    np.testing.assert_allclose(
        found.distances, np.sqrt((difference**2).sum(axis=2)), rtol=1e-4, atol=1e-6
    )


def test_same_answer_for_any_number_of_threads_and_one_seed():
    X = clustered(4000, 80)
    one, two = (InvertedIndex(X, n_jobs=jobs, seed=3).among_samples(10) for jobs in (1, 2))
    assert (one.indices == two.indices).all()
    assert (one.distances == two.distances).all()


def test_query_finds_a_sample_itself_and_matches_exact_search():
    X = clustered(3000, 70)
    index = InvertedIndex(X)
    found = index.query(X[:200], 5)
    assert (found.indices[:, 0] == np.arange(200)).all()
    assert (found.distances[:, 0] == 0).all()
    # Rows beside the samples are found as samples are; rows from elsewhere not as well.
    beside = X[:200] + 0.05 * np.random.default_rng(1).normal(size=(200, 70))
    for new, least in ((beside, 0.95), (clustered(200, 70, seed=9), 0.85)):
        assert recall(index.query(new, 10), ExactIndex(X).query(new, 10)) > least


def test_cosine():
    X = clustered(2500, 40)
    found = InvertedIndex(X, metric="cosine").among_samples(10)
    true = ExactIndex(X, metric="cosine").among_samples(10)
    assert recall(found, true) > 0.95
    assert np.isclose(found.distances[:, 0], true.distances[:, 0], atol=1e-5).mean() > 0.98


def test_rows_without_a_direction_are_one_away_from_all():
    X = clustered(900, 20)
    X[::9] = 0
    index = InvertedIndex(X, metric="cosine")
    for found in (index.among_samples(10), index.query(X, 10)):
        np.testing.assert_allclose(found.distances[::9], 1.0)
        assert not np.isin(found.indices[1::9], np.arange(0, 900, 9)).any()


def test_far_from_the_origin_in_double_precision():
    X = 1e6 + clustered(2000, 30)
    found, true = InvertedIndex(X).among_samples(10), ExactIndex(X).among_samples(10)
    assert recall(found, true) > 0.95
    assert np.isclose(found.distances[:, 0], true.distances[:, 0], rtol=1e-5).mean() > 0.98


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [2.0**90, 2.0**-90])
def test_squares_need_not_fit_into_single_precision(dtype, scale):
    X = clustered(800, 12).astype(dtype)
    usual, index = InvertedIndex(X), InvertedIndex((X * scale).astype(dtype))
    for ask in (lambda index: index.among_samples(6), lambda index: index.query(index.X[:40], 6)):
        found, expected = ask(index), ask(usual)
        assert (found.indices == expected.indices).all()
        np.testing.assert_allclose(found.distances / scale, expected.distances, rtol=1e-6)


def test_many_duplicates():
    X = np.repeat(np.random.default_rng(2).normal(size=(40, 20)), 50, axis=0)
    found = InvertedIndex(X).among_samples(30)
    assert (found.distances == 0).all()
    assert (found.indices != np.arange(2000)[:, None]).all()
    assert (found.indices // 50 == np.arange(2000)[:, None] // 50).all()


def test_lists_too_small_for_the_neighbours_asked_for():
    X = np.random.default_rng(3).normal(size=(400, 5))
    index = InvertedIndex(X)
    index._lists.nprobe = 1
    found = index.among_samples(150)
    assert np.isfinite(found.distances).all()
    assert all(len(set(row)) == 150 for row in found.indices.tolist())


def test_copies_and_pickles():
    X = clustered(1500, 30)
    index = InvertedIndex(X)
    expected = index.query(X[:50], 4)
    for other in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert (other.query(X[:50], 4).indices == expected.indices).all()


def test_released_lists_are_made_again_as_they_were():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(3000, 6)).astype(np.float32), rng.normal(size=(20, 6))
    index = InvertedIndex(X)
    before = index.query(Q.astype(np.float32), 5), index.among_samples(5)
    index.release()
    assert index._lists is None
    for found, again in zip(before, (index.query(Q.astype(np.float32), 5), index.among_samples(5))):
        np.testing.assert_array_equal(found.indices, again.indices)
        np.testing.assert_array_equal(found.distances, again.distances)


def test_released_lists_of_many_columns_are_made_again_as_they_were():
    X = clustered(3000, 80).astype(np.float32)
    index = InvertedIndex(X)
    before, probes = index.among_samples(5), index._lists.nprobe
    return_spare_memory()
    assert index._lists is None
    again = index.among_samples(5)
    assert index._lists.nprobe == probes
    np.testing.assert_array_equal(before.indices, again.indices)


def test_more_columns_than_rows():
    rng = np.random.default_rng(4)
    X = rng.random((300, 500)).astype(np.float32)
    index = InvertedIndex(X)
    assert index.recall >= RECALL
    assert recall(index.among_samples(30), ExactIndex(X).among_samples(30)) > 0.95


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_moved_scaled_and_cast_block_by_block(monkeypatch, metric, dtype):
    X = (3 + clustered(500, 20)).astype(dtype)
    X[7] = 0
    whole = InvertedIndex(X, metric=metric)._rows
    monkeypatch.setattr(distances, "_ROW_BYTES", 1000)
    np.testing.assert_array_equal(InvertedIndex(X, metric=metric)._rows, whole)
    if metric == "cosine":
        norms = np.linalg.norm(X.astype(float), axis=1)
        expected = X / np.where(norms > 0, norms, 1)[:, None]
    else:
        expected = X if dtype == np.float32 else X - X.mean(axis=0)
    np.testing.assert_allclose(whole, expected, rtol=1e-6, atol=1e-6)
