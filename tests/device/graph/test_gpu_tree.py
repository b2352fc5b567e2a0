import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.graph.tree import tree_edges

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import tree  # noqa: E402


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 40),
    k=st.integers(1, 6),
    depth=st.integers(0, 4),
    batch=st.sampled_from([1, 4_000_000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_same_trees_as_on_the_cpu(n, k, depth, batch, seed):
    rng = np.random.default_rng(seed)
    k = min(k, n - 1)
    others = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    roots = np.flatnonzero(rng.random(n) < 0.3)
    usual, tree._PAIRS_PER_BATCH = tree._PAIRS_PER_BATCH, batch
    try:
        key, level = tree.tree_pairs(
            torch.as_tensor(others, dtype=torch.int32), torch.as_tensor(roots), depth
        )
    finally:
        tree._PAIRS_PER_BATCH = usual
    low, high, expected = tree_edges(others, roots, depth)
    assert key.tolist() == (low * n + high).tolist()
    assert level.tolist() == expected.tolist()
