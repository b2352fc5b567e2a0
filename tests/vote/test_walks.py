import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracles
from manifoldknn.vote import walks
from manifoldknn.vote.shared_graph import ready_graph
from manifoldknn.vote.walks import block_width, walk_by_class, walk_by_label
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import WAYS, Problem, built_graph, forced, problems

GRAPHS = ("pruned", "union", "full")


def dense(built):
    W = built.to_matrix()
    return W.toarray() if sparse.issparse(W) else W


@settings(max_examples=60, deadline=None)
@given(problems(max_samples=50), st.sampled_from(GRAPHS), st.sampled_from(WAYS))
def test_by_label_equals_the_plain_inverse(problem, graph, way):
    """Also in several blocks, each of which only knows how large the others' weights are."""
    built, labeled = built_graph(problem, graph), np.flatnonzero(problem.y >= 0)
    expected = oracles.walk_weights(dense(built), 0.99)[:, labeled]
    with forced(way), pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "block_width", lambda _: 4)
        found = walk_by_label(built, labeled, 0.99, tol=1e-9, max_iter=1000)
    assert found.converged
    assert found.log_sums is None
    weights = np.exp(found.similarities.logarithms())
    largest = expected.max(axis=1, keepdims=True)
    visible = largest[:, 0] > 1e-8  # what a plain inverse gets wrong is looked at elsewhere
    assert np.abs(weights - expected)[visible].max() <= 1e-6 * largest[visible].max()
    error = np.abs(weights - expected)[visible] / largest[visible]
    assert error.max() <= 1e-6


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by_class", [True, False])
def test_threads_change_no_bit(way, by_class):
    rng = np.random.default_rng(0)
    y = np.full(800, -1)
    y[rng.choice(800, 100, replace=False)] = np.arange(100) % 4
    built, labeled = built_graph(Problem(rng.normal(size=(800, 3)), y), "union"), y >= 0
    labeled = np.flatnonzero(labeled)
    how = {"tol": 1e-3, "max_iter": 1000}

    def ready(jobs):
        chosen = walks.chosen_way(NormalizedGraph(built), 0.999, n_columns=5)
        assert bool(chosen.levels) == (way == "levels")
        return ready_graph(built, labeled, 0.999, chosen, n_jobs=jobs)

    with forced(way):
        one, two = (
            walk_by_class(ready(jobs), labeled, y[labeled], 4, 0.999, **how)
            if by_class
            else walk_by_label(built, labeled, 0.999, n_jobs=jobs, **how)
            for jobs in (1, 2)
        )
    np.testing.assert_array_equal(one.similarities.logs, two.similarities.logs)
    np.testing.assert_array_equal(one.similarities.log_scale, two.similarities.log_scale)
    assert one.n_iter == two.n_iter


def test_blocks_become_narrower_with_many_rows():
    widths = [block_width(n) for n in (10, 1 << 16, 80_000, 104_000, 10**7)]
    assert widths == [32, 32, 17, 8, 8]
