"""The search of a model on a device behaves as every index does."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.search import index as module  # noqa: E402
from manifoldknn.device.search.index import TorchIndex, device_name, exact_pays  # noqa: E402
from manifoldknn.search.growing import GrowingIndex  # noqa: E402
from manifoldknn.search.neighbors import ExactIndex  # noqa: E402

CPU = torch.device("cpu")


def clustered(n, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(8, d))[rng.integers(0, 8, n)] + 0.3 * rng.normal(size=(n, d))


def opened(X, **options):
    return TorchIndex(X, metric="euclidean", device=CPU, **options)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_as_the_exact_index(as_tensor):
    X, Q = clustered(400), clustered(30, seed=1)
    index, expected = opened(torch.from_numpy(X) if as_tensor else X), ExactIndex(X)
    assert index.is_exact
    assert index.n_samples == 400
    assert index.template.shape == (0, 5)
    assert index.template.dtype == np.float64
    assert (index.rows(np.array([3, 7, 3])) == X[[3, 7, 3]]).all()
    for one, two in (
        (index.among_samples(9), expected.among_samples(9)),
        (index.query(Q, 4), expected.query(Q, 4)),
    ):
        assert (one.indices == two.indices).all()
        assert one.indices.dtype == np.intp
        np.testing.assert_allclose(one.distances, two.distances, rtol=1e-13)
    assert (index.X == X).all()


def test_inverted_where_that_pays(monkeypatch):
    X = clustered(900)
    assert not opened(X, engine="inverted").is_exact
    assert exact_pays(900, 900, 5)
    monkeypatch.setattr(module, "_EXACT_WORK", 1e6)
    assert not exact_pays(900, 900, 5)
    assert not opened(X).is_exact
    assert opened(X, engine="exact").is_exact


def test_few_new_rows_are_compared_with_all(monkeypatch):
    X = clustered(900)
    Q = X[:40] + 0.02
    index = opened(X, engine="inverted")
    expected = ExactIndex(X).query(Q, 8)
    assert (index.query(Q, 8).indices == expected.indices).all()
    monkeypatch.setattr(module, "_FEW_PRODUCTS", 0)
    found = index.query(Q, 8).indices
    hits = np.mean([len(set(a) & set(b)) for a, b in zip(found, expected.indices)]) / 8
    assert hits > 0.9


@pytest.mark.parametrize("engine", ["exact", "inverted"])
def test_copies_and_pickles_open_the_device_again(engine):
    X = clustered(700)
    index = opened(torch.from_numpy(X), engine=engine, seed=5)
    expected = index.among_samples(6)
    for other in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert other._device_rows is None
        assert other.is_exact == index.is_exact
        assert (other.among_samples(6).indices == expected.indices).all()


def test_a_pickle_without_its_device_falls_back_to_the_cpu(monkeypatch):
    X, Q = clustered(300), clustered(20, seed=4)
    written = pickle.dumps(opened(X))

    def missing(*_):
        raise ValueError("no such GPU")

    monkeypatch.setattr(module, "chosen_device", missing)
    index = pickle.loads(written)
    found = index.query(Q, 3)  # no warning: the model gave one when it was read
    assert (found.indices == ExactIndex(X).query(Q, 3).indices).all()
    assert index.device_rows is None
    assert (index.among_samples(3).indices == ExactIndex(X).among_samples(3).indices).all()


def test_grows():
    X, more = clustered(300), clustered(50, seed=6)
    index = GrowingIndex(opened(X)).appended(more)
    expected = ExactIndex(np.concatenate([X, more])).among_samples(6)
    assert (index.among_samples(6).indices == expected.indices).all()


def test_names_of_devices():
    assert device_name(CPU) == "torch:cpu"
    assert device_name(torch.device("cuda", 1)) == "cuda:1"
    assert device_name(torch.device("mps", 0)) == device_name(torch.device("mps")) == "mps"
