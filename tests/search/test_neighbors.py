import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise_distances

import manifoldknn.search.neighbors as neighbors_module
import oracles
from manifoldknn.base.distances import ANGULAR, EUCLIDEAN
from manifoldknn.search.growing import GrowingIndex
from manifoldknn.search.neighbors import METRICS, ExactIndex, check_metric
from manifoldknn.search.treesearch import TreeSearch


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.sampled_from([1, 2, 5, 20]),
    grid=st.booleans(),
    as_sparse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_sorting_all_distances(n, d, grid, as_sparse, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(float) if grid else rng.normal(size=(n, d))
    k = int(rng.integers(1, n))
    found = ExactIndex(sparse.csr_array(X) if as_sparse else X).among_samples(k)
    D = oracles.distance_matrix(X)
    assert not (found.indices == np.arange(n)[:, None]).any()
    assert all(len(set(row)) == k for row in found.indices.tolist())
    taken = np.take_along_axis(D, found.indices, axis=1)
    np.testing.assert_allclose(found.distances, taken, rtol=1e-12, atol=1e-15)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :k], rtol=1e-12, atol=1e-15)
    order = np.lexsort((found.indices, found.distances), axis=1)
    assert (order == np.arange(k)).all()
    if not grid:
        assert found.indices.tolist() == oracles.nearest(X, k)


@pytest.mark.parametrize("d", [3, 40])
def test_query_finds_a_sample_itself_first(d):
    X = np.random.default_rng(0).normal(size=(80, d))
    found = ExactIndex(X).query(X, 5)
    assert (found.indices[:, 0] == np.arange(80)).all()
    assert (found.distances[:, 0] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_the_origin(dtype):
    """Expanded squares would lose every digit here."""
    rng = np.random.default_rng(1)
    X = (1e5 + rng.normal(size=(120, 30))).astype(dtype)
    found = ExactIndex(X).among_samples(4)
    D = oracles.distance_matrix(X)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :4], rtol=1e-12)


def test_duplicates_are_at_distance_zero_and_more_than_asked_for():
    X = np.repeat(np.random.default_rng(2).normal(size=(3, 25)), 20, axis=0)
    found = ExactIndex(X).among_samples(5)
    assert (found.distances == 0).all()
    assert (found.indices != np.arange(60)[:, None]).all()
    assert (found.indices // 20 == np.arange(60)[:, None] // 20).all()


@pytest.mark.parametrize("metric", sorted(METRICS - EUCLIDEAN - {"correlation", "l1"}))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [6, 12])
def test_other_metrics(metric, dtype, d):
    """In single precision sums were taken in it; rows of zeros were not near each other."""
    X = np.abs(np.random.default_rng(3).normal(size=(50, d))) + 100.0 * (np.arange(50) % 3)[:, None]
    X[[4, 30]] = metric == "cosine"  # no direction otherwise
    X = X.astype(dtype)
    index = ExactIndex(X, metric=metric)
    found, asked = index.among_samples(7), GrowingIndex(index).appended(X[:9]).query(X, 3)
    D = pairwise_distances(X.astype(float), metric=metric)
    if metric == "braycurtis":
        D[4, 30] = D[30, 4] = 0.0  # 0/0 there
    np.testing.assert_allclose(asked.distances[:9, 1], 0.0, atol=1e-12)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :7], rtol=1e-9, atol=1e-12)
    assert (found.indices[[4, 30], 0] == [30, 4]).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [2.0**90, 2.0**-90])
def test_squares_need_not_fit_into_single_precision(form, scale):
    """Products overflowed, and neighbours were any rows."""
    X = np.random.default_rng(4).normal(size=(70, 23)).astype(np.float32)
    usual, index = ExactIndex(form(X)), ExactIndex(form(X * np.float32(scale)))
    for ask in (lambda index: index.among_samples(6), lambda index: index.query(index.X[:40], 6)):
        found, expected = ask(index), ask(usual)
        assert (found.indices == expected.indices).all()
        np.testing.assert_allclose(found.distances / scale, expected.distances, rtol=1e-12)


