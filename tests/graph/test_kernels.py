"""The heavy kernels of the graph, on the processor and by PyTorch, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from manifoldknn.graph.kernels import GRAPH
from manifoldknn.search.neighbors import Neighbors

EVERY = [GRAPH]
try:
    import torch

    from manifoldknn.device.graph.kernels import TorchGraphKernels

    EVERY.append(TorchGraphKernels(torch.device("cpu")))
except ImportError:  # the core goes without PyTorch
    pass

on_both = pytest.mark.parametrize("kernels", EVERY, ids=lambda kernels: kernels.xp.__name__)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def rows(n, seed):
    """Points of a grid, of which many are equally far from each other."""
    return np.random.default_rng(seed).integers(0, 4, (n, 2)).astype(float)


def some_parts(n, n_parts, seed):
    drawn = np.random.default_rng(seed).integers(0, n_parts, n)
    drawn[:2] = 0, 1
    return np.unique(drawn, return_inverse=True)[1]


@on_both
@few
@given(n=st.integers(2, 30), seed=seeds)
def test_ranked_pairs(kernels, n, seed):
    X = rows(n, seed)
    k = int(np.random.default_rng(seed).integers(1, n))
    lists, D = oracles.nearest(X, k), oracles.distance_matrix(X)
    expected = []
    for i in range(n):
        for j in range(i + 1, n):
            if j in lists[i] or i in lists[j]:
                ranks = [a.index(b) if b in a else k for a, b in ((lists[i], j), (lists[j], i))]
                expected.append((i, j, D[i, j], *ranks))
    away = np.array([[D[i, j] for j in lists[i]] for i in range(n)])
    found = kernels.ranked_pairs(Neighbors(*map(kernels.array, (np.array(lists), away))))
    low, high, length, *ranks = (kernels.host(part) for part in found)
    ranks = (np.minimum(rank, k).tolist() for rank in ranks)
    assert list(zip(low.tolist(), high.tolist(), length.tolist(), *ranks)) == expected


@on_both
@few
@given(n=st.integers(2, 25), share=st.floats(0, 1), seed=seeds)
def test_spanning_forest(kernels, n, share, seed):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < share]
    length = rng.integers(0, 4, len(pairs)).astype(float)
    parts = oracles.Parts(n)
    ordered = sorted(range(len(pairs)), key=lambda e: (length[e], pairs[e]))
    chosen = {e for e in ordered if parts.join(*pairs[e])}
    low, high = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    found, part = kernels.spanning_forest(*map(kernels.array, (low, high, length)), n)
    assert [e for e, kept in enumerate(found.tolist()) if kept] == sorted(chosen)
    part, numbers = part.tolist(), {}
    for i in range(n):  # by the order of first nodes
        together = min(j for j in range(n) if parts.root(j) == parts.root(i))
        assert part[i] == numbers.setdefault(together, len(numbers))


@on_both
@few
@given(n=st.integers(2, 25), seed=seeds)
def test_distances_of_blocks_and_pairs(kernels, n, seed):
    X = rows(n, seed)
    D = oracles.distance_matrix(X)
    asked = np.flatnonzero(np.random.default_rng(seed).random(n) < 0.5)
    blocks = list(kernels.distance_blocks(kernels.array(X), asked, metric="euclidean"))
    assert [row for some, _ in blocks for row in some.tolist()] == asked.tolist()
    for some, block in blocks:
        np.testing.assert_allclose(kernels.host(block), D[some], atol=1e-6)
    one, other = np.nonzero(D > 1)
    found = kernels.pair_distances(kernels.array(X), one, other, metric="euclidean")
    np.testing.assert_allclose(found, [D[i, j] for i, j in zip(one, other)], rtol=1e-12)


@on_both
@few
@given(n=st.integers(3, 40), n_parts=st.integers(2, 8), seed=seeds)
def test_search_of_parts(kernels, n, n_parts, seed):
    rng = np.random.default_rng(seed)
    X, parts = rng.normal(size=(n, 3)), some_parts(n, n_parts, seed)
    n_parts = parts.max() + 1
    search = kernels.part_search(kernels.array(X), parts, metric="euclidean", n_jobs=1)
    means = np.array([X[parts == p].mean(axis=0) for p in range(n_parts)])

    def assert_nearest(found, points, among):
        """Both members of a part of two are equally far from its mean, but for rounding."""
        for i, point, some in zip(found.tolist(), points, among):
            assert i in some
            away = min(np.linalg.norm(X[j] - point) for j in some)
            assert np.linalg.norm(X[i] - point) == pytest.approx(away, rel=1e-9)

    members = [np.flatnonzero(parts == p).tolist() for p in range(n_parts)]
    others = [np.flatnonzero(parts != p).tolist() for p in range(n_parts)]
    every = kernels.arange(n_parts)
    assert [search.members(p).tolist() for p in range(n_parts)] == members
    assert_nearest(search.stand_ins(), means, members)
    assert_nearest(search.nearest_strangers(), means, others)
    asked = rng.integers(0, n_parts, 12)
    looking = rng.integers(0, n, 12)
    found = search.nearest_to_rows(kernels.array(asked), kernels.array(looking))
    assert_nearest(found, X[looking], [members[p] for p in asked])
    np.testing.assert_allclose(kernels.host(search.centres(every)), means, atol=1e-12)
    for p, near in enumerate(search.nearest_parts(n_parts - 1).tolist()):
        away = [np.linalg.norm(means[p] - means[q]) for q in near]
        assert sorted([p, *near]) == list(range(n_parts))
        assert away == sorted(away)
