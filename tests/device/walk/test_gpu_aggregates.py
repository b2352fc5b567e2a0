"""Groups of rows and the preconditioner made of them are those of the CPU."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manifoldknn.walk.aggregates as rules
from device.graph.test_gpu_constrained import SETTINGS, both_recipes
from manifoldknn import ManifoldKNNClassifier
from manifoldknn.vote.hidden import hidden_densities, hidden_groups
from manifoldknn.walk import choose as ways
from manifoldknn.walk.normalized import NormalizedGraph
from strategies import shared_graph, walk_by_class_factorised

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from device.walk.test_gpu_columns import check_hidden, check_same  # noqa: E402
from manifoldknn.device.graph.constrained import TorchGraph  # noqa: E402
from manifoldknn.device.walk import columns as module  # noqa: E402
from manifoldknn.device.walk.aggregates import aggregates, inverse_by_products, paired  # noqa: E402
from manifoldknn.device.walk.cg import ConjugateGradients  # noqa: E402
from manifoldknn.device.walk.columns import Kept, hidden_on_device, walk_by_class_on_device  # noqa: E402
from manifoldknn.device.walk.normalized import NormalizedTorchGraph  # noqa: E402

ALPHA = 0.9997
OPTIONS = {"tol": 1e-6, "max_iter": 2000}


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    monkeypatch.setattr(ways, "MANY_ROWS", 100)
    monkeypatch.setattr(rules, "_COARSEST", 10)


def problem(n=500, n_labeled=24, graph="pruned"):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), np.full(n, -1)
    X[:, 0] *= 3
    y[:n_labeled] = np.arange(n_labeled) % 3
    return *both_recipes(X, y, graph, 8, "auto", **SETTINGS), y


def grid(side):
    """A sheet, in which news travels slowly; weights differ a little."""
    rng, number = np.random.default_rng(1), np.arange(side * side).reshape(side, side)
    ends = (number[:, 1:], number[:, :-1]), (number[1:], number[:-1])
    i, j = (np.concatenate([pair[k].ravel() for pair in ends]) for k in (0, 1))
    upper = sparse.coo_array((-rng.random(len(i)), (i, j)), shape=(side**2, side**2))
    matrix = sparse.csr_array(upper + upper.T)
    matrix.sort_indices()
    parts = (torch.as_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    offsets, columns, logs = parts
    return TorchGraph(offsets.long(), columns.int(), logs, np.full(side**2, -1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.0, 0.1, 1.0]))
def test_pairs_are_those_of_the_cpu(seed, n, density):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 9, (n, n)) * (rng.random((n, n)) < density), 1)
    weights = sparse.csr_array((upper + upper.T).astype(float))  # many are equal
    row, column = (torch.as_tensor(ends) for ends in weights.toarray().nonzero())
    found = paired(row, column, torch.as_tensor(weights.data), n)
    assert found.tolist() == rules.paired(weights).tolist()


@pytest.mark.parametrize("graph", ["pruned", "union"])
def test_levels_are_those_of_the_cpu(graph):
    _, ours, _, _ = problem(graph=graph)
    found = NormalizedTorchGraph(ours).find_levels()
    expected = rules.aggregates(NormalizedGraph(ours.to_numpy()).log_s)
    assert len(found) == len(expected) >= 2
    assert all(a.tolist() == b.tolist() for a, b in zip(found, expected))


def test_pieces_that_do_not_hang_together_are_left_alone():
    nobody = torch.zeros(0, dtype=torch.int64)
    assert aggregates(nobody, nobody, nobody.double(), 99) == ()
    pairs = torch.arange(200)
    assert aggregates(pairs, pairs ^ 1, torch.zeros(200).double(), 200) == ()


@pytest.mark.parametrize("copies", [1, 3])
def test_the_preconditioner_is_that_of_the_cpu(copies):
    recipe, ours, _, y = problem()
    levels = NormalizedTorchGraph(ours).find_levels()
    codes = [np.where(np.arange(500) % 5 == i, -1, y) for i in range(copies)]
    graph = NormalizedTorchGraph(recipe.constrained(*codes, n_classes=3))
    graph.levels, graph.copies = levels, copies
    n = 500 * copies
    matrix = graph.restrict(graph.parts(torch.arange(n)).rows, ALPHA)
    r = torch.as_tensor(np.random.default_rng(2).normal(size=(n, 4)))
    found = matrix.precondition(r)
    for i, some in enumerate(codes):
        cpu = NormalizedGraph(recipe.constrained(some).to_numpy())
        cpu.levels = tuple(level.numpy() for level in levels)
        own = slice(500 * i, 500 * (i + 1))
        part = cpu.restrict(cpu.parts(np.arange(500)).rows, ALPHA)
        expected, _ = part.precondition()(r[own].numpy().astype(np.float32))
        np.testing.assert_allclose(found[own], expected, atol=1e-5 * np.abs(expected).max())
    other = torch.as_tensor(np.random.default_rng(3).normal(size=(n, 4)))
    np.testing.assert_allclose(
        (other * found).sum(0), (r * matrix.precondition(other)).sum(0), rtol=1e-9
    )


@pytest.mark.parametrize("alpha", [0.995, 0.9997, 0.999999])
def test_inverses_by_products(alpha):
    rng = np.random.default_rng(4)
    vectors = torch.as_tensor(np.linalg.qr(rng.normal(size=(2, 30, 30)))[0])
    values = torch.as_tensor(1.0 + alpha * np.linspace(-1.0, 1.0, 30))
    matrix = vectors @ (values[:, None] * vectors.mT)
    found = inverse_by_products(matrix, alpha)
    np.testing.assert_allclose(found @ matrix, torch.eye(30).expand(2, 30, 30), atol=1e-5)
    endless = inverse_by_products(matrix, 1.0 - 1e-15)
    assert torch.isfinite(endless).all()


def test_long_walks_take_half_the_iterations():
    graph = NormalizedTorchGraph(grid(70))
    rows = graph.parts(torch.arange(4900)).rows
    b = torch.zeros(4900, 2, dtype=torch.float64)
    b[0, 0] = b[2000, 1] = 1.0
    found = {}
    for name in ("plain", "levels"):
        if name == "levels":
            graph.levels, graph._whole = graph.find_levels(), {}
        matrix = graph.restrict(rows, ALPHA)
        assert (matrix.precondition is None) == (name == "plain")
        solver = ConjugateGradients(matrix.apply, b, matrix.precondition)
        assert solver.advance(1e-8 * b.norm(dim=0), max_iter=2000)
        assert (matrix.residual(b, solver.x).norm(dim=0) <= 1.01e-8).all()
        found[name] = solver
    np.testing.assert_allclose(found["levels"].x, found["plain"].x, atol=1e-4)
    assert 2 * found["levels"].n_iter <= found["plain"].n_iter


@pytest.mark.parametrize("graph", ["pruned", "union"])
@pytest.mark.parametrize("as_one", [False, True])
def test_densities_and_hidden_labels_are_those_of_the_cpu(monkeypatch, graph, as_one):
    recipe, ours, theirs, y = problem(graph=graph)
    labeled, groups, kept = np.flatnonzero(y >= 0), hidden_groups(y), Kept()
    found = walk_by_class_on_device(ours, 3, ALPHA, kept=kept, **OPTIONS)
    assert kept.levels
    expected = walk_by_class_factorised(
        theirs.constrained(y),
        labeled,
        y[labeled],
        3,
        ALPHA,
        **OPTIONS,
    )
    check_same(found, expected)
    with monkeypatch.context() as patch:
        patch.setattr(ways, "MANY_ROWS", 10**9)
        plain = walk_by_class_on_device(ours, 3, ALPHA, **OPTIONS)
    check_same(found, plain)
    assert found.n_iter < plain.n_iter
    monkeypatch.setattr(module, "_AS_ONE", module._AS_ONE if as_one else 0)
    expected = hidden_densities(
        y, groups, 3, shared_graph(theirs, y, ALPHA, "factorise"), n_jobs=1, **OPTIONS
    )
    for known in (kept, None):
        hidden = hidden_on_device(recipe, y, groups, 3, ALPHA, kept=known, **OPTIONS)
        check_hidden(hidden, expected, 2e-6)


def test_sums_begin_with_those_of_all_labels(monkeypatch):
    recipe, ours, _, y = problem()
    counts, solve = [], module.solve_by_levels

    def counted(graph, columns, **options):
        found = solve(graph, columns, **options)
        counts.append(found.n_iter)
        return found

    kept = Kept()
    walk_by_class_on_device(ours, 3, ALPHA, kept=kept, tol=1e-3, max_iter=2000)
    monkeypatch.setattr(module, "solve_by_levels", counted)
    for known in (Kept(kept.levels), kept):
        hidden_on_device(recipe, y, hidden_groups(y), 3, ALPHA, tol=1e-3, max_iter=2000, kept=known)
    cold, _, warm, _ = counts
    assert warm < cold


def test_two_fits_give_the_same_bits_and_the_sharpness_of_the_cpu():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(400, 3)), np.full(400, -1)
    y[:40] = X[:40, 0] > 0
    one, two, cpu = (
        ManifoldKNNClassifier(device=device, alpha=ALPHA).fit(X, y)
        for device in ("torch:cpu", "torch:cpu", "cpu")
    )
    assert (one.label_distributions_ == two.label_distributions_).all()
    assert one.fitted_.vote.sharpness == two.fitted_.vote.sharpness
    assert one.fitted_.vote.sharpness == pytest.approx(cpu.fitted_.vote.sharpness, rel=0.02)
    np.testing.assert_allclose(one.label_distributions_, cpu.label_distributions_, atol=5e-3)
