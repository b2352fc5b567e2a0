import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from manifoldknn.graph.weights import ConstrainedGraph
from manifoldknn.walk.normalized import NormalizedGraph
from walk.test_levels import clusters_on_a_line

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from device.walk.test_gpu_levels import as_torch_graph  # noqa: E402
from manifoldknn.device.walk.normalized import NormalizedTorchGraph  # noqa: E402


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(3, 20),
    spread=st.sampled_from([1.0, 300.0, 3000.0]),
    n_linked=st.integers(0, 8),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_boundaries_and_products_are_those_of_the_cpu(n, spread, n_linked, seed):
    rng = np.random.default_rng(seed)
    log_weights = -spread * rng.random((n, n))
    log_weights[rng.random((n, n)) < 0.7] = -np.inf
    log_weights = np.maximum(log_weights, log_weights.T)
    must_link = np.full(n, -1)
    linked = rng.choice(n, min(n, n_linked), replace=False)
    must_link[linked] = rng.integers(0, 3, len(linked))
    log_weights[np.ix_(linked, linked)] = -np.inf
    np.fill_diagonal(log_weights, -np.inf)
    i, j = np.nonzero(np.isfinite(log_weights))
    matrix = sparse.csr_array((log_weights[i, j], (i, j)), shape=(n, n))
    theirs = NormalizedGraph(ConstrainedGraph(matrix, must_link))
    ours = NormalizedTorchGraph(as_torch_graph(log_weights, must_link))
    np.testing.assert_allclose(ours.log_degrees, theirs.log_degrees, rtol=1e-13, atol=1e-13)
    rows = np.flatnonzero(rng.random(n) < 0.6)
    if not rows.size:
        return
    parts = ours.parts(torch.as_tensor(rows))
    expected = theirs.parts(rows)
    assert (parts.rows.tolist(), parts.n_cut) == (expected.rows.tolist(), expected.n_cut)
    assert parts.number.tolist() == expected.number.tolist()
    log_x = -spread * rng.random((n, 2))
    final = np.ones(n, dtype=bool)
    final[rows] = False
    np.testing.assert_allclose(
        ours.boundary(torch.as_tensor(rows), torch.as_tensor(final), torch.as_tensor(log_x)),
        theirs.boundary(rows, final, log_x),
        rtol=1e-12,
    )
    v = rng.random((len(rows), 3))
    expected = -theirs.restrict(rows, 0.9).residual(np.zeros_like(v), v)
    found = ours.restrict(torch.as_tensor(rows), 0.9).apply(torch.as_tensor(v))
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_nothing_passes_over_edges_that_are_cut():
    """Weights of e^-720 fit into a number; but each part has a scale of its own."""
    log_weights = clusters_on_a_line([3, 3], -720.0, np.random.default_rng(0))
    graph = NormalizedTorchGraph(as_torch_graph(log_weights))
    rows = torch.arange(6)
    assert graph.parts(rows).number.tolist() == [0, 0, 0, 1, 1, 1]
    v = torch.zeros(6, 1, dtype=torch.float64)
    v[:3] = 1.0
    assert not graph.restrict(rows, 0.99).apply(v)[3:].any()
