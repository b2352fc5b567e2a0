import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import manifoldknn.graph.tree as tree_module
import oracles
from manifoldknn.graph.tree import tree_edges


def literal_levels(lists, roots, depth):
    """Smallest level of every undirected parent-child pair, tree by tree."""
    best = {}
    for root in roots:
        earlier, level = {root}, {root}
        for r in range(1, depth + 1):
            children = {(i, j) for i in level for j in lists[i] if j not in earlier}
            for i, j in children:
                pair = (min(i, j), max(i, j))
                best[pair] = min(best.get(pair, r), r)
            level = {j for _, j in children}
            earlier |= level
    return best


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 40),
    depth=st.integers(0, 4),
    grid=st.booleans(),
    pairs_per_batch=st.sampled_from([1, 50, 10**6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_growing_each_tree(n, depth, grid, pairs_per_batch, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float) if grid else rng.normal(size=(n, 2))
    lists = oracles.nearest(X, int(rng.integers(1, n)))
    roots = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    usual = tree_module._PAIRS_PER_BATCH
    tree_module._PAIRS_PER_BATCH = pairs_per_batch
    try:
        low, high, level = tree_edges(np.array(lists), roots, depth)
    finally:
        tree_module._PAIRS_PER_BATCH = usual
    found = dict(zip(zip(low.tolist(), high.tolist()), level.tolist()))
    assert found == literal_levels(lists, roots.tolist(), depth)
    assert len(found) == len(low)
    assert (np.diff(low * n + high) > 0).all()


def test_a_nearer_root_does_not_hide_an_edge():
    """0 and 3 are roots of the chain 0-1-2-3; 1-2 is level 2 in both trees."""
    neighbors = np.array([[1, 2], [2, 0], [1, 3], [2, 1]])
    low, high, level = tree_edges(neighbors, np.array([0, 3]), 2)
    found = dict(zip(zip(low.tolist(), high.tolist()), level.tolist()))
    assert found[(0, 1)] == found[(2, 3)] == 1
    assert found == literal_levels(neighbors.tolist(), [0, 3], 2)


def test_a_tree_that_holds_everything_ends():
    """However deep it may be: nothing new is reached after a few levels."""
    neighbors = np.array([[1, 2], [2, 0], [0, 1], [0, 1]])
    deep = tree_edges(neighbors, np.array([0, 3]), 10**6)
    for found, expected in zip(deep, tree_edges(neighbors, np.array([0, 3]), 6)):
        np.testing.assert_array_equal(found, expected)
