"""Accuracy per row, against solutions in as many digits as it takes."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.label_columns import log_label_weights
from manifoldknn.walk.normalized import NormalizedGraph
from manifoldknn.walk.reduction import reduced_graph


def exact_log_weights(log_weights, labeled, alpha):
    """log w̄ by Gaussian elimination in 80 digits with exponents of any size.

    Green's function of D - αW is symmetric, w̄_ij = g_ij (d_i + d_j) / 2. Without
    pivoting, elimination of such a matrix subtracts on the diagonal only, by a
    share of at most α: 80 digits stay about 80 digits.
    """
    n, columns = len(log_weights), len(labeled)
    with mpmath.workdps(80):
        W = [[mpmath.exp(v) if np.isfinite(v) else mpmath.mpf(0) for v in r] for r in log_weights]
        degrees = [sum(row) or mpmath.mpf(1) for row in W]
        M = [[-mpmath.mpf(alpha) * w for w in row] for row in W]
        B = [[mpmath.mpf(int(i == j)) for j in labeled] for i in range(n)]
        for i in range(n):
            M[i][i] += degrees[i]
        for p in range(n):
            for i in range(p + 1, n):
                ratio = M[i][p] / M[p][p]
                if ratio:
                    M[i] = [a - ratio * b for a, b in zip(M[i], M[p])]
                    B[i] = [a - ratio * b for a, b in zip(B[i], B[p])]
        for p in reversed(range(n)):
            for c in range(columns):
                known = sum(M[p][j] * B[j][c] for j in range(p + 1, n))
                B[p][c] = (B[p][c] - known) / M[p][p]
        out = np.full((n, columns), -np.inf)
        for i in range(n):
            for c, j in enumerate(labeled):
                if B[i][c] > 0:
                    out[i, c] = float(mpmath.log(B[i][c] * (degrees[i] + degrees[j]) / 2))
    return out


FORMS = ["sparse", "reduced", "factorized", "dense"]


def weights(graph, labeled, alpha, form="sparse", **accuracy):
    normalized = NormalizedGraph(graph)
    if form == "reduced":
        normalized = reduced_graph(normalized, labeled, alpha)
    elif form == "factorized":
        normalized = normalized.going(factorize=True)
    return log_label_weights(normalized, labeled, alpha, **accuracy)


def relative_error(log_found, log_exact):
    """Largest error of a weight relative to the largest weight of its row."""
    largest = log_exact.max(axis=1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    return np.abs(np.exp(log_found - shift) - np.exp(log_exact - shift)).max()


def clusters_on_a_line(sizes, log_gap, rng):
    """Dense clusters, each tied to the next by one edge of weight exp(log_gap)."""
    n = sum(sizes)
    log_weights = np.full((n, n), -np.inf)
    start = 0
    for size in sizes:
        block = np.log(rng.uniform(0.05, 1.0, (size, size)))
        block = np.minimum(block, block.T)
        log_weights[start : start + size, start : start + size] = block
        if start:
            i, j = start - 1, start + int(rng.integers(size))
            log_weights[i, j] = log_weights[j, i] = log_gap
        start += size
    np.fill_diagonal(log_weights, -np.inf)
    return log_weights


def as_graph(log_weights, form):
    n = len(log_weights)
    alone = np.full(n, -1, dtype=np.intp)
    if form == "dense":
        return ConstrainedGraph(log_weights, alone)
    i, j = np.nonzero(np.isfinite(log_weights))
    return ConstrainedGraph(sparse.csr_array((log_weights[i, j], (i, j)), shape=(n, n)), alone)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decades", [12, 60, 250, 700])
def test_clusters_behind_gaps(decades, form):
    """Labels only in the first cluster; behind each gap weights fall by `decades` decades."""
    rng = np.random.default_rng(decades)
    log_weights = clusters_on_a_line([8, 7, 9], -decades * np.log(10), rng)
    labeled = np.array([0, 3, 5])
    exact = exact_log_weights(log_weights, labeled, 0.99)
    largest = exact.max(axis=1)
    assert largest.max() - largest.min() > 1.8 * decades * np.log(10)
    for tol in (ManifoldKNNClassifier().tol, 1e-4):
        found = weights(as_graph(log_weights, form), labeled, 0.99, form, tol=tol, max_iter=1000)
        assert found.converged
        assert relative_error(found.log_values, exact) <= tol
        assert (found.log_values.argmax(axis=1) == exact.argmax(axis=1)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decades", [8, 60, 250, 700])
@pytest.mark.parametrize("labeled_outlier", [False, True])
def test_outliers(decades, form, labeled_outlier):
    """A sample far from all others walks straight to its nearest, however far that is."""
    rng = np.random.default_rng(decades)
    n = 14
    log_weights = clusters_on_a_line([n - 1], 0.0, rng)
    log_weights = np.pad(log_weights, ((0, 1), (0, 1)), constant_values=-np.inf)
    for i in range(n - 1):
        log_weights[i, -1] = log_weights[-1, i] = -decades * np.log(10) * (1 + i)
    labeled = np.array([2, 5, n - 1]) if labeled_outlier else np.array([2, 5])
    exact = exact_log_weights(log_weights, labeled, 0.99)
    found = weights(as_graph(log_weights, form), labeled, 0.99, form, tol=1e-4, max_iter=1000)
    assert found.converged
    assert relative_error(found.log_values, exact) <= 1e-4


@settings(max_examples=300, deadline=None)
@given(
    n=st.integers(3, 14),
    spread=st.sampled_from([1.0, 30.0, 300.0, 3000.0]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_weights_at_all(n, spread, tol, form, seed):
    """Random graphs with weights over any range: the error bound is kept."""
    rng = np.random.default_rng(seed)
    log_weights = -spread * rng.random((n, n)) ** 2
    log_weights[rng.random((n, n)) < 0.5] = -np.inf
    log_weights = np.maximum(log_weights, log_weights.T)
    np.fill_diagonal(log_weights, -np.inf)
    labeled = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    exact = exact_log_weights(log_weights, labeled, 0.99)
    found = weights(as_graph(log_weights, form), labeled, 0.99, form, tol=tol, max_iter=1000)
    reached = np.isfinite(exact).any(axis=1)
    assert (np.isfinite(found.log_values).any(axis=1) == reached).all()
    assert relative_error(found.log_values, exact) <= tol


@pytest.mark.parametrize("form", FORMS[:3])
def test_implicit_must_links_behind_a_gap(form):
    """Cliques between final and unfinished rows are part of the boundary."""
    rng = np.random.default_rng(5)
    log_weights = clusters_on_a_line([6, 6], -60 * np.log(10), rng)
    must_link = np.full(12, -1)
    must_link[[7, 9]] = 0
    must_link[[0, 1]] = 1
    labeled = np.array([0, 1])  # 7 and 9 only share a must-link, nobody walks to them
    explicit = log_weights.copy()
    for a, b in ((7, 9), (0, 1)):
        log_weights[a, b] = log_weights[b, a] = -np.inf
        explicit[a, b] = explicit[b, a] = 0.0
    graph = as_graph(log_weights, "sparse")
    graph = ConstrainedGraph(graph.log_weights, must_link)
    exact = exact_log_weights(explicit, labeled, 0.99)
    found = weights(graph, labeled, 0.99, form, tol=1e-8, max_iter=1000)
    assert relative_error(found.log_values, exact) <= 1e-8


def test_islands_are_unreached_and_alone_is_fine():
    log_weights = np.full((5, 5), -np.inf)
    log_weights[0, 1] = log_weights[1, 0] = 0.0
    log_weights[2, 3] = log_weights[3, 2] = 0.0
    for form in FORMS:
        graph = as_graph(log_weights, form)
        found = weights(graph, np.array([0, 4]), 0.99, form, tol=1e-6, max_iter=100)
        assert np.isneginf(found.log_values[2:4]).all()
        assert found.log_values[4].tolist() == [-np.inf, 0.0]  # a walker with nowhere to go
        assert np.isfinite(found.log_values[:2, 0]).all()


def test_too_few_iterations_are_told():
    rng = np.random.default_rng(6)
    graph = as_graph(clusters_on_a_line([30, 30], -1.0, rng), "sparse")
    found = weights(graph, np.array([0]), 0.999, tol=1e-10, max_iter=2)
    assert not found.converged
    assert not np.isnan(found.log_values).any()
