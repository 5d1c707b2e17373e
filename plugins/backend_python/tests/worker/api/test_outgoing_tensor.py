from __future__ import annotations

import numpy as np

from tritonpy_worker.api.device_array import DeviceArray
from tritonpy_worker.api.outgoing_tensor import outgoing_tensor
from tritonpy_worker.api.tensor import Tensor


def test_an_array_is_sent_unchanged():
    array = np.ones((2, 3), np.float32)
    sent = outgoing_tensor(Tensor("x", array))
    assert sent == ("x", "FP32", (2, 3), array)
    assert sent.data is array


def test_strings_are_sent_in_wire_format():
    sent = outgoing_tensor(Tensor("x", np.array([[b"a"], [b"bc"]], object)))
    assert (sent.datatype, sent.shape) == ("BYTES", (2, 1))
    assert sent.data.tobytes() == b"\1\0\0\0a\2\0\0\0bc"


def test_an_empty_array_of_strings_has_no_bytes():
    sent = outgoing_tensor(Tensor("x", np.empty((0, 2), object)))
    assert (sent.shape, sent.data.nbytes) == ((0, 2), 0)


def test_device_memory_is_copied_each_time(monkeypatch):
    fetched = []

    def to_host(array):
        fetched.append(array.pointer)
        return np.full(array.shape, len(fetched), array.dtype)

    monkeypatch.setattr(DeviceArray, "to_host", to_host)
    device = DeviceArray(None, 4096, (2,), np.dtype(np.int32), (2, 1))
    tensor = Tensor.received("x", "INT32", (2,), device)
    assert outgoing_tensor(tensor).data.tolist() == [1, 1]
    assert outgoing_tensor(tensor).data.tolist() == [2, 2]
    assert fetched == [4096, 4096]
