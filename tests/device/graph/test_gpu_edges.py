import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifoldknn.graph.edges import pruned_edges, union_edges
from manifoldknn.search.neighbors import ExactIndex, Neighbors
from strategies import problems

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import kernels  # noqa: E402
from manifoldknn.device.graph.kernels import TorchGraphKernels  # noqa: E402

HERE = TorchGraphKernels(torch.device("cpu"))


def as_tuples(edges):
    return list(zip(*(part.tolist() for part in edges)))


def tensors(neighbors):
    return Neighbors(torch.as_tensor(neighbors.indices), torch.as_tensor(neighbors.distances))


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=70),
    k=st.sampled_from([1, 2, 5, 10]),
    candidates=st.sampled_from([4, 10, 30]),
    single=st.booleans(),
    compared=st.sampled_from([1, 5000, 1 << 27]),
)
def test_the_same_edges_as_on_the_cpu(problem, k, candidates, single, compared):
    """Islands, repeated rows and grids: ties and separate parts are everywhere."""
    X = problem.X
    k = min(k, len(X) - 1)
    found = ExactIndex(X).among_samples(min(max(candidates, k), len(X) - 1))
    if single:  # lengths in single precision, in which more are equal
        found = Neighbors(found.indices, found.distances.astype(np.float32).astype(np.float64))
    there = tensors(found)
    if single:
        there = Neighbors(there.indices.int(), there.distances.float())
    usual, kernels._COMPARED = kernels._COMPARED, compared
    try:
        pruned = pruned_edges(torch.as_tensor(X), there, k, metric="euclidean", kernels=HERE)
        few = Neighbors(there.indices[:, :k], there.distances[:, :k])
        union = union_edges(few, HERE)
    finally:
        kernels._COMPARED = usual
    assert as_tuples(pruned) == list(zip(*pruned_edges(X, found, k, metric="euclidean")))
    few = Neighbors(found.indices[:, :k], found.distances[:, :k])
    assert as_tuples(union) == list(zip(*union_edges(few)))


def test_lists_that_are_not_exact():
    """Approximate neighbours: reverse edges may be shorter than a row's own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    exact = ExactIndex(X).among_samples(40)
    lost = np.sort(rng.permuted(np.tile(np.arange(40), (200, 1)), axis=1)[:, :20], axis=1)
    found = Neighbors(
        np.take_along_axis(exact.indices, lost, axis=1),
        np.take_along_axis(exact.distances, lost, axis=1),
    )
    ours = pruned_edges(torch.as_tensor(X), tensors(found), 5, metric="euclidean", kernels=HERE)
    assert as_tuples(ours) == list(zip(*pruned_edges(X, found, 5, metric="euclidean")))
