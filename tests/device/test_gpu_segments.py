import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device import kernels as segments  # noqa: E402
from manifoldknn.device.kernels import Runs, ragged, run_offsets  # noqa: E402


@settings(max_examples=80, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    piece=st.sampled_from([2, 3, 128]),
    seed=st.integers(0, 2**32 - 1),
)
def test_runs_are_reduced_as_numpy_does(lengths, piece, seed):
    values = np.random.default_rng(seed).normal(size=(sum(lengths), 3))
    values[::5] = -np.inf
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    usual, segments._PIECE = segments._PIECE, piece
    try:
        runs = Runs(torch.as_tensor(offsets))
        largest, sums = (
            runs.max(torch.as_tensor(values)),
            runs.sum(torch.exp(torch.as_tensor(values))),
        )
    finally:
        segments._PIECE = usual
    assert (largest.numpy() == np.maximum.reduceat(values, offsets[:-1])).all()
    np.testing.assert_allclose(sums, np.add.reduceat(np.exp(values), offsets[:-1]), rtol=1e-13)


def test_runs_of_equal_numbers():
    assert run_offsets(torch.tensor([4, 4, 1, 2, 2, 2])).tolist() == [0, 2, 3, 6]
    assert Runs.of_numbers(torch.tensor([4, 4, 1])).offsets.tolist() == [0, 2, 3]


def test_stretches_one_after_the_other():
    places, owner = ragged(torch.tensor([10, 0, 5]), torch.tensor([2, 0, 3]))
    assert places.tolist() == [10, 11, 5, 6, 7]
    assert owner.tolist() == [0, 0, 2, 2, 2]
