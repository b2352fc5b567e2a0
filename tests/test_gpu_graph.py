import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.graph import automatic_sigma, build_graph, candidate_count, selected_edges
from manifoldknn.neighbors import ExactIndex, Neighbors
from strategies import problems

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.gpu import graph as graph_module  # noqa: E402
from manifoldknn.gpu.graph import torch_graph, torch_sigma  # noqa: E402

SETTINGS = {"tree_depth": 2, "theta": 0.1, "metric": "euclidean"}


def both_graphs(X, y, graph, k, sigma, *, device="cpu", **settings):
    """The same neighbours through the GPU's functions and through NumPy."""
    k = min(k, len(X) - 1)
    found = ExactIndex(X).among_samples(candidate_count(graph, k, len(X)))
    pairs = {"graph": graph, "graph_neighbors": k}
    ours = torch_graph(
        torch.as_tensor(found.indices, device=device),
        torch.as_tensor(found.distances, device=device),
        y,
        X=torch.as_tensor(X, device=device),
        sigma=sigma,
        **pairs,
        **settings,
    )
    width = automatic_sigma(found) if sigma == "auto" else sigma
    theirs = build_graph(X, found, y, sigma=width, **pairs, **settings)
    edges = selected_edges(X, found, metric="euclidean", **pairs)
    return ours, theirs, edges, width


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    k=st.sampled_from([1, 3, 10]),
    sigma=st.sampled_from(["auto", 0.7, 0.001, 1e-9]),
    depth=st.integers(0, 3),
    theta=st.sampled_from([0.1, 1.0]),
)
def test_the_same_graph_as_on_the_cpu(problem, graph, k, sigma, depth, theta):
    options = SETTINGS | {"tree_depth": depth, "theta": theta}
    check_same(*both_graphs(problem.X, problem.y, graph, k, sigma, **options))


def check_same(ours, theirs, edges, width):
    assert ours.sigma == width
    found, matrix = ours.to_numpy()
    for mine, expected in zip(found, edges):
        assert mine.dtype == expected.dtype
        assert mine.tolist() == expected.tolist()
    for name in ("indptr", "indices"):
        mine, expected = getattr(matrix.log_weights, name), getattr(theirs.log_weights, name)
        assert mine.dtype == expected.dtype
        assert mine.tolist() == expected.tolist()
    np.testing.assert_allclose(
        matrix.log_weights.data, theirs.log_weights.data, rtol=1e-14, atol=1e-14
    )
    assert (matrix.must_link == theirs.must_link).all()
    np.testing.assert_allclose(
        ours.log_degrees().cpu(), theirs.log_degrees(), rtol=1e-13, atol=1e-13
    )


def test_table_1_itself():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.full(40, -1)
    y[:7] = [0, 0, 1, 1, 2, 2, 2]
    ours, *_ = both_graphs(X, y, "pruned", 5, 0.6, **SETTINGS)
    expected = oracles.constrained_graph(X, y, graph="pruned", k=5, sigma=0.6, depth=2, theta=0.1)
    W = ours.to_numpy()[1].to_matrix().toarray()
    np.testing.assert_allclose(W, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [5, 6])
@pytest.mark.parametrize("kind", ["spread", "half flat", "flat", "all equal"])
def test_sigma_in_every_case(n, kind):
    distances = np.sort(np.random.default_rng(n).random((n, 8)), axis=1)
    if kind == "half flat":
        distances[: n // 2 + 1] = 0.5
    elif kind != "spread":
        distances[:] = 0.25 if kind == "flat" else 0.0
    expected = automatic_sigma(Neighbors(np.zeros((n, 8), dtype=int), distances))
    assert torch_sigma(torch.as_tensor(distances)) == expected


def test_running_out_of_memory_builds_it_on_the_cpu(monkeypatch):
    """A pretended device, "meta", on which nothing can be computed."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.full(30, -1)
    y[:4] = [0, 0, 1, 1]
    build, where = graph_module._built, []

    def small(indices, *others):
        where.append(indices.device.type)
        if len(where) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return build(indices, *others)

    monkeypatch.setattr(graph_module, "_built", small)
    monkeypatch.setattr(graph_module, "doubles", lambda _: torch.device("meta"))
    ours, theirs, *_ = both_graphs(X, y, "pruned", 5, 0.6, **SETTINGS)
    assert where == ["meta", "cpu"]
    assert ours.device.type == "meta"
    assert len(ours.columns) == theirs.log_weights.nnz


def test_other_errors_are_not_taken_for_it(monkeypatch):
    def broken(*_):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(graph_module, "_built", broken)
    with pytest.raises(RuntimeError, match="illegal"):
        both_graphs(np.eye(4), np.array([0, 1, -1, -1]), "pruned", 2, 1.0, **SETTINGS)


def test_the_full_graph_is_refused():
    with pytest.raises(ValueError, match=r"graph='full'.*device='cpu'"):
        both_graphs(np.eye(4), np.array([0, 1, -1, -1]), "full", 2, 1.0, **SETTINGS)
