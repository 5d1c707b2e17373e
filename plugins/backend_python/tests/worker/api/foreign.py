"""Tensors of another framework that supports DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tritonpy_worker.api.capsules import address_in, tensor_at
from tritonpy_worker.api.dlpack import export

NO_SHARING = (
    None
    if hasattr(np.ndarray, "__dlpack__")
    else "needs numpy 1.22, whose arrays lend their memory"
)


class Foreign:
    """Exports `array` with a given description. `streams` are the streams of its consumers."""

    def __init__(self, array: Any, device: Any = (1, 0), **described: Any) -> None:
        self._array = array
        self._device = device
        self._described = described
        self.streams: list[Any] = []

    def capsule(self) -> Any:
        array = self._array
        bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
        capsule = export(f"UINT{8 * array.itemsize}", array.shape, bits)
        tensor = tensor_at(address_in(capsule))
        tensor.device.kind, tensor.device.number = self._device
        for name in ("code", "bits", "lanes"):
            setattr(tensor.dtype, name, self._described.get(name, getattr(tensor.dtype, name)))
        if "strides" in self._described:
            self._strides = (ctypes.c_int64 * array.ndim)(*self._described["strides"])
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        if "byte_offset" in self._described:
            tensor.byte_offset = self._described["byte_offset"]
            tensor.data -= self._described["byte_offset"]
        return capsule

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.capsule()

    def __dlpack_device__(self) -> Any:
        return self._device
