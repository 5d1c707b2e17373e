"""A fake CUDA driver, with host memory as device memory."""

from __future__ import annotations

import ctypes
from typing import Any

from tritonpy_worker.api import cuda


class FakeDriver:
    """Records the functions and devices of calls. `failing` maps functions to their status."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.failing: dict[str, int] = {}
        self.pushed: list[int] = []
        self.retained = 0
        self._device = -1

    @classmethod
    def install(cls, monkeypatch: Any) -> FakeDriver:
        driver = cls()
        monkeypatch.setattr(cuda.ctypes, "CDLL", lambda name: {"libcuda.so.1": driver}[name])
        return driver

    @staticmethod
    def remove(monkeypatch: Any) -> None:
        def missing(name):
            raise OSError(f"{name}: cannot open shared object file")

        monkeypatch.setattr(cuda.ctypes, "CDLL", missing)

    def called(self, function: str) -> list[int]:
        return [device for name, device in self.calls if name == function]

    def _note(self, function: str) -> int:
        self.calls.append((function, self._device))
        return self.failing.get(function, 0)

    def cuInit(self, flags):
        return self._note("cuInit")

    def cuDeviceGet(self, handle, number):
        handle._obj.value = number
        self._device = number
        return self._note("cuDeviceGet")

    def cuDevicePrimaryCtxRetain(self, context, handle):
        context._obj.value = 0x1000 + handle.value
        self.retained += 1
        return self._note("cuDevicePrimaryCtxRetain")

    def cuDevicePrimaryCtxRelease_v2(self, handle):
        self.retained -= 1
        return self._note("cuDevicePrimaryCtxRelease_v2")

    def cuCtxPushCurrent_v2(self, context):
        self.pushed.append(context.value)
        return self._note("cuCtxPushCurrent_v2")

    def cuCtxPopCurrent_v2(self, context):
        context._obj.value = self.pushed.pop()
        return self._note("cuCtxPopCurrent_v2")

    def cuCtxSynchronize(self):
        assert self.pushed
        return self._note("cuCtxSynchronize")

    def cuMemcpyDtoH_v2(self, target, source, size):
        assert self.pushed
        ctypes.memmove(target.value, source.value, size.value)
        return self._note("cuMemcpyDtoH_v2")

    def cuGetErrorString(self, status, text):
        if status == 999:
            return 1
        text._obj.value = b"out of memory %d" % status
        return 0
