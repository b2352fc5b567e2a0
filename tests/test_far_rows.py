"""Far rows against a dense solution, where numbers are still large enough for one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.far_rows as module
from manifoldknn.far_rows import arrivals_of_far_rows


def log_graph(rng, n, density, weak):
    """Logarithms of a symmetric S whose rows sum to at most 1, some edges weak."""
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    S *= np.where(rng.random((n, n)) < 0.5, np.exp(-weak), 1.0)
    S = S + S.T
    S /= max(1.0, S.sum(axis=1).max())
    coo = sparse.coo_array(S)
    return sparse.csr_array((np.log(coo.data), (coo.row, coo.col)), shape=(n, n)), S


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(2, 40),
    density=st.sampled_from([0.05, 0.2, 0.6]),
    weak=st.sampled_from([5.0, 35.0, 60.0]),
    share=st.floats(0.1, 0.9),
    alpha=st.sampled_from([0.3, 0.99]),
    large=st.sampled_from([1, 300]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_dense_solution(n, density, weak, share, alpha, large, seed):
    rng = np.random.default_rng(seed)
    log_s, S = log_graph(rng, n, density, weak)
    far = rng.random(n) < share
    log_values = rng.normal(size=n)
    log_values[rng.random(n) < 0.1] = -np.inf
    usual = module._LARGE
    module._LARGE = large
    try:
        arrivals, found = arrivals_of_far_rows(log_s, far, log_values, alpha)
    finally:
        module._LARGE = usual
    near = np.flatnonzero(~far)
    A = np.eye(far.sum()) - alpha * S[np.ix_(far, far)]
    parts = np.linalg.solve(A, alpha * S[np.ix_(far, near)] * np.exp(log_values[near]))
    v = parts.sum(axis=1)
    np.testing.assert_array_equal(found[near], log_values[near])
    seen = v > 1e-100
    assert np.isneginf(found[far][v == 0]).all()
    np.testing.assert_allclose(found[far][seen], np.log(v[seen]), rtol=1e-8, atol=1e-8)
    E = arrivals.toarray()
    assert not E[:, far].any()
    np.testing.assert_allclose(E[seen][:, near], parts[seen] / v[seen, None], atol=1e-6)
    assert np.diff(arrivals.indptr)[v == 0].max(initial=0) == 0


def test_logarithms_that_no_number_holds():
    """A chain of groups, each a million logarithms away from the last."""
    log_s = np.full((6, 6), -np.inf)
    for i, j, value in [(0, 1, -1e6), (1, 2, -1.0), (2, 3, -2e6), (3, 4, -1.0), (0, 4, -5e6)]:
        log_s[i, j] = log_s[j, i] = value
    matrix = sparse.csr_array(np.where(np.isneginf(log_s), 0.0, log_s))
    far = np.arange(6) > 0
    arrivals, found = arrivals_of_far_rows(matrix, far, np.zeros(6), 0.5)
    inside = np.linalg.inv(np.eye(2) - 0.5 * np.exp(-1) * (1 - np.eye(2)))
    first = -1e6 + np.log(0.5 * inside[:, 0])
    second = first[1] - 2e6 + np.log(0.5 * inside[:, 0])
    np.testing.assert_allclose(found[1:5], [*first, *second], rtol=1e-12)
    assert np.isneginf(found[5])
    assert arrivals.toarray()[:4, 0] == pytest.approx(1.0)


def test_too_many_far_rows_are_not_tried(monkeypatch):
    monkeypatch.setattr(module, "_MOST_ROWS", 3)
    log_s, _ = log_graph(np.random.default_rng(0), 10, 0.5, 1.0)
    assert arrivals_of_far_rows(log_s, np.arange(10) < 4, np.zeros(10), 0.5) is None
