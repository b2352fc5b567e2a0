"""Products are as exact as asked for, and the user's setting comes back."""

import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")

from manifoldknn.device.precision import matrix_precision  # noqa: E402

PRECISION = """
import torch
from manifoldknn.device.precision import matrix_precision

def now():
    try:
        old = torch.get_float32_matmul_precision()
    except RuntimeError:
        old = "mixed"
    return old, cuda.fp32_precision, mkldnn.fp32_precision, torch.backends.fp32_precision

cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
{setting}
before = now()
with matrix_precision("high"):
    assert cuda.fp32_precision == "tf32"
    with matrix_precision("highest"):
        assert cuda.fp32_precision == mkldnn.fp32_precision == "ieee"
    assert cuda.fp32_precision == "tf32"
assert now() == before, (now(), before)
try:
    with matrix_precision("high"):
        raise KeyError
except KeyError:
    assert now() == before
torch.backends.fp32_precision = "ieee"
inherits = before[3] == "tf32"  # it followed the setting for all, and does so still
assert cuda.fp32_precision == ("ieee" if inherits or before[1] == "none" else before[1])
"""


@pytest.mark.parametrize(
    "setting",
    [
        "pass",
        "torch.set_float32_matmul_precision('highest')",
        "torch.set_float32_matmul_precision('high')",
        "torch.set_float32_matmul_precision('medium')",
        "cuda.allow_tf32 = True",
        "cuda.fp32_precision = 'tf32'",
        "cuda.fp32_precision = 'ieee'",
        "mkldnn.fp32_precision = 'bf16'",
        "torch.backends.fp32_precision = 'tf32'",
    ],
)
def test_the_users_precision_of_products_comes_back(setting):
    """Each in a process of its own: settings of PyTorch leave traces."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this PyTorch has one setting for all backends")
    code = PRECISION.replace("{setting}", setting)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_precision_in_older_versions_of_torch(monkeypatch):
    kept = ["medium"]
    monkeypatch.setattr(torch.backends.cuda, "matmul", object())
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: kept[0])
    monkeypatch.setattr(
        torch, "set_float32_matmul_precision", lambda name: kept.__setitem__(0, name)
    )
    with matrix_precision("high"):
        assert kept == ["high"]
    assert kept == ["medium"]


def test_threads_wait_for_each_others_precision():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def exact():
        with matrix_precision("highest"):
            seen.append(("second", leave.is_set()))

    def quick():
        with matrix_precision("high"):
            inside.set()
            leave.wait(10)
            seen.append(("first", True))

    threads = [threading.Thread(target=quick), threading.Thread(target=exact)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.1)
    assert threads[1].is_alive()
    leave.set()
    for thread in threads:
        thread.join(10)
    assert seen == [("first", True), ("second", True)]
