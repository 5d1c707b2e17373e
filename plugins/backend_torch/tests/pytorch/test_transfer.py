from __future__ import annotations

import numpy as np
import torch

from tritonpy import Tensor
from tritonpy_backend_torch.pytorch.transfer import HostTransfer, ModelTransfer

ONE = Tensor.from_numpy("x", np.ones(2, np.float32))
TEXT = Tensor.from_numpy("t", np.array([b"a"], object))


def test_host_tensors_are_not_moved():
    transfer = HostTransfer()
    placed = transfer.to_device(ONE)
    assert placed.data_ptr() == ONE.data.ctypes.data
    assert transfer.to_host([placed])[0] is placed
    assert transfer.to_device(TEXT) == ["a"]
    transfer.synchronize()
    transfer.release_cache()


def test_a_self_placed_model_gets_inputs_on_the_host_or_its_weight_device(monkeypatch):
    assert ModelTransfer(None).to_device(ONE).device == torch.device("cpu")
    transfer = ModelTransfer(torch.device("meta"))
    assert transfer.to_device(ONE).device == torch.device("meta")
    assert transfer.to_device(TEXT) == ["a"]


def test_a_self_placed_model_is_synchronized_on_all_devices(monkeypatch):
    waited, emptied = [], []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    ModelTransfer(None).synchronize()
    ModelTransfer(None).release_cache()
    assert (waited, emptied) == ([0, 1], [1])