def test_callable_metric():
    X = np.random.default_rng(4).normal(size=(20, 3))
    found = ExactIndex(X, metric=lambda a, b: np.abs(a - b).max()).among_samples(3)
    expected = ExactIndex(X, metric="chebyshev").among_samples(3)
    assert (found.indices == expected.indices).all()


def test_same_for_any_number_of_jobs():
    X = np.random.default_rng(5).normal(size=(300, 20))
    one, two = (ExactIndex(X, n_jobs=jobs).among_samples(9) for jobs in (1, 2))
    assert (one.indices == two.indices).all()
    assert (one.distances == two.distances).all()


@pytest.mark.parametrize("metric", sorted(ANGULAR))
@pytest.mark.parametrize("d", [3, 40])
def test_angles_are_the_same_for_any_number_of_jobs_and_any_block(metric, d):
    """Products differ in the last bit with the shapes of their blocks, and with them ties."""
    rng = np.random.default_rng(6)
    X = np.abs(rng.normal(size=(700, d))).astype(np.float32)
    one, *more = (ExactIndex(X, metric=metric, n_jobs=jobs).among_samples(9) for jobs in (1, 2, 4))
    for other in more:
        assert (one.indices == other.indices).all()
        assert (one.distances == other.distances).all()
    index = ExactIndex(X, metric=metric)
    whole, few = index.query(X, 5), index.query(X[300:317], 5)
    assert (whole.distances[300:317] == few.distances).all()
    assert (whole.distances[:, 0] == 0).all()


@pytest.mark.parametrize("metric", sorted(ANGULAR))
def test_angles_against_their_definition(metric):
    X = np.random.default_rng(7).normal(size=(60, 4))
    X[20:30] = X[0] * (1 + 1e-9 * np.random.default_rng(8).normal(size=(10, 4)))
    found = ExactIndex(X, metric=metric).among_samples(59)
    for i in range(60):
        for j, distance in zip(found.indices[i], found.distances[i]):
            assert distance == pytest.approx(float(oracles.angle(X[i], X[j], metric)), rel=1e-6)


