import numpy as np
import pytest

from manifoldknn.graph import joining as bridges
from manifoldknn.graph.joining import short_joining_edges
from manifoldknn.graph.kernels import GRAPH

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import kernels as partsearch  # noqa: E402
from manifoldknn.device.graph.kernels import TorchGraphKernels  # noqa: E402


def on_device(X, parts):
    kernels = TorchGraphKernels(torch.device("cpu"))
    return short_joining_edges(torch.as_tensor(X), parts, kernels=kernels)


def on_cpu(X, parts):
    return short_joining_edges(X, parts, kernels=GRAPH)


def clusters(n_parts, size, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_parts, 4)) * 8 * spread
    parts = rng.permutation(np.repeat(np.arange(n_parts), size))
    return centres[parts] + rng.normal(size=(len(parts), 4)), parts


@pytest.mark.parametrize("n_parts", [2, 7, 40])
def test_the_same_edges_as_on_the_cpu(n_parts):
    X, parts = clusters(n_parts, 30)
    found = on_device(X, parts)
    for ours, theirs in zip(found, on_cpu(X, parts)):
        assert ours.tolist() == theirs.tolist()
    assert len(found[0]) == n_parts - 1


def test_tiles_make_no_difference(monkeypatch):
    X, parts = clusters(12, 30)
    expected = on_device(X, parts)
    monkeypatch.setattr(partsearch, "_PRODUCTS", 50)
    monkeypatch.setattr(partsearch, "_POINTS", 5)
    monkeypatch.setattr(partsearch, "_VALUES", 200)
    for ours, theirs in zip(on_device(X, parts), expected):
        assert ours.tolist() == theirs.tolist()


def test_very_many_parts_are_joined_by_stand_ins(monkeypatch):
    monkeypatch.setattr(bridges, "MOST_PARTS", 10)
    X, parts = clusters(60, 5)
    found = on_device(X, parts)
    for ours, theirs in zip(found, on_cpu(X, parts)):
        assert ours.tolist() == theirs.tolist()
