"""Coverage against an inverse and literal loops."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.insight import coverage
from manifoldknn.insight.coverage import Nearness, covering, drawn
from manifoldknn.walk.choose import Way
from strategies import WAYS, problems, recipe_of


def nearness(W, alpha):
    """N by an inverse."""
    degrees = W.sum(axis=1)
    K = np.linalg.inv(np.diag(np.where(degrees > 0, degrees, 1.0)) - alpha * W)
    return K / np.sqrt(np.outer(np.diag(K), np.diag(K)))


def greedy(near, weights, covered):
    """The definition, step by step."""
    order, covered = [], list(covered)
    while len(order) < len(near):
        gains = {
            j: sum(weights[r] * max(0.0, near[r, j] - covered[r]) for r in range(len(near)))
            for j in range(len(near))
            if j not in order
        }
        order.append(max(gains, key=gains.get))
        covered = [max(c, near[r, order[-1]]) for r, c in enumerate(covered)]
    return order


@settings(max_examples=60, deadline=None)
@given(
    problems(),
    st.sampled_from(["pruned", "union", "full"]),
    st.sampled_from(WAYS),
    st.sampled_from([0.5, 0.99]),
)
def test_similarities_are_those_of_the_inverse(problem, graph, way, alpha):
    n = len(problem.X)
    built = recipe_of(problem.X, graph).constrained(np.full(n, -1))
    W = built.to_matrix()
    expected = nearness(W if graph == "full" else W.toarray(), alpha)
    rows = np.random.default_rng(n).permutation(n)
    some, others = rows[: n // 2], rows[n // 2 : -1]
    name = "dense" if graph == "full" else way
    with mock.patch.object(coverage, "chosen_way", return_value=Way(name)):
        found = Nearness(built, some, others, alpha, n_jobs=2)
        later = found.to(rows[-1:])
    np.testing.assert_allclose(found.to(rows[:-1]), expected[np.ix_(some, rows[:-1])], atol=0.011)
    np.testing.assert_allclose(later, expected[np.ix_(some, rows[-1:])], atol=0.011)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_each_row_adds_most(n, seed):
    rng = np.random.default_rng(seed)
    near = rng.random((n, n)).astype(np.float32)
    np.fill_diagonal(near, 1.0)
    weights, covered = rng.random(n), (0.5 * rng.random(n)).astype(np.float32)
    found = list(covering(near, weights, covered))
    assert [row for row, _ in found] == greedy(near, weights, covered)
    for row, added in found:
        np.testing.assert_allclose(added, np.maximum(near[:, row] - covered, 0), atol=1e-6)
        covered = np.maximum(covered, near[:, row])


def test_rows_are_drawn_by_their_weights():
    weights = np.array([0.01] * 50 + [1.0] * 10 + [40.0])
    counts = np.zeros(61)
    for seed in range(2000):
        rows, chance = drawn(weights, 6, np.random.default_rng(seed))
        assert len(rows) in (6, 7)
        counts[rows] += 1
        assert (chance[rows == 60] == 1.0).all()
    assert counts[60] == 2000
    np.testing.assert_allclose(counts[50:60].mean() / 2000, 5 / 10.5, rtol=0.05)
    assert counts[:50].mean() / 2000 == pytest.approx(5 * 0.01 / 10.5, rel=0.3)
    rows, chance = drawn(weights, 61, np.random.default_rng(0))
    assert len(rows) == 61
    assert (chance == 1.0).all()
