import numpy as np
import pytest

from manifoldknn.halves import Halves, can_be_halved
from manifoldknn.normalized import NormalizedGraph
from test_split_walk import built, half_labeled


def plain_a0(graph, alpha):
    """A₀ = I + αD_L⁻¹ - αS, written out."""
    S = np.zeros((graph.n_samples, graph.n_samples))
    coo = graph.log_s.tocoo()
    S[coo.row, coo.col] = np.exp(coo.data)
    diagonal = 1.0 + np.where(graph.group >= 0, alpha * np.exp(-graph.log_degrees), 0.0)
    return np.diag(diagonal) - alpha * S


@pytest.mark.parametrize("alpha", [0.3, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_solves_as_the_plain_matrix_does(alpha, seed):
    X, y = half_labeled(150, 2, 0.6, seed)
    graph = NormalizedGraph(built(X, y))
    rhs = np.random.default_rng(seed).random((150, 4))
    expected = np.linalg.solve(plain_a0(graph, alpha), rhs)
    np.testing.assert_allclose(Halves(graph, alpha).solve(rhs), expected, rtol=1e-10)


def test_hits_and_the_series_are_as_defined():
    X, y = half_labeled(120, 2, 0.6, 0)
    graph, alpha = NormalizedGraph(built(X, y)), 0.99
    halves = Halves(graph, alpha)
    A = plain_a0(graph, alpha)
    u, linked = halves.rows, halves.linked
    H = np.linalg.solve(A[np.ix_(u, u)], -A[np.ix_(u, linked)])
    N = -A[np.ix_(linked, u)] @ H - A[np.ix_(linked, linked)] + np.diag(halves.delta)
    x = np.random.default_rng(0).random((len(linked), 3))
    np.testing.assert_allclose(halves.hits_times(x), H @ x, rtol=1e-10)
    np.testing.assert_allclose(halves.n_times(x), N @ x, rtol=1e-10, atol=1e-18)


@pytest.mark.parametrize(("share", "expected"), [(0.5, True), (0.05, False), (1.0, False)])
def test_needs_many_must_links_and_rows_without(share, expected):
    X, y = half_labeled(400, 2, share, 1)
    assert can_be_halved(NormalizedGraph(built(X, y)), 0.99) == expected


def test_a_full_graph_is_not_halved():
    X, y = half_labeled(60, 2, 0.5, 1)
    assert not can_be_halved(NormalizedGraph(built(X, y, graph="full")), 0.99)


def test_column_sums_of_the_series():
    X, y = half_labeled(150, 3, 0.6, 4)
    graph, alpha = NormalizedGraph(built(X, y)), 0.99
    halves = Halves(graph, alpha)
    A = plain_a0(graph, alpha)
    linked = halves.linked
    inverse = np.linalg.inv(A)[np.ix_(linked, linked)] * halves.delta  # I + Δ⁻¹N + ...
    root = np.exp(0.5 * graph.log_degrees[linked])
    walkers = inverse * root / root[:, None]
    sums = walkers.sum(axis=0)
    assert sums.max() <= halves.largest_column_sum() <= 1.03 * sums.max()
