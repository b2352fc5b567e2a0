import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.graph.constrained import (
    GraphRecipe,
    automatic_sigma,
    candidate_count,
    selected_edges,
)
from manifoldknn.graph.links import NO_LINKS, HandLinks, hand_links
from manifoldknn.search.neighbors import ExactIndex, Neighbors
from strategies import problems

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device.graph import constrained as graph_module  # noqa: E402
from manifoldknn.device.graph.constrained import torch_graph  # noqa: E402
from manifoldknn.device.kernels import TorchKernels  # noqa: E402

SETTINGS = {"tree_depth": 2, "theta": 0.1, "metric": "euclidean"}


def both_recipes(X, y, graph, k, sigma, *, device="cpu", links=NO_LINKS, **settings):
    """The same neighbours through the GPU's functions and through NumPy."""
    k = min(k, len(X) - 1)
    found = ExactIndex(X).among_samples(candidate_count(graph, k, len(X)))
    pairs = {"graph": graph, "graph_neighbors": k}
    recipe, ours = torch_graph(
        torch.as_tensor(found.indices, device=device),
        torch.as_tensor(found.distances, device=device),
        y,
        X=torch.as_tensor(X, device=device),
        sigma=sigma,
        links=links,
        **pairs,
        **settings,
    )
    width = automatic_sigma(found) if sigma == "auto" else sigma
    edges = selected_edges(X, found, metric="euclidean", **pairs)
    theirs = GraphRecipe(X, found.indices[:, :k], edges, width, graph, links=links, **settings)
    return recipe, ours, theirs


def both_graphs(X, y, *args, **settings):
    """The same graph by the GPU's functions and by NumPy."""
    _, ours, theirs = both_recipes(X, y, *args, **settings)
    return ours, theirs.constrained(y)


@st.composite
def linked(draw, n):
    """Some pairs that are linked, others that are cut apart."""
    end = st.integers(0, n - 1)
    drawn = draw(st.lists(st.tuples(end, end, st.booleans()), max_size=8))
    pairs = {(min(i, j), max(i, j)): kind for i, j, kind in drawn if i != j}
    rows = {
        kind: np.array(sorted(p for p in pairs if pairs[p] is kind)).reshape(-1, 2).astype(np.intp)
        for kind in (True, False)
    }
    return HandLinks(rows[True], rows[False])


@settings(max_examples=80, deadline=None)
@given(
    problem=problems(max_samples=60),
    graph=st.sampled_from(["pruned", "union"]),
    k=st.sampled_from([1, 3, 10]),
    sigma=st.sampled_from(["auto", 0.7, 0.001, 1e-9]),
    depth=st.integers(0, 3),
    theta=st.sampled_from([0.1, 1.0]),
    data=st.data(),
)
def test_the_same_graph_as_on_the_cpu(problem, graph, k, sigma, depth, theta, data):
    X, y = problem.X, problem.y
    options = SETTINGS | {"tree_depth": depth, "theta": theta}
    links = data.draw(linked(len(X)))
    recipe, ours, theirs = both_recipes(X, y, graph, k, sigma, links=links, **options)
    check_same_recipe(recipe, theirs)
    check_same(ours, theirs.constrained(y))
    fewer = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    check_same(recipe.constrained(fewer), theirs.constrained(fewer))


def check_same_recipe(ours, theirs):
    ours = ours.to_numpy(theirs.X, theirs.nearest)
    assert ours.sigma == theirs.sigma
    for mine, expected in zip(ours.edges, theirs.edges):
        assert mine.dtype == expected.dtype
        assert mine.tolist() == expected.tolist()


def check_same(ours, theirs):
    matrix = ours.to_numpy()
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


def test_several_graphs_as_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 12, rng.integers(0, 3, 40), -1)
    links = hand_links([[20, 30]], [[3, 21], [22, 23]], y)
    recipe, _, theirs = both_recipes(X, y, "pruned", 5, 0.6, links=links, **SETTINGS)
    codes = [np.where(np.arange(40) % 4 == fold, -1, y) for fold in range(4)]
    W = recipe.constrained(*codes, n_classes=3).to_numpy().to_matrix().toarray()
    for number, some in enumerate(codes):
        here = slice(40 * number, 40 * number + 40)
        np.testing.assert_allclose(
            W[here, here], theirs.constrained(some).to_matrix().toarray(), rtol=1e-13
        )
        W[here, here] = 0
    assert not W.any()


def test_table_1_itself():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.full(40, -1)
    y[:7] = [0, 0, 1, 1, 2, 2, 2]
    ours, *_ = both_graphs(X, y, "pruned", 5, 0.6, **SETTINGS)
    expected = oracles.constrained_graph(X, y, graph="pruned", k=5, sigma=0.6, depth=2, theta=0.1)
    W = ours.to_numpy().to_matrix().toarray()
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
    there = Neighbors(None, torch.as_tensor(distances))
    assert automatic_sigma(there, TorchKernels(torch.device("cpu"))) == expected


def test_running_out_of_memory_builds_it_on_the_cpu(monkeypatch):
    """A pretended device, "meta", on which nothing can be computed."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.full(30, -1)
    y[:4] = [0, 0, 1, 1]
    select, where = graph_module.graph_recipe, []

    def small(X, *others, **options):
        where.append(X.device.type)
        if len(where) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return select(X, *others, **options)

    monkeypatch.setattr(graph_module, "graph_recipe", small)
    monkeypatch.setattr(graph_module, "doubles", lambda _: torch.device("meta"))
    ours, theirs = both_graphs(X, y, "pruned", 5, 0.6, **SETTINGS)
    assert where == ["meta", "cpu"]
    assert ours.device.type == "meta"
    assert len(ours.columns) == theirs.log_weights.nnz


def test_other_errors_are_not_taken_for_it(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(graph_module, "graph_recipe", broken)
    with pytest.raises(RuntimeError, match="illegal"):
        both_graphs(np.eye(4), np.array([0, 1, -1, -1]), "pruned", 2, 1.0, **SETTINGS)


def test_the_full_graph_is_refused():
    with pytest.raises(ValueError, match=r"graph='full'.*device='cpu'"):
        both_graphs(np.eye(4), np.array([0, 1, -1, -1]), "full", 2, 1.0, **SETTINGS)
