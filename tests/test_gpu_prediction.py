"""Votes for new rows by PyTorch are those of the NumPy path."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.gpu import prediction  # noqa: E402
from manifoldknn.gpu.index import TorchIndex  # noqa: E402
from manifoldknn.gpu.prediction import KnownWeights, device_votes  # noqa: E402
from manifoldknn.nearest import NearestLabeled  # noqa: E402
from manifoldknn.neighbors import ExactIndex  # noqa: E402
from manifoldknn.reconstruct import combined, reconstructed_weights  # noqa: E402
from manifoldknn.vote import class_shares  # noqa: E402

CPU = torch.device("cpu")


def known(n, n_voters, n_kept, seed=0, decades=300):
    """Random weights over hundreds of decades, some rows unreached."""
    rng = np.random.default_rng(seed)
    weights = -np.sort(-rng.random((n, n_kept)), axis=1)
    weights /= weights[:, :1]
    voters = np.argsort(rng.random((n, n_voters)), axis=1)[:, :n_kept].astype(np.int32)
    log_scale = -decades * rng.random(n)
    lost = rng.random(n) < 0.3
    weights[lost], log_scale[lost] = 0.0, -np.inf
    return NearestLabeled(weights, voters, log_scale)


def opened(X, metric="euclidean"):
    return TorchIndex(X, metric=metric, device=CPU)


@pytest.mark.parametrize("n_kept", [3, 12])
def test_combined_weights(n_kept):
    rng = np.random.default_rng(1)
    table = known(50, 12, n_kept)
    z = rng.dirichlet(np.ones(4), size=200) * (rng.random((200, 4)) < 0.7)
    z[:, 0] += 1 - z.sum(axis=1)
    z[:50] = np.eye(4)[0]
    near = np.argsort(rng.random((200, 50)), axis=1)[:, :4]
    expected = combined(z, near, table, n_voters=12)
    rows = opened(rng.random((50, 3))).device_rows
    sums, scale = KnownWeights(table, 12, rows).combined(
        torch.from_numpy(z), torch.from_numpy(near)
    )
    sums, scale = sums.numpy(), scale.numpy()
    unreached = np.isneginf(expected.log_scale)
    assert (np.isneginf(scale) == unreached).all()
    assert unreached.any()
    here = ~unreached
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(
            scale[here] + np.log(sums[here].max(axis=1)), expected.log_scale[here], atol=1e-12
        )
    picked = np.take_along_axis(sums[here], expected.voters[here], axis=1)
    picked /= picked[:, :1]
    np.testing.assert_allclose(picked, expected.weights[here], atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_kept", [5, 9])
def test_votes_of_new_rows(metric, n_kept):
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(300, 6)), rng.normal(size=(500, 6))
    Q[:20] = X[:20]
    table, classes = known(300, 9, n_kept, decades=5), rng.integers(0, 4, 9)
    nearest = reconstructed_weights(
        Q, ExactIndex(X, metric=metric), table, n_neighbors=7, n_voters=9
    )
    expected = class_shares(nearest.weights, classes[nearest.voters], 3, 4)
    index = opened(X, metric)
    assert index.device_rows is not None
    parts = list(
        device_votes(
            Q, index, KnownWeights(table, 9, index.device_rows), n_neighbors=7, n_voting=3,
            voter_classes=classes, class_factors=np.ones(4),
        )
    )  # fmt: skip
    shares = np.concatenate([part[1] for part in parts])
    np.testing.assert_allclose(shares, expected, atol=1e-9)
    nobody = np.concatenate([part[2] for part in parts])
    assert (nobody == np.isneginf(nearest.log_scale)).all()


def test_chunks_shrink_when_memory_runs_out(monkeypatch):
    rng = np.random.default_rng(3)
    X, Q = rng.normal(size=(200, 4)), rng.normal(size=(300, 4))
    index, table = opened(X), known(200, 6, 6, decades=5)
    assert index.device_rows is not None
    honest = prediction.torch_simplex_weights
    sizes = []

    def full(points, samples, near):
        sizes.append(len(points))
        if len(points) > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return honest(points, samples, near)

    settings = {"n_neighbors": 5, "n_voting": 3, "voter_classes": np.arange(6) % 2,
                "class_factors": np.array([1.0, 2.0])}  # fmt: skip
    known_weights = KnownWeights(table, 6, index.device_rows)
    expected = list(device_votes(Q, index, known_weights, **settings))
    assert len(expected) == 1
    monkeypatch.setattr(prediction, "torch_simplex_weights", full)
    parts = list(device_votes(Q, index, known_weights, **settings))
    assert len(parts) > 7
    assert sizes[0] == 300
    np.testing.assert_allclose(
        np.concatenate([part[1] for part in parts]), expected[0][1], atol=1e-12
    )


def test_new_rows_that_are_not_finite_are_refused():
    X = np.random.default_rng(4).normal(size=(50, 3))
    index = opened(X)
    assert index.device_rows is not None
    weights = KnownWeights(known(50, 3, 3), 3, index.device_rows)
    X[2, 1] = np.nan
    settings = {"n_neighbors": 5, "n_voting": 3, "voter_classes": np.arange(3),
                "class_factors": np.ones(3)}  # fmt: skip
    with pytest.raises(ValueError, match="Input X contains NaN"):
        list(device_votes(X, index, weights, **settings))
