"""Growing arrays and searches against plain concatenation."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn.search.growing import GrowingArray, GrowingIndex
from manifoldknn.search.inverted import InvertedIndex
from manifoldknn.search.neighbors import ExactIndex

FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
}


@given(steps=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), max_size=30))
def test_no_holder_ever_sees_a_change(steps):
    """Arrays grow from any earlier array, in any order; each is compared with a list."""
    holders = [(GrowingArray(np.arange(3)), [0, 1, 2])]
    for number, (chosen, count) in enumerate(steps):
        array, rows = holders[chosen % len(holders)]
        new = [100 * number + i for i in range(count)]
        holders.append((array.appended(np.array(new, dtype=int)), rows + new))
    for array, rows in holders:
        np.testing.assert_array_equal(array.values, rows)


def test_growing_by_one_row_is_cheap():
    """The buffer is renewed now and then, not every time."""
    array, buffers = GrowingArray(np.zeros((100, 2))), set()
    for _ in range(1000):
        array = array.appended(np.ones((1, 2)))
        buffers.add(id(array._buffer))
    assert len(array.values) == 1100
    assert len(buffers) < 20


def test_a_wider_type_is_taken_on():
    array = GrowingArray(np.array(["a", "b"])).appended(np.array(["long"]))
    assert array.values.tolist() == ["a", "b", "long"]
    assert array.appended(np.array(["x"])).values.tolist() == ["a", "b", "long", "x"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_leave_the_spare_room_behind(again):
    array = GrowingArray(np.zeros(1000)).appended(np.ones(1))
    moved = again(array)
    np.testing.assert_array_equal(moved.values, array.values)
    assert len(pickle.dumps(moved)) < 8 * 1001 + 500
    moved.appended(np.full(1, 2.0))
    assert array.appended(np.full(1, 3.0)).values[-1] == 3.0


def grown(X, n_first, chunk, form, metric="euclidean", engine=ExactIndex):
    index = GrowingIndex(engine(form(X[:n_first]), metric=metric))
    for start in range(n_first, len(X), chunk):
        index = index.appended(form(X[start : start + chunk]))
    return index


def assert_same(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-6, atol=1e-7)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(8, 60),
    d=st.sampled_from([1, 3, 12]),
    chunk=st.integers(1, 9),
    form=st.sampled_from(sorted(FORMS)),
    far=st.sampled_from([0.0, 1e3]),
)
def test_searches_as_one_over_all_rows(seed, n, d, chunk, form, far):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + far
    X[-2] = X[1]  # a repeated row among the late ones
    Q = np.concatenate([rng.normal(size=(40, d)) + far, X[-3:]])
    n_first = int(rng.integers(3, n - 2))
    index = grown(X, n_first, chunk, FORMS[form])
    whole = ExactIndex(FORMS[form](X))
    k = min(6, n - 1)
    assert index.n_samples == n
    assert_same(index.query(FORMS[form](Q), k), whole.query(FORMS[form](Q), k))
    assert_same(index.query(FORMS[form](Q[:2]), k), whole.query(FORMS[form](Q[:2]), k))
    assert_same(index.among_samples(k), whole.among_samples(k))
    chosen = rng.integers(0, n, 15)
    rows, expected = index.rows(chosen), FORMS[form](X)[chosen]
    if form == "sparse":
        rows, expected = rows.toarray(), expected.toarray()
        np.testing.assert_array_equal(index.X.toarray(), X)
    else:
        np.testing.assert_array_equal(index.X, FORMS[form](X))
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "chebyshev", "canberra"])
def test_other_metrics(metric):
    X = np.random.default_rng(0).normal(size=(80, 4))
    index, whole = grown(X, 50, 7, FORMS["float64"], metric), ExactIndex(X, metric=metric)
    assert_same(index.query(X[::3] + 0.1, 9), whole.query(X[::3] + 0.1, 9))
    assert_same(index.among_samples(12), whole.among_samples(12))


def test_lists_may_reach_beyond_the_first_search():
    """Lists that were made when some late rows were there already."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    before = ExactIndex(X[:70]).among_samples(10)
    index = grown(X, 50, 8, FORMS["float64"])
    assert_same(index.grown_lists(before, 10), ExactIndex(X).among_samples(10))


def test_late_rows_beside_an_approximate_search():
    X = np.random.default_rng(0).normal(size=(3000, 10)).astype(np.float32)
    index = grown(X, 2500, 100, FORMS["float32"], engine=InvertedIndex)
    found, true = index.query(X[2400:2700], 10), ExactIndex(X).query(X[2400:2700], 10)
    hits = [len(np.intersect1d(f, t)) for f, t in zip(found.indices, true.indices)]
    assert np.mean(hits) > 9.7
    assert (found.indices[100:, 0] == np.arange(2500, 2700)).all()  # exact among late rows


def test_growing_leaves_the_smaller_search_alone():
    X = np.random.default_rng(0).normal(size=(60, 3))
    small = grown(X[:50], 40, 5, FORMS["float64"])
    expected = small.query(X, 5)
    one, other = small.appended(X[50:]), small.appended(X[50:] + 9.0)
    assert_same(small.query(X, 5), expected)
    assert_same(one.query(X, 5), ExactIndex(X).query(X, 5))
    assert (other.query(X[50:] + 9.0, 1).indices[:, 0] == np.arange(50, 60)).all()


def test_crowded_once_a_quarter_was_added():
    first = GrowingIndex(ExactIndex(np.random.default_rng(0).normal(size=(8000, 2))))
    assert not first.is_crowded
    assert not first.appended(np.zeros((2000, 2))).is_crowded
    assert first.appended(np.zeros((2001, 2))).is_crowded
