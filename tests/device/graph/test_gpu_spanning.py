import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

import oracles

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import spanning  # noqa: E402


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 40),
    share=st.floats(0.0, 0.5),
    at_once=st.sampled_from([3, 1 << 26]),
    seed=st.integers(0, 2**32 - 1),
)
def test_forest_equals_kruskal(n, share, at_once, seed):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < share]
    rng.shuffle(pairs)
    ends = torch.tensor(pairs, dtype=torch.int32).reshape(-1, 2)
    usual, spanning._AT_ONCE = spanning._AT_ONCE, at_once
    try:
        in_forest, part = spanning.spanning_forest(ends[:, 0], ends[:, 1], n)
    finally:
        spanning._AT_ONCE = usual
    kruskal = oracles.Parts(n)
    assert in_forest.tolist() == [kruskal.join(i, j) for i, j in pairs]
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    links = sparse.coo_array((np.ones(len(pairs)), (i, j)), shape=(n, n))
    assert part.tolist() == csgraph.connected_components(links, directed=False)[1].tolist()
    assert spanning.connected_parts(ends[:, 1], ends[:, 0], n).tolist() == part.tolist()


def test_a_long_chain_is_one_part():
    """Pointers have to jump: a chain as long as there are nodes."""
    nodes = torch.arange(5000, dtype=torch.int32)
    in_forest, part = spanning.spanning_forest(nodes[:-1], nodes[1:], 5000)
    assert bool(in_forest.all())
    assert not part.any()
