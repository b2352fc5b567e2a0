"""How well rows lie among others, against loops over all pairs."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.extend.belonging import Belonging, belonging_of
from manifoldknn.extend.offmanifold import usual_limit
from manifoldknn.search.neighbors import ExactIndex, Neighbors

K = 7


def odd_by_loops(spacing, near, gaps):
    """Return o: the distance, by the mean gap around or the median of all if that is less."""
    known = [gaps[j] for j in near if gaps[j] > 0]
    typical = float(np.median([gap for gap in gaps if gap > 0]))
    return spacing / min(np.mean(known) if known else typical, typical)


def gaps_by_loops(X):
    out = []
    for x in X:
        apart = [float(np.sqrt(((x - other) ** 2).sum())) for other in X]
        out.append(min([d for d in apart if d > 0], default=0.0))
    return out


def nearest(X, Q, k, itself=False):
    order = [np.argsort(((X - q) ** 2).sum(axis=1), kind="stable") for q in Q]
    if itself:
        order = [row[row != i] for i, row in enumerate(order)]
    return np.array([row[:k] for row in order])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * np.repeat([0.1, 1.0, 3.0], 30)[:, None]
    X[7] = X[8] = X[9]
    return X


def fitted(X, lists=None, **params):
    index = ExactIndex(X, **params)
    lists = index.among_samples(20) if lists is None else lists
    return belonging_of(index, lists, brought=False)


def test_rows_of_a_model(rows):
    found, gaps = fitted(rows), gaps_by_loops(rows)
    np.testing.assert_allclose(found.gaps.values, gaps)
    near = nearest(rows, rows, K, itself=True)
    odd = np.array([odd_by_loops(gap, near[i], gaps) for i, gap in enumerate(gaps)])
    limit = 2 * usual_limit(odd / 2)
    assert found.limit == pytest.approx(limit)
    expected = [min(1.0, (limit / o) ** 4) for o in odd]
    np.testing.assert_allclose(found.values.values, expected)
    assert min(expected) < 1


def test_new_rows(rows):
    rng = np.random.default_rng(1)
    known, gaps = fitted(rows), gaps_by_loops(rows)
    Q = np.concatenate([rng.normal(size=(30, 3)) * 5, rows[:20]])
    near, z = nearest(rows, Q, K), rng.dirichlet(np.ones(K), size=50)
    z[30:] = np.eye(K)[0]
    spacings = np.array([np.sqrt(((q - rows[j[0]]) ** 2).sum()) for q, j in zip(Q, near)])
    found = known.of_new(z, near, spacings)
    for i in range(50):
        theirs = sum(z[i, a] * known.values.values[near[i, a]] for a in range(K))
        own = (known.limit / max(known.limit, odd_by_loops(spacings[i], near[i], gaps))) ** 4
        assert found[i] == pytest.approx(theirs * own)
    assert np.array_equal(found[30:], known.values.values[near[30:, 0]])  # to the last bit
    assert found[:30].min() < 0.1


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_gaps_are_those_that_reconstruction_goes_by(rows, metric):
    from sklearn.preprocessing import normalize

    found = fitted(rows, metric=metric)
    lists = ExactIndex(rows, metric=metric).among_samples(20)
    seen = normalize(rows) if metric == "cosine" else rows
    first = [
        next(j for j, d in zip(*both) if d > 0) for both in zip(lists.indices, lists.distances)
    ]
    expected = np.sqrt(((seen - seen[first]) ** 2).sum(axis=1))
    np.testing.assert_allclose(found.gaps.values, expected)


def test_distances_that_a_user_brings_are_not_believed(rows):
    lists = ExactIndex(rows).among_samples(20)
    squares = Neighbors(lists.indices, lists.distances**2)
    index = ExactIndex(rows)
    found = belonging_of(index, squares, brought=True)
    np.testing.assert_allclose(found.values.values, fitted(rows).values.values)


def test_copies_only_doubt_nobody():
    X = np.repeat([[0.0], [1.0], [2.0]], 40, axis=0)
    found = belonging_of(ExactIndex(X), ExactIndex(X).among_samples(20), brought=False)
    assert (found.values.values == 1).all()
    assert (found.of_new(np.eye(K)[:1], np.arange(K)[None], np.array([9.0])) == 1).all()


def test_rows_that_join(rows):
    known = fitted(rows)
    grown = known.joined_by(np.array([0.5]), np.array([0.25]))
    assert (len(known.values.values), len(grown.values.values)) == (90, 91)
    near = np.array([[90, 0, 1, 2, 3, 4, 5]])
    assert grown.of_new(np.eye(K)[:1], near, np.zeros(1)) == [0.25]
    assert grown.limit == known.limit


def test_unknown_doubts_nobody():
    known = Belonging.unknown(3).joined_by(np.array([1.0]), np.array([1.0]))
    assert (known.of_new(np.ones((1, 1)), np.array([[3]]), np.array([1e9])) == 1).all()


@pytest.mark.parametrize("neighbors", ["auto", "searcher", "lists"])
def test_who_brings_neighbours_gets_the_same_doubts(rows, neighbors):
    y = np.full(len(rows), -1)
    y[:4], y[40:44] = 0, 1
    search = NearestNeighbors(n_neighbors=31).fit(rows)
    given = {"auto": "auto", "searcher": search, "lists": search.kneighbors(rows)[::-1]}[neighbors]
    plain = ManifoldKNNClassifier().fit(rows, y)
    clf = ManifoldKNNClassifier(neighbors=given).fit(rows, y)
    both = (one.fitted_.belonging.values.values for one in (plain, clf))
    np.testing.assert_allclose(*both)


def test_a_stream_has_the_doubts_of_a_prediction(rows):
    y = np.full(len(rows), -1)
    y[:4], y[40:44] = 0, 1
    clf = ManifoldKNNClassifier().fit(rows, y)
    late = np.random.default_rng(2).normal(size=(12, 3)) * 6
    expected = clf.predict_proba(late)
    clf.partial_fit(late, refresh=False)
    np.testing.assert_allclose(clf.label_distributions_[90:], expected)
    assert np.array_equal(clf.predict_proba(late), clf.label_distributions_[90:])
    assert clf.fitted_.belonging.values.values[90:].min() < 0.1
