"""Devices by name, tensors as arrays, tiles; what needs no PyTorch is tested without it."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from manifoldknn import ManifoldKNNClassifier
from manifoldknn.base import tensors
from manifoldknn.base.tensors import as_numpy, check_device, chosen_device, chosen_rows, is_tensor


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CUDA", 0, None, "mps:1", "cuda:-1"])
def test_unknown_devices(device):
    with pytest.raises(ValueError, match=r"device=.* must be 'auto', 'cpu', 'cuda', 'cuda:N'"):
        check_device(device)
    clf = ManifoldKNNClassifier(device=device)
    with pytest.raises(ValueError, match="device="):
        clf.fit([[0.0], [1.0]], [0, 1])


def test_the_cpu_needs_no_torch():
    assert chosen_device("cpu", None) is None
    assert chosen_device("auto", np.zeros((2, 2))) is None


def test_missing_torch_says_what_to_install(monkeypatch):
    monkeypatch.setattr(tensors.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"pip install 'manifoldknn\[gpu\]', or use device='cpu'"):
        ManifoldKNNClassifier(device="cuda").fit([[0.0], [1.0], [2.0]], [0, -1, 1])


def test_what_is_no_tensor_stays_as_it_is():
    values = [1, 2]
    assert as_numpy(values) is values
    assert not is_tensor(np.zeros(3))
    assert chosen_rows(np.arange(4), np.array([True, False, True, False])).tolist() == [0, 2]


def test_fitting_on_the_cpu_imports_no_torch():
    code = (
        "import sys; from manifoldknn import ManifoldKNNClassifier\n"
        "ManifoldKNNClassifier().fit([[0.], [1.], [2.]] * 5, [0, -1, 1] * 5).predict([[1.5]])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        reason = "PyTorch is not installed: the GPU path is not tested"
        return pytest.importorskip("torch", reason=reason)

    def test_missing_gpu_says_what_to_do(self, torch, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        with pytest.raises(ValueError, match=r"finds no such GPU: install a driver.*device='cpu'"):
            chosen_device("cuda", None)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        with pytest.raises(ValueError, match="made for Apple's Metal"):
            chosen_device("mps", None)

    def test_a_number_that_no_gpu_has(self, torch, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        assert str(chosen_device("cuda:1", None)) == "cuda:1"
        with pytest.raises(ValueError, match="there are 2 GPUs, counted from 0"):
            chosen_device("cuda:2", None)

    def test_auto_follows_a_tensor(self, torch):
        assert chosen_device("auto", torch.zeros(2, 2)) is None
        assert chosen_device("auto", torch.zeros(2, 2, device="meta")).type == "meta"
        assert chosen_device("torch:cpu", None) == torch.device("cpu")

    @pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool"])
    def test_tensors_as_arrays(self, torch, dtype):
        values = torch.tensor([[0, 1], [1, 1]], dtype=getattr(torch, dtype))
        array = as_numpy(values.requires_grad_() if values.is_floating_point() else values)
        assert isinstance(array, np.ndarray)
        assert array.tolist() == [[0, 1], [1, 1]]
        assert chosen_rows(values, np.array([False, True])).tolist() == [[1, 1]]

    def test_read_only_arrays_are_copied(self, torch):
        array = np.arange(3.0)
        array.flags.writeable = False
        tensor = tensors.moved(array, torch.device("cpu"))
        tensor[0] = 7
        assert array[0] == 0

    def test_tiles_shrink_until_they_fit_and_every_row_is_done_once(self, torch):
        done = np.zeros(1000, dtype=int)

        def work(part):
            if part.stop - part.start > 70:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            done[part] += 1

        tensors.with_tiles(work, 1000, 400, torch.device("cpu"))
        assert (done == 1).all()

    @pytest.mark.parametrize(
        "words",
        [
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 8 bytes. Error code 12 (Cannot allocate memory)",
            "CUDA error: out of memory",
            "MPS backend out of memory (MPS allocated: 1 GB)",
        ],
    )
    def test_words_of_used_up_memory(self, words):
        assert tensors.is_out_of_memory(RuntimeError(words))

    def test_words_of_other_errors(self):
        assert not tensors.is_out_of_memory(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED"))

    def test_a_real_request_for_too_much_is_known(self, torch):
        with pytest.raises(RuntimeError) as caught:
            torch.empty(1 << 60, dtype=torch.uint8)
        assert tensors.is_out_of_memory(caught.value)

    @pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
    def test_sparse_tensors_are_refused_in_one_way_everywhere(self, torch, layout):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls these layouts unfinished
            X = getattr(torch.eye(6), layout)()
        y = [0, 1, -1, -1, -1, -1]
        for device in ("cpu", "auto", "torch:cpu"):
            clf = ManifoldKNNClassifier(graph_neighbors=3, device=device)
            with pytest.raises(ValueError, match=r"layout torch.sparse.*to_dense\(\)") as caught:
                clf.fit(X, y)
            assert "device" not in str(caught.value)
            clf.fit(torch.eye(6) + torch.rand(6, 6), y)
            for ask in (clf.predict, clf.score_samples, clf.partial_fit):
                with pytest.raises(ValueError, match=r"layout torch.sparse.*to_dense\(\)"):
                    ask(X)

    def test_devices_of_torch_serve_as_names(self, torch):
        assert chosen_device(torch.device("cpu"), None) is None
        check_device(torch.device("cuda", 3))
        check_device(torch.device("mps"))
        check_device(torch.device("mps", 0))
        with pytest.raises(ValueError, match=r"device=device\(type='meta'\) must be"):
            check_device(torch.device("meta"))

    def test_a_tile_that_cannot_shrink_is_an_error(self, torch):
        def work(_):
            raise torch.OutOfMemoryError("CUDA out of memory")

        with pytest.raises(torch.OutOfMemoryError):
            tensors.with_tiles(work, 100, 50, torch.device("cpu"))
