import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.graph import tree
from manifoldknn.graph.tree import tree_edges

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.kernels import TorchKernels  # noqa: E402


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
        found = tree_edges(
            torch.as_tensor(others, dtype=torch.int32),
            torch.as_tensor(roots),
            depth,
            TorchKernels(torch.device("cpu")),
        )
    finally:
        tree._PAIRS_PER_BATCH = usual
    for ours, theirs in zip(found, tree_edges(others, roots, depth)):
        assert ours.tolist() == theirs.tolist()
