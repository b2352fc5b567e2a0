"""The seam: steps are chosen by device, and come back from files on any machine."""

import pickle

import numpy as np
import pytest

from manifoldknn.device import steps
from manifoldknn.device.steps import Steps, choose_steps, usable_steps
from manifoldknn.exceptions import DeviceWarning


def methods(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_the_cpu_is_chosen_by_name_and_by_default():
    assert type(choose_steps("cpu", None)) is Steps
    assert type(choose_steps("auto", np.zeros((3, 2)))) is Steps


def test_a_model_from_elsewhere_goes_on_with_the_cpu(monkeypatch):
    def missing(*_):
        raise ImportError("PyTorch")

    monkeypatch.setattr(steps, "chosen_device", missing)
    with pytest.warns(DeviceWarning, match="fitted on cuda:1, which this machine does not have"):
        assert type(usable_steps("cuda:1")) is Steps


def test_both_machines_take_the_same_steps():
    pytest.importorskip("torch", reason="PyTorch is not installed: the GPU path is not tested")
    from manifoldknn.device.torch_steps import TorchSteps

    assert methods(TorchSteps) == methods(Steps)
    chosen = choose_steps("torch:cpu", None)
    assert isinstance(chosen, TorchSteps)
    assert isinstance(pickle.loads(pickle.dumps(chosen)), TorchSteps)
