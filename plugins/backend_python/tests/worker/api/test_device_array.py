from __future__ import annotations

import numpy as np

from tritonpy_worker.api.device_array import DeviceArray

from .fake_driver import FakeDriver


def test_the_host_gets_a_copy(monkeypatch):
    driver = FakeDriver.install(monkeypatch)
    memory = np.arange(6, dtype=np.int16).reshape(2, 3)
    array = DeviceArray(memory, memory.__array_interface__["data"][0], (2, 3), memory.dtype, (2, 5))
    copy = array.to_host()
    assert copy.tolist() == memory.tolist()
    assert copy.dtype == np.int16
    assert driver.called("cuMemcpyDtoH_v2") == [5]
    copy[0, 0] = 99
    assert memory[0, 0] == 0


def test_empty_arrays_are_not_copied(monkeypatch):
    driver = FakeDriver.install(monkeypatch)
    assert DeviceArray(None, 0, (0, 3), np.dtype(np.float32), (2, 0)).to_host().shape == (0, 3)
    assert driver.calls == []
