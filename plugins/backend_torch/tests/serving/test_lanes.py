from __future__ import annotations

import numpy as np
import torch

from tritonpy import Tensor
from tritonpy_backend_torch.serving.lanes import HostLane, ModelLane

ONE = Tensor.from_numpy("x", np.ones(2, np.float32))
TEXT = Tensor.from_numpy("t", np.array([b"a"], object))


def test_on_the_host_nothing_moves():
    lane = HostLane()
    placed = lane.placed(ONE)
    assert placed.data_ptr() == ONE.data.ctypes.data
    assert lane.fetched([placed])[0] is placed
    assert lane.placed(TEXT) == ["a"]
    lane.settle()
    lane.clean()


def test_a_model_of_its_own_devices_gets_inputs_on_the_host_or_where_its_weights_are(monkeypatch):
    assert ModelLane(None).placed(ONE).device == torch.device("cpu")
    lane = ModelLane(torch.device("meta"))
    assert lane.placed(ONE).device == torch.device("meta")
    assert lane.placed(TEXT) == ["a"]


def test_a_model_of_its_own_devices_is_waited_for_on_each_of_them(monkeypatch):
    waited, emptied = [], []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    ModelLane(None).settle()
    ModelLane(None).clean()
    assert (waited, emptied) == ([0, 1], [1])
