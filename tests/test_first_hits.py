"""Two ways to the labels that walkers meet first, against a dense solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.first_hits as module
import manifoldknn.hit_columns as columns_module
from manifoldknn.first_hits import HitProblem, Negligible, first_hits
from manifoldknn.hit_columns import columns_are_cheaper, hit_columns, share_that_counts
from manifoldknn.sorted_factor import SortedFactor


def problem_of(rng, n, n_labels, *, density=0.1, tired=0.05, decades=0.0, cut_off=0):
    """Walkers among n rows who end in a label, get tired, or never leave the first `cut_off`."""
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    W = W + W.T
    W[:cut_off, cut_off:] = W[cut_off:, :cut_off] = 0
    ends = rng.random((n, n_labels)) * (rng.random((n, n_labels)) < density)
    ends[:cut_off] = 0
    size = 10.0 ** (decades * rng.standard_normal(n))  # degrees over many decades
    W, ends = W * np.sqrt(size[:, None] * size), ends * size[:, None]
    d = W.sum(axis=1) + ends.sum(axis=1) + tired * size
    root = np.sqrt(d)
    A = np.eye(n) - W / (root[:, None] * root)
    factor = SortedFactor(sparse.csc_array(A))
    order = np.empty(n, dtype=int)
    order[factor.position] = np.arange(n)
    down = sparse.csr_array((ends / root[:, None])[order])
    H = np.linalg.solve(A, ends / root[:, None])[order]
    scale = H.sum(axis=1)
    scale[scale == 0] = 1.0
    return HitProblem.of(factor, down, np.log(scale)), H / scale[:, None]


def negligible_of(rng, n, share):
    least = 0.5 + rng.random(n)
    return Negligible(share, np.full(n, 1e-9), least, least * (1 + rng.random(n)))


def check(found, H, negligible, slack):
    hits, rows = found
    assert sorted(rows.tolist()) == list(range(len(H)))
    truth = H[rows]
    largest = truth.max(axis=1)
    below = negligible.share * np.maximum(negligible.floor, negligible.least * H.max(axis=1))
    below = (below / negligible.most)[rows]
    stored = np.zeros(H.shape, dtype=bool)
    stored[np.repeat(np.arange(len(H)), np.diff(hits.indptr)), hits.indices] = True
    error = np.abs(hits.toarray() - truth)
    rounding = 3e-5 * largest
    assert (error[stored] <= (slack * below + rounding)[np.nonzero(stored)[0]]).all()
    assert (error <= ((slack + 1) * below + rounding)[:, None]).all()
    assert hits.nnz == stored.sum()  # nothing twice


@settings(max_examples=120, deadline=None)
@given(
    n=st.integers(1, 90),
    n_labels=st.integers(1, 40),
    density=st.sampled_from([0.02, 0.1, 0.5]),
    tired=st.sampled_from([1e-3, 0.05, 1.0]),
    decades=st.sampled_from([0.0, 1.0, 20.0]),
    cut_off=st.integers(0, 10),
    share=st.sampled_from([1e-1, 1e-3, 1e-5]),
    panel=st.sampled_from([1, 4, 32]),
    chunk=st.sampled_from([3, 8192]),
    n_jobs=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_dense_solution(
    n, n_labels, density, tired, decades, cut_off, share, panel, chunk, n_jobs, seed
):
    rng = np.random.default_rng(seed)
    problem, H = problem_of(
        rng, n, n_labels, density=density, tired=tired, decades=decades, cut_off=min(cut_off, n)
    )
    negligible = negligible_of(rng, n, share)
    usual = module._PANEL, module._CHUNK
    module._PANEL, module._CHUNK = panel, chunk
    try:
        sparsely = first_hits(problem, negligible, most=10**5, n_jobs=n_jobs)
    finally:
        module._PANEL, module._CHUNK = usual
    if sparsely is not None:
        check(sparsely, H, negligible, module._ALLOWED)
    check(hit_columns(problem, negligible, most=10**5, n_jobs=n_jobs), H, negligible, 0.0)


def chain(n, n_labels, seed=0):
    """A sparse graph in which few labels count for a row: neighbours along a line."""
    rng = np.random.default_rng(seed)
    links = rng.random((2, n))
    W = sparse.diags_array([links[0, 1:], links[1, 2:]], offsets=[1, 2], shape=(n, n)).tocsr()
    W = W + W.T
    at = np.sort(rng.choice(n, n_labels, replace=False))
    ends = sparse.csr_array((np.ones(n_labels), (at, np.arange(n_labels))), shape=(n, n_labels))
    d = np.asarray(W.sum(axis=1)).ravel() + np.asarray(ends.sum(axis=1)).ravel() + 0.02
    half = sparse.diags_array(1 / np.sqrt(d))
    factor = SortedFactor(sparse.csc_array(sparse.eye_array(n) - half @ W @ half))
    order = np.empty(n, dtype=int)
    order[factor.position] = np.arange(n)
    down = sparse.csr_array(half @ ends)[order]
    H = factor.solve_sorted(down.toarray())
    scale = H.sum(axis=1)
    return HitProblem.of(factor, down, np.log(scale)), H / scale[:, None]


def test_where_few_labels_count_few_are_held():
    """The property above may give up; here it must not."""
    problem, H = chain(3000, 300)
    negligible = negligible_of(np.random.default_rng(0), 3000, 1e-3)
    found = first_hits(problem, negligible, most=200_000)
    assert found is not None
    check(found, H, negligible, module._ALLOWED)
    assert found[0].nnz < 0.1 * H.size


def test_too_large_an_error_is_noticed_and_mended(monkeypatch):
    """What is left out on the way is bounded: if it is too much, less is left out."""
    problem, H = chain(2000, 200, seed=1)
    negligible = negligible_of(np.random.default_rng(1), 2000, 1e-3)
    monkeypatch.setattr(module, "INNER", 3.0)
    monkeypatch.setattr(module, "_FORWARD", 1.0)
    monkeypatch.setattr(module, "_ATTEMPTS", 1)
    assert first_hits(problem, negligible, most=10**6) is None
    monkeypatch.setattr(module, "_ATTEMPTS", 3)
    found = first_hits(problem, negligible, most=10**6)
    assert found is not None
    check(found, H, negligible, module._ALLOWED)


@pytest.mark.parametrize("solve", [first_hits, hit_columns])
def test_no_more_is_held_than_was_said(solve):
    problem, _ = chain(1000, 200)
    negligible = negligible_of(np.random.default_rng(0), 1000, 1e-3)
    hits, _ = solve(problem, negligible, most=10**6)
    assert solve(problem, negligible, most=hits.nnz // 2) is None


def test_threads_change_nothing(monkeypatch):
    problem, _ = chain(3000, 300)
    negligible = negligible_of(np.random.default_rng(0), 3000, 1e-3)
    monkeypatch.setattr(module, "_CHUNK", 50)
    one, two = (first_hits(problem, negligible, most=10**6, n_jobs=j) for j in (1, 2))
    assert (one[0] != two[0]).nnz == 0
    assert (one[1] == two[1]).all()


def test_the_cheaper_way_is_chosen(monkeypatch):
    rng = np.random.default_rng(3)
    few, H = chain(6000, 1500)
    many, _ = problem_of(rng, 60, 50, density=0.5)
    negligible = negligible_of(rng, 6000, 1e-3)
    assert not columns_are_cheaper(few, negligible)
    assert columns_are_cheaper(many, negligible_of(rng, 60, 1e-3))
    monkeypatch.setattr(columns_module, "_SAMPLE", 6000)
    below = [negligible.below(slice(i, i + 1), row.max())[0] for i, row in enumerate(H)]
    counts = (H / np.array(below)[:, None]) >= module.INNER
    assert share_that_counts(few, negligible) == pytest.approx(counts.mean(), rel=1e-3)
