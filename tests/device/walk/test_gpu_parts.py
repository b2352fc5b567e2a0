"""Parts between which hardly anybody walks, on a device as on the CPU."""

import numpy as np
import pytest

from manifoldknn.walk.levels import Columns
from manifoldknn.walk.parts import solve_by_parts
from walk.test_parts import ACCURACY, clusters, exact_logs

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from device.walk.test_gpu_levels import as_torch_graph  # noqa: E402
from manifoldknn.device.walk.kernels import normalized_graph  # noqa: E402


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("start", [None, 0.0])
def test_every_entry_is_exact(linked, start):
    """Three clusters behind edges of e^-20 and e^-30; a walk from the first reaches the last."""
    log_w = clusters(np.random.default_rng(1), [6, 5, 7], [(0, 1), (1, 2)], [-20.0, -30.0])
    group = np.full(18, -1)
    if linked:
        group[[0, 3]] = 0
        log_w[0, 3] = log_w[3, 0] = -np.inf
    graph = normalized_graph(as_torch_graph(log_w, group))
    assert graph.divided(-15.0).n_parts == 3
    for cols in (np.zeros(2, dtype=int), np.arange(2)):
        places, values = np.array([1, 14]), np.array([0.0, -3.0])
        views = np.zeros((1, cols.max() + 1))
        exact = exact_logs(log_w, group, Columns(places, cols, values, views), 0.99)
        sent = Columns(*(torch.as_tensor(part) for part in (places, cols, values, views)), np.inf)
        guess = None if start is None else torch.as_tensor(exact + start)
        for wanted in (None, torch.arange(18) < 9):
            found = solve_by_parts(graph, sent, wanted=wanted, start=guess, **ACCURACY)
            assert found.converged
            rows = slice(None) if wanted is None else wanted.numpy()
            np.testing.assert_allclose(found.log_values.numpy()[rows], exact[rows], atol=1e-6)