def test_rows_without_a_direction_are_one_away_from_all():
    X = np.random.default_rng(9).normal(size=(12, 3))
    X[[2, 7]] = 0
    found = ExactIndex(X, metric="cosine").among_samples(11)
    D = pairwise_distances(X, metric="cosine")
    taken = np.take_along_axis(D, found.indices, axis=1)
    np.testing.assert_allclose(found.distances, taken, atol=1e-12)
    lists = found.indices.tolist()
    for i in range(12):  # the same distance from both sides, or one of them would decide a tie
        for j, distance in zip(lists[i], found.distances[i]):
            assert distance == found.distances[j, lists[j].index(i)]
    assert found.indices[2].tolist() == [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    with pytest.raises(ValueError, match=r"says nothing of rows whose values are all equal"):
        ExactIndex(X, metric="correlation")


@pytest.mark.parametrize("k", [5, 7, 12])
def test_right_angles_and_rows_without_a_direction_are_told_apart_by_their_distance(k):
    """A right angle may come out as 1 + 2^-52: then a row of zeros is nearer, whoever is asked."""
    X = np.round(1.2 * np.random.default_rng(0).normal(size=(40, 2)))
    index = ExactIndex(X, metric="cosine")
    everyone = index.among_samples(39)
    found = index.among_samples(k)
    np.testing.assert_array_equal(found.indices, everyone.indices[:, :k])
    np.testing.assert_array_equal(found.distances, everyone.distances[:, :k])
    grown = GrowingIndex(ExactIndex(X[:8], metric="cosine")).appended(X[8:]).query(X, k + 1)
    asked = index.query(X, k + 1)
    np.testing.assert_array_equal(grown.indices, asked.indices)
    np.testing.assert_array_equal(grown.distances, asked.distances)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_a_metric_must_return_distances(wrong):
    X = np.random.default_rng(4).normal(size=(20, 3))
    metric = lambda a, b: wrong if a[0] < 0 < b[0] else np.abs(a - b).max()  # noqa: E731
    with pytest.raises(ValueError, match=r"returned (-1\.0|nan|inf): a distance must be finite"):
        ExactIndex(X, metric=metric).among_samples(3)
    index = GrowingIndex(ExactIndex(X[X[:, 0] > 0], metric=metric)).appended(X[X[:, 0] > 0])
    with pytest.raises(ValueError, match="a distance must be finite"):
        index.query(X[X[:, 0] < 0], 3)


@pytest.mark.parametrize("metric", ["no-such", 3, None, "precomputed", "mahalanobis"])
def test_unknown_metric_is_refused_with_the_offer(metric):
    with pytest.raises(ValueError, match=r"is not one of the metrics offered: .*euclidean"):
        check_metric(metric, is_sparse=False)


def test_metrics_for_sparse_samples():
    check_metric("cosine", is_sparse=True)
    with pytest.raises(ValueError, match="not available for sparse X"):
        check_metric("canberra", is_sparse=True)
    with pytest.raises(ValueError, match="callable cannot be used with sparse X"):
        check_metric(max, is_sparse=True)


def by_differences(X, Q, k, *, itself):
    """Neighbours from differences in double precision, equal ones by index."""
    lists = []
    for number, row in enumerate(Q.astype(float)):
        away = np.sqrt(np.square(X.astype(float) - row).sum(axis=1))
        if itself:
            away[number] = np.inf
        lists.append(np.lexsort((np.arange(len(X)), away))[:k])
    return np.array(lists)


def crowded(close, dtype, seed=0):
    """Clusters much narrower than their distance, which products of rows cannot see."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 10))[rng.integers(0, 8, 400)] + close * rng.normal(size=(400, 10))
    return X.astype(dtype)


def with_a_wild_value(dtype):
    X = np.random.default_rng(1).random((400, 10)).astype(dtype)
    X[17, 3] = 1e12
    return X


@pytest.mark.parametrize("search", ["tree", "flat", "brute"])
@pytest.mark.parametrize(
    "X",
    [
        crowded(1e-6, np.float64),
        crowded(1e-8, np.float64),
        crowded(1e-9, np.float64),
        crowded(1e-5, np.float32),
        with_a_wild_value(np.float64),
        with_a_wild_value(np.float32),
    ],
    ids=["1e-6", "1e-8", "1e-9", "single", "wild", "wild single"],
)
def test_every_exact_search_is_exact(monkeypatch, X, search):
    """Which of them runs may depend on the clock; the answer must not."""
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 100)
    monkeypatch.setattr(neighbors_module, "_FLAT_DIMENSIONS", 1 if search == "flat" else 99)
    monkeypatch.setattr(TreeSearch, "is_quicker", lambda *_: search == "tree")
    index = ExactIndex(X)
    assert (index._tree is not None) == (search == "tree")
    assert (index._flat is not None) == (search == "flat")
    ordinary = np.abs(X).max(axis=1) < 1e3  # from a wild one, all others are equally far
    found, expected = index.among_samples(9).indices, by_differences(X, X, 9, itself=True)
    assert (found[ordinary] == expected[ordinary]).all()
    Q = (3 * X[100:170] + X[170:240]) / 4  # nobody is as far from two
    expected = by_differences(X, Q, 6, itself=False)
    assert (index.query(Q, 6).indices == expected).all()
    assert (index.query(Q[:20], 6).indices == expected[:20]).all()


@pytest.mark.parametrize("search", ["tree", "brute"])
def test_rows_far_beyond_the_samples(monkeypatch, search):
    """Their squares overflow on the scale of the samples."""
    monkeypatch.setattr(neighbors_module, "_PARALLEL_ROWS", 10**9 if search == "brute" else 100)
    monkeypatch.setattr(TreeSearch, "is_quicker", lambda *_: True)
    rng = np.random.default_rng(2)
    X, Q = 1e-60 * rng.normal(size=(300, 10)), 1e96 * rng.normal(size=(50, 10))
    Q[:5] = X[:5]
    found = ExactIndex(X).query(Q, 4)
    assert (found.indices[:5, 0] == np.arange(5)).all()
    np.testing.assert_allclose(found.distances[5:, 0], np.linalg.norm(Q[5:], axis=1))
