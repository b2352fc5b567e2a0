import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import oracles
from manifoldknn import constrained_graph, tired_random_walk, walk_weights
from strategies import problems

GRAPHS = ("pruned", "union", "full")


def test_dense_walk_is_the_sum_of_all_paths():
    rng = np.random.default_rng(0)
    W = rng.random((12, 12))
    W = (W + W.T) / 2
    P = W / W.sum(axis=1, keepdims=True)
    total, term = np.eye(12), np.eye(12)
    for _ in range(400):
        term = 0.9 * term @ P
        total += term
    np.testing.assert_allclose(tired_random_walk(W, 0.9), total, rtol=1e-10)
    np.testing.assert_allclose(tired_random_walk(sparse.csr_array(W), 0.9), total, rtol=1e-10)


def test_corrected_exponents_of_section_6_4():
    """P_TRW = D^-½ (I - αS)⁻¹ D^½; the paper has the exponents swapped."""
    rng = np.random.default_rng(1)
    W = rng.random((9, 9))
    W = W + W.T
    d = W.sum(axis=1)
    inverse = np.linalg.inv(np.eye(9) - 0.99 * W / np.sqrt(d[:, None] * d[None, :]))
    ours = tired_random_walk(W, 0.99)
    np.testing.assert_allclose(ours, inverse * np.sqrt(d[None, :] / d[:, None]), rtol=1e-10)
    assert np.abs(ours - inverse * np.sqrt(d[:, None] / d[None, :])).max() > 1e-3


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(GRAPHS),
    alpha=st.sampled_from([0.5, 0.99, 0.999]),
)
def test_weights_equal_the_plain_inverse(problem, graph, alpha):
    W = constrained_graph(problem.X, problem.y, graph=graph, graph_neighbors=5, sigma=0.7)
    labeled = np.flatnonzero(problem.y >= 0)
    weights = walk_weights(W, labeled, alpha, tol=1e-9)
    expected = oracles.walk_weights(W.toarray() if sparse.issparse(W) else W, alpha)[:, labeled]
    largest = expected.max(axis=1)
    # A plain inverse has absolute errors of its own; rows below them are checked elsewhere.
    visible = largest > 1e-8
    difference = np.abs(weights - expected)[visible] / largest[visible, None]
    assert difference.max() <= 1e-6


@pytest.mark.parametrize(
    ("W", "alpha", "message"),
    [
        (np.ones((2, 3)), 0.9, "square matrix"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), 0.9, "must be symmetric"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), 0.9, "finite, nonnegative"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), 0.9, "finite, nonnegative"),
        (sparse.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]])), 0.9, "must be symmetric"),
        (np.eye(2), 1.0, "alpha=1.0 must"),
        (np.eye(2), 1 - 1e-8, "alpha=0.99999999 is too near to 1"),
        (np.eye(2), "x", "alpha='x' must"),
        (np.zeros((0, 0)), 0.9, "square matrix"),
        (np.eye(2), 0.0, "alpha=0.0 must"),
    ],
)
def test_bad_arguments(W, alpha, message):
    with pytest.raises(ValueError, match=message):
        tired_random_walk(W, alpha)
    with pytest.raises(ValueError, match=message):
        walk_weights(W, [0], alpha)


@pytest.mark.parametrize("labeled", [[2], [-1], [0.5], [[0, 1]], [True]])
def test_bad_labeled(labeled):
    with pytest.raises(ValueError, match="labeled must hold row numbers from 0 to 1, or be a mask"):
        walk_weights(np.ones((2, 2)), labeled)


def test_a_mask_and_self_loops():
    W = np.array([[1.0, 0.5, 0.0], [0.5, 0.0, 0.2], [0.0, 0.2, 2.0]])
    expected = oracles.walk_weights(W, 0.9)[:, [0, 2]]
    for matrix in (W, sparse.csr_array(W)):
        for labeled in ([0, 2], np.array([True, False, True])):
            np.testing.assert_allclose(
                walk_weights(matrix, labeled, 0.9, tol=1e-9), expected, rtol=1e-7
            )


def test_an_unfinished_walk_is_told():
    rng = np.random.default_rng(0)
    W = rng.random((300, 300))  # so many neighbours that factorising does not pay
    W = sparse.csr_array(np.triu(W, 1) + np.triu(W, 1).T)
    with pytest.warns(ConvergenceWarning, match="raise tol, raise max_iter=1"):
        walk_weights(W, [0], max_iter=1)


@pytest.mark.parametrize("tol", [0, -1, 1, "x"])
def test_bad_tol(tol):
    with pytest.raises(ValueError, match="strictly between 0 and 1, such as 1e-3"):
        walk_weights(np.ones((2, 2)), [0], tol=tol)
