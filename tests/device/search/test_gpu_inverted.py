"""Approximate neighbours by PyTorch have the recall they say they have."""

import numpy as np
import pytest

from manifoldknn.search.neighbors import ExactIndex

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.resident_rows import DeviceRows  # noqa: E402
from manifoldknn.device.search import inverted  # noqa: E402
from manifoldknn.device.search.inverted import (  # noqa: E402
    RECALL,
    InvertedCells,
    cell_centers,
    nearest_centers,
    share_found,
)

CPU = torch.device("cpu")


def clustered(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, d))[rng.integers(0, 20, n)] + 0.3 * rng.normal(size=(n, d))


def opened(X, metric="euclidean", seed=0):
    return InvertedCells(DeviceRows(X, metric, CPU), seed=seed)


def recall(found, true):
    hits = [len(set(f) & set(t)) for f, t in zip(found.tolist(), true.tolist())]
    return np.mean(hits) / true.shape[1]


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(3000, 6)),
        clustered(3000, 100).astype(np.float32),
        np.random.default_rng(1).random((800, 200)),
        1e6 + clustered(2000, 12),
    ],
    ids=["gaussian", "clusters", "200 uniform columns", "far from the origin"],
)
def test_recall_is_measured_and_reached_whatever_the_data(X):
    cells = opened(X)
    near, away = (found.numpy() for found in cells.among_samples(30))
    true = ExactIndex(X).among_samples(30)
    assert cells.recall >= RECALL
    assert recall(near, true.indices) == pytest.approx(cells.recall, abs=0.02)
    assert not (near == np.arange(len(X))[:, None]).any()
    assert all(len(set(row)) == 30 for row in near.tolist())
    assert (np.diff(away, axis=1) >= 0).all()
    difference = X[:, None, :].astype(np.float64) - X[near]
    np.testing.assert_allclose(away, np.sqrt((difference**2).sum(axis=2)), rtol=1e-12)


def test_two_runs_are_the_same_and_the_seed_matters():
    X = clustered(2500, 20)
    first, second, other = (opened(X, seed=seed) for seed in (3, 3, 4))
    assert (first._centers == second._centers).all()
    assert not (first._centers == other._centers).all()
    for one, two in zip(first.among_samples(10), second.among_samples(10)):
        assert (one == two).all()


def test_new_rows():
    X = clustered(3000, 30)
    cells = opened(X)
    near, away = cells.search(cells.rows.new(X[:200]), 5)
    assert (near[:, 0].numpy() == np.arange(200)).all()
    assert (away[:, 0] == 0).all()
    elsewhere = clustered(100, 30, seed=9)
    near, _ = cells.search(cells.rows.new(elsewhere), 10)
    assert recall(near, ExactIndex(X).query(elsewhere, 10).indices) > 0.8
    new = X[:300] + 0.1 * np.random.default_rng(1).normal(size=(300, 30))
    near, _ = cells.search(cells.rows.new(new), 10)
    assert recall(near, ExactIndex(X).query(new, 10).indices) > RECALL
    alone = torch.cat([cells.search(cells.rows.new(row[None]), 10)[0] for row in new[:20]])
    assert (alone == near[:20]).all()


def test_cosine():
    X = clustered(2500, 40)
    near, away = opened(X, "cosine").among_samples(10)
    true = ExactIndex(X, metric="cosine").among_samples(10)
    assert recall(near, true.indices) > 0.95
    found = near.numpy()[:, 0] == true.indices[:, 0]
    np.testing.assert_allclose(away.numpy()[found, 0], true.distances[found, 0], atol=1e-14)


def test_many_duplicates():
    X = np.repeat(np.random.default_rng(2).normal(size=(40, 20)), 50, axis=0)
    near, away = opened(X).among_samples(30)
    assert (away == 0).all()
    assert (near.numpy() // 50 == np.arange(2000)[:, None] // 50).all()
    assert not (near.numpy() == np.arange(2000)[:, None]).any()


def test_cells_too_small_for_the_neighbours_asked_for():
    X = np.random.default_rng(3).normal(size=(400, 5))
    cells = opened(X)
    cells.n_probes = 1
    cells._link(cells._products)
    near, away = cells.among_samples(150)
    expected = ExactIndex(X).among_samples(150)
    assert torch.isfinite(away).all()
    short = near.numpy() == expected.indices
    assert short.all(axis=1).any()  # rows that were searched everywhere
    assert all(len(set(row)) == 150 for row in near.tolist())


def test_small_batches_of_cells_and_products_change_nothing(monkeypatch):
    X = clustered(1500, 8)
    expected = opened(X).among_samples(10)
    monkeypatch.setattr(inverted, "_POSITIONS", 200)
    monkeypatch.setattr(inverted, "_SCORES", 5000)
    for one, two in zip(opened(X).among_samples(10), expected):
        assert (one == two).all()


def literal_links(cells):
    """For every cell, the cells near some row of it or its centre, by sorting all distances."""
    D = torch.cdist(cells._products.double(), cells._centers.double())
    near = torch.argsort(D, dim=1, stable=True)[:, : cells.n_probes]
    own = torch.argsort(torch.cdist(*[cells._centers.double()] * 2), dim=1, stable=True)
    linked = [set(row[: cells.n_probes - 1]) | {c} for c, row in enumerate(own.tolist())]
    for row in near.tolist():
        linked[row[0]] |= set(row)
    return [sorted(row) for row in linked]


def test_links_are_those_of_all_rows_whatever_the_tiles(monkeypatch):
    cells = opened(clustered(900, 4))
    cells.n_probes = 5
    for tile, at_once in ((1 << 31, 1 << 28), (30_000, 1)):
        monkeypatch.setattr(inverted, "_LINK_BYTES", tile)
        monkeypatch.setattr(inverted, "_LINKS_AT_ONCE", at_once)
        cells._link(cells._products)
        links = np.split(cells._linked, cells._links[1:-1])
        assert [row.tolist() for row in links] == literal_links(cells)


def test_linking_goes_on_in_smaller_tiles_once_memory_runs_out(monkeypatch):
    cells = opened(clustered(900, 4))
    before, near = (cells._linked, cells._links), cells._cells_near

    def limited(products, count):
        if len(products) > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return near(products, count)

    monkeypatch.setattr(cells, "_cells_near", limited)
    cells._link(cells._products)
    assert (cells._linked == before[0]).all()
    assert (cells._links == before[1]).all()


def test_centers_are_the_means_of_their_rows():
    X = torch.from_numpy(clustered(2000, 3).astype(np.float32) / 5)
    centers, norms = cell_centers(X, np.random.default_rng(0))
    cells = nearest_centers(X, centers, norms, 2)
    D = torch.cdist(X.double(), centers.double())
    assert (cells == torch.topk(D, 2, largest=False)[1]).double().mean() > 0.999
    spread = (X - centers[cells[:, 0]]).square().sum(1).mean()
    start = (X - X.mean(0)).square().sum(1).mean()
    assert spread < 0.1 * start


def test_share_found():
    truth = torch.tensor([[1, 2], [3, 4]])
    assert share_found(truth, torch.tensor([[2, 9], [4, 3]])) == 0.75
