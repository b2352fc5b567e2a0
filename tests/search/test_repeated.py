"""Equal rows are searched once, and found as if they had been searched one by one."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracles
from manifoldknn.search import repeated
from manifoldknn.search.engines import open_index
from manifoldknn.search.neighbors import ExactIndex
from manifoldknn.search.repeated import RepeatedIndex, equal_rows, many_equal

X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]] * 5)


@st.composite
def repeated_rows(draw, most=40):
    """A few points of a grid, so that distances tie, each several times, in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = np.unique(
        rng.integers(0, 4, (draw(st.integers(2, 8)), draw(st.integers(1, 3)))), axis=0
    )
    if len(kinds) == 1:
        kinds = np.concatenate([kinds, kinds + 3])
    counts = draw(st.lists(st.integers(1, most), min_size=len(kinds), max_size=len(kinds)))
    rows = rng.permutation(np.repeat(kinds, counts, axis=0))
    return rows.astype(draw(st.sampled_from([np.float32, np.float64])))


@settings(max_examples=100, deadline=None)
@given(repeated_rows(), st.integers(1, 40), st.sampled_from([np.asarray, sparse.csr_array]))
def test_lists_are_those_of_rows_searched_one_by_one(rows, k, form):
    n, held = len(rows), form(rows)
    first, kinds = equal_rows(held)
    index = RepeatedIndex(held, kinds, ExactIndex(held[first]))
    k = min(k, n - 1)
    found, one_by_one = index.among_samples(k), ExactIndex(held).among_samples(k)
    np.testing.assert_array_equal(found.indices, oracles.nearest(rows, k))
    np.testing.assert_array_equal(found.indices, one_by_one.indices)
    np.testing.assert_array_equal(found.distances, one_by_one.distances)
    Q = form(np.concatenate([rows[:5], rows[:5] + 0.5]))
    found, one_by_one = index.query(Q, k), ExactIndex(held).query(Q, k)
    np.testing.assert_array_equal(found.indices, one_by_one.indices)
    np.testing.assert_array_equal(found.distances, one_by_one.distances)


@given(repeated_rows())
def test_kinds_are_numbered_as_they_occur(rows):
    seen = {}
    numbers = [seen.setdefault(tuple(row), len(seen)) for row in rows.tolist()]
    for form in (np.asarray, np.asfortranarray, sparse.csr_array):
        first, kinds = equal_rows(form(rows))
        assert kinds.tolist() == numbers
        assert first.tolist() == [numbers.index(number) for number in range(len(seen))]


def test_zeros_have_no_sign_and_no_place():
    with_zeros = sparse.csr_array((np.array([0.0, 1.0, 1.0]), [0, 1, 1], [0, 2, 3]), shape=(2, 3))
    assert equal_rows(with_zeros)[1].tolist() == [0, 0]
    for rows in (X, np.tile(X, (1, 20)), sparse.csr_array(X)):
        first, kinds = equal_rows(rows)
        assert first.tolist() == [0, 2]
        assert kinds.tolist() == [0, 0, 1] * 5


def test_rows_of_one_sum_are_told_apart(monkeypatch):
    sums = repeated._sums
    monkeypatch.setattr(repeated, "_sums", lambda X, seed: sums(X, seed) * np.uint64(seed > 1))
    assert equal_rows(X)[1].tolist() == [0, 0, 1] * 5
    assert equal_rows(sparse.csr_array(X))[1].tolist() == [0, 0, 1] * 5


def test_few_copies_are_searched_as_ever():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9000, 2))
    assert many_equal(rows) is None
    assert many_equal(np.concatenate([rows, rows[:2000]])) is None
    assert isinstance(open_index(rows[:50], metric="euclidean", n_jobs=1, seed=0), ExactIndex)
    first, kinds = many_equal(np.concatenate([rows, rows]))
    assert (len(first), len(kinds)) == (9000, 18000)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "hamming"])
def test_only_distinct_rows_are_searched(metric, caplog):
    kinds = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [3.0, 1.0]])  # no two of one direction
    rows = kinds[np.random.default_rng(0).integers(0, 4, 300)]
    with caplog.at_level(logging.INFO, "manifoldknn"):
        index = open_index(rows, "auto", metric=metric, n_jobs=1, seed=0)
    assert "4 of 300 rows are distinct" in caplog.text
    assert index.is_exact
    assert index.n_samples == 300
    found = index.among_samples(20)
    assert (found.distances == 0).all()
    assert (rows[found.indices] == rows[:, None]).all()
    np.testing.assert_allclose(index.query(rows[:9], 20).distances, 0.0, atol=1e-15)


def test_a_function_may_keep_copies_apart():
    def strange(a, b):
        return 1.0 + np.abs(a - b).sum()

    assert isinstance(open_index(X, "exact", metric=strange, n_jobs=1, seed=0), ExactIndex)


def test_inverted_lists_of_distinct_rows():
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(400, 5))
    rows = kinds[rng.integers(0, 400, 4000)]
    index = open_index(rows, "inverted", metric="euclidean", n_jobs=1, seed=0)
    assert isinstance(index, RepeatedIndex)
    assert not index.is_exact
    found = index.among_samples(5)
    assert (found.indices != np.arange(4000)[:, None]).all()
    assert (found.distances == 0).mean() > 0.9
