"""Coverage against an inverse and literal loops."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits

from manifoldknn import ManifoldKNNClassifier, suggest
from manifoldknn.graph.weights import ConstrainedGraph
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


def test_of_very_many_rows_groups_are_walked_over():
    """A ring of cliques, each with as much of its weight outside: groups are exact there.

    All rows of a clique are one, and as near to others as the clique is in the ring of cliques.
    """
    n_groups, size, alpha = 40, 4, 0.97
    group = np.repeat(np.arange(n_groups), size)
    within = (group[:, None] == group) & ~np.eye(len(group), dtype=bool)
    beside = np.abs(group[:, None] - group) % (n_groups - 2) == 1
    W = 5.0 * within + 0.25 * beside
    with np.errstate(divide="ignore"):
        logs = np.log(W)
    kept = sparse.csr_array(np.where(W > 0, logs, 0.0))
    built = ConstrainedGraph(kept, np.full(len(group), -1))
    groups = [np.arange(len(group)), group]
    rows, others = np.array([5, 0, 1, 77]), np.array([2, 30, 3, 119])
    with (
        mock.patch.object(coverage, "_MOST_NODES", n_groups + 1),
        mock.patch.object(coverage, "grouped", return_value=groups),
    ):
        found = Nearness(built, rows, others, alpha)
        near = found.to(np.concatenate([others, rows]))
    D = np.diag(W.sum(axis=1))
    member = np.eye(n_groups)[group]
    K = np.linalg.inv(member.T @ (D - alpha * W) @ member)
    expected = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    at = group[rows][:, None], group[np.concatenate([others, rows])]
    np.testing.assert_allclose(near, expected[at], atol=0.011)


def test_suggestions_from_groups_find_the_classes():
    X, truth = load_digits(return_X_y=True)
    with mock.patch.object(coverage, "_MOST_NODES", 900):
        rows = suggest(X / 16, n=30).rows
    assert len(np.unique(rows)) == 30
    assert len(np.unique(truth[rows])) == 10
    y = np.full(len(X), -1)
    y[rows] = truth[rows]
    found = ManifoldKNNClassifier().fit(X / 16, y).transduction_
    assert (found != truth)[y < 0].mean() < 0.075  # 8.5 % with as many random rows


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
