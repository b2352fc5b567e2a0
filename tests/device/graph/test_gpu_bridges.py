import numpy as np
import pytest

from manifoldknn.graph import bridges as on_cpu
from manifoldknn.graph.bridges import short_joining_edges

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import bridges  # noqa: E402
from manifoldknn.device.graph.bridges import short_bridges  # noqa: E402


def clusters(n_parts, size, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_parts, 4)) * 8 * spread
    parts = rng.permutation(np.repeat(np.arange(n_parts), size))
    return centres[parts] + rng.normal(size=(len(parts), 4)), parts


@pytest.mark.parametrize("n_parts", [2, 7, 40])
def test_the_same_edges_as_on_the_cpu(n_parts):
    X, parts = clusters(n_parts, 30)
    found = short_bridges(torch.as_tensor(X), torch.as_tensor(parts))
    for ours, theirs in zip(found, short_joining_edges(X, parts)):
        assert ours.tolist() == theirs.tolist()
    assert len(found[0]) == n_parts - 1


def test_tiles_make_no_difference(monkeypatch):
    X, parts = clusters(12, 30)
    expected = short_bridges(torch.as_tensor(X), torch.as_tensor(parts))
    monkeypatch.setattr(bridges, "_TILE", 50)
    monkeypatch.setattr(bridges, "_VALUES", 200)
    for ours, theirs in zip(short_bridges(torch.as_tensor(X), torch.as_tensor(parts)), expected):
        assert ours.tolist() == theirs.tolist()


def test_very_many_parts_are_joined_by_stand_ins(monkeypatch):
    monkeypatch.setattr(bridges, "MOST_PARTS", 10)
    monkeypatch.setattr(on_cpu, "MOST_PARTS", 10)
    X, parts = clusters(60, 5)
    found = short_bridges(torch.as_tensor(X), torch.as_tensor(parts))
    for ours, theirs in zip(found, short_joining_edges(X, parts)):
        assert ours.tolist() == theirs.tolist()
