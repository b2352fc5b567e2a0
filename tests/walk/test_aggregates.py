from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn.walk import aggregates as module
from manifoldknn.walk.aggregates import Preconditioner, aggregates, paired, restricted
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import Problem, built_graph, problems


def random_graph(seed, n, density):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return sparse.csr_array(upper + upper.T)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.2, 1.0]))
def test_groups_are_connected_and_who_has_neighbours_is_rarely_alone(seed, n, density):
    weights = random_graph(seed, n, density)
    group = paired(weights)
    assert set(group) == set(range(group.max() + 1))
    W = weights.toarray()
    for number in range(group.max() + 1):
        members = np.flatnonzero(group == number)
        count, _ = sparse.csgraph.connected_components(W[np.ix_(members, members)])
        assert count == 1
    # Rows that are each other's heaviest are together.
    for i in range(n):
        if W[i].any():
            j = W[i].argmax()
            if W[j].argmax() == i:
                assert group[i] == group[j]


def test_levels_shrink_until_few_are_left_and_labels_have_no_part():
    problem = Problem(np.random.default_rng(0).normal(size=(900, 2)), np.r_[0, 1, [-1] * 898])
    log_s = NormalizedGraph(built_graph(problem, "pruned")).log_s
    with mock.patch.object(module, "_COARSEST", 10):
        levels = aggregates(log_s)
    sizes = [len(level) for level in levels] + [levels[-1].max() + 1]
    assert sizes[0] == 900
    assert sizes[-1] <= 10
    assert all(after < 0.5 * before for before, after in pairwise(sizes))
    for level, size in zip(levels, sizes[1:]):
        assert level.max() + 1 == size
    assert aggregates(log_s) == ()  # fewer than a thousand need none


@settings(max_examples=30, deadline=None)
@given(
    problems(max_samples=50, min_classes=2),
    st.sampled_from([0.5, 0.99, 0.9997]),
    st.sampled_from([1, 4]),
)
def test_the_preconditioner_is_the_sum_of_its_levels(problem, alpha, coarsest):
    """Written out with dense matrices; symmetric and positive definite, links and all."""
    built = built_graph(problem, "pruned")
    normalized = NormalizedGraph(built)
    W, half = built.to_matrix().toarray(), 0.5 * normalized.log_degrees
    root = np.exp(half)
    A = np.eye(len(W)) - alpha * W / root[:, None] / root
    with (
        mock.patch.object(module, "_COARSEST", coarsest),
        mock.patch.object(module, "_SLOWEST", 1.0),
    ):
        levels = aggregates(normalized.log_s)
    s = normalized.log_s.copy()
    s.data = np.exp(s.data)
    linked = np.flatnonzero(normalized.group >= 0)
    Y = np.zeros((len(W), problem.y.max() + 1))
    Y[linked, normalized.group[linked]] = 1 / root[linked]
    found, _ = Preconditioner(-alpha * s, sparse.csr_array(Y), half, levels, alpha)(
        np.eye(len(W), dtype=np.float32)
    )
    P, expected = np.eye(len(W)), np.zeros_like(A)
    vector = root
    for group in levels:
        expected += P @ np.diag(1 / np.diag(P.T @ A @ P)) @ P.T
        step = np.zeros((len(group), group.max() + 1))
        step[np.arange(len(group)), group] = vector
        norms = np.linalg.norm(step, axis=0)
        P, vector = P @ (step / norms), norms
    expected += P @ np.linalg.inv(P.T @ A @ P) @ P.T
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-5)
    assert np.linalg.eigvalsh(expected).min() > 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 40))
def test_restricted_levels_keep_who_is_with_whom(seed, n):
    rng = np.random.default_rng(seed)
    levels, size = [], n
    for _ in range(3):
        level = np.unique(rng.integers(0, max(1, size // 2), size), return_inverse=True)[1]
        levels.append(level)
        size = level.max() + 1
    rows = rng.permutation(n)[: rng.integers(1, n + 1)]
    whole, part = np.arange(n), np.arange(len(rows))
    for before, after in zip(levels, restricted(tuple(levels), rows)):
        assert len(after) == part.max() + 1
        assert set(after) == set(range(after.max() + 1))
        whole, part = before[whole], after[part]
        same = whole[rows][:, None] == whole[rows]
        np.testing.assert_array_equal(same, part[:, None] == part)


@pytest.mark.parametrize("weights", [sparse.csr_array((3, 3)), sparse.csr_array((1, 1))])
def test_no_edges_no_groups(weights):
    assert paired(weights).tolist() == list(range(weights.shape[0]))
    with mock.patch.object(module, "_COARSEST", 0):
        assert aggregates(weights) == ()


def test_thousands_of_islands_have_no_levels():
    """Their groups would have to be inverted as one dense matrix."""
    pairs = np.arange(0, 10_000, 2)
    ends = np.concatenate([pairs, pairs + 1]), np.concatenate([pairs + 1, pairs])
    graph = sparse.csr_array((np.zeros(10_000), ends), shape=(10_000, 10_000))
    assert aggregates(graph) == ()
