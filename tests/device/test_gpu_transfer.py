import pytest

torch = pytest.importorskip("torch", reason="the GPU's steps need PyTorch")
from manifoldknn.device import kernels as transfer  # noqa: E402


def test_a_tensor_on_the_cpu_is_not_copied():
    values = torch.arange(6).reshape(2, 3)
    array = transfer.to_numpy(values)
    array[0, 0] = 7
    assert values[0, 0] == 7
    assert array.shape == (2, 3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool])
@pytest.mark.parametrize("shape", [(0,), (999,), (37, 41), (64, 16)])
def test_pieces_make_the_whole(monkeypatch, shape, dtype):
    monkeypatch.setattr(transfer, "_SENT_BYTES", 256)
    values = torch.randint(0, 100, shape, device="cuda").to(dtype)
    assert (transfer.to_numpy(values) == values.cpu().numpy()).all()
    swapped = values.movedim(0, -1)  # not row by row in memory
    assert (transfer.to_numpy(swapped) == swapped.cpu().numpy()).all()
