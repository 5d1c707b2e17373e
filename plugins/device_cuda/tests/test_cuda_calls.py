from __future__ import annotations

import ctypes
import enum
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tritonpy.plugins import install_command
from tritonpy_device_cuda import cuda_calls
from tritonpy_device_cuda.cuda_calls import CudaCalls, CudaError, open_cuda_calls

HANDLE = bytes(range(64))


class Error(enum.IntEnum):
    """A fake of cudaError_t and CUresult."""

    SUCCESS = 0
    INVALID = 1


class Bindings:
    """A fake of the cuda-python modules with one allocation of 8 bytes.

    `calls` records the calls, `device` is the current device.
    """

    def __init__(self):
        self.memory = np.arange(8, dtype=np.uint8)
        self.handle = ctypes.create_string_buffer(64)
        self.calls = []
        self.device = 0
        self.fails = self.overflows = ""

    def cudaIpcMemHandle_t(self):
        return SimpleNamespace(getPtr=lambda: ctypes.addressof(self.handle))

    cudaIpcMemLazyEnablePeerAccess = cudaHostAllocPortable = 1  # noqa: N815  its name
    cudaMemcpyKind = SimpleNamespace(cudaMemcpyDefault=4)  # noqa: N815  its name

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            if name == self.overflows:
                raise OverflowError("too large")
            if name == self.fails:
                return Error.INVALID, *[None] * (name == "cudaIpcOpenMemHandle")
            if name == "cudaSetDevice":
                self.device = arguments[0]
            if name == "cudaMemcpy":
                ctypes.memmove(*arguments[:3])
            address = self.memory.ctypes.data
            results = {
                "cudaGetDevice": [self.device],
                "cudaIpcOpenMemHandle": [address],
                "cuMemGetAddressRange": [address, 8],
                "cudaHostAlloc": [address],
                "cudaMalloc": [address],
            }
            return Error.SUCCESS, *results.get(name, [])

        call.__name__ = name
        return call


@pytest.fixture
def bindings(monkeypatch):
    made = Bindings()
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", made)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", made)
    return made


def test_a_handle_opens_to_the_address_and_size_of_the_allocation(bindings):
    address, size = CudaCalls().open(HANDLE, 3)
    assert (address, size) == (bindings.memory.ctypes.data, 8)
    assert bindings.handle.raw == HANDLE
    assert bindings.calls[1] == ("cudaSetDevice", 3)


def test_a_handle_of_another_size_is_rejected_without_a_call(bindings):
    with pytest.raises(CudaError, match="a handle has 64 bytes, this one 63"):
        CudaCalls().open(HANDLE[:-1], 0)
    assert bindings.calls == []


@pytest.mark.parametrize("fails", ["cudaSetDevice", "cudaIpcOpenMemHandle"])
def test_an_open_error_names_the_failing_call(bindings, fails):
    bindings.fails = fails
    with pytest.raises(CudaError, match=f"{fails}: INVALID"):
        CudaCalls().open(HANDLE, 1)


def test_an_invalid_device_number_raises_a_cuda_error(bindings):
    bindings.overflows = "cudaSetDevice"
    with pytest.raises(CudaError, match="cudaSetDevice: too large"):
        CudaCalls().open(HANDLE, 2**63)


def test_a_handle_without_a_size_is_closed(bindings):
    bindings.fails = "cuMemGetAddressRange"
    with pytest.raises(CudaError):
        CudaCalls().open(HANDLE, 0)
    assert bindings.calls[-1] == ("cudaIpcCloseMemHandle", bindings.memory.ctypes.data)


def test_the_current_device_of_the_calling_thread_stays_the_same(bindings):
    bindings.device = 2
    calls = CudaCalls()
    for act in (
        lambda: calls.open(HANDLE, 0),
        lambda: calls.close(1, 0),
        lambda: calls.free(calls.allocate(8, 0), 0),
        lambda: calls.to_host(np.zeros(4, np.uint8), bindings.memory.ctypes.data, 0),
    ):
        act()
        assert bindings.device == 2
        assert ("cudaSetDevice", 0) in bindings.calls
        bindings.calls.clear()
    bindings.fails = "cudaMalloc"
    with pytest.raises(CudaError, match="cudaMalloc: INVALID"):
        calls.allocate(8, 0)
    assert bindings.device == 2


def test_pinned_memory_is_portable_between_gpus(bindings):
    calls = CudaCalls()
    address = calls.pin(4096)
    calls.unpin(address)
    assert bindings.calls == [("cudaHostAlloc", 4096, 1), ("cudaFreeHost", address)]


def test_gpu_memory_is_allocated_and_freed_on_its_device(bindings):
    calls = CudaCalls()
    calls.free(calls.allocate(64, 1), 1)
    names = [name for name, *_ in bindings.calls]
    assert names == [
        *("cudaGetDevice", "cudaSetDevice", "cudaMalloc", "cudaSetDevice"),
        *("cudaGetDevice", "cudaSetDevice", "cudaFree", "cudaSetDevice"),
    ]


@pytest.mark.parametrize(
    ("gpus", "module", "text"),
    [
        ([], Bindings(), "there is no GPU"),
        ([0], None, re.escape(install_command("tritonpy-device-cuda[cuda]"))),
    ],
)
def test_missing_gpus_or_bindings_raise_a_cuda_error(monkeypatch, gpus, module, text):
    monkeypatch.setattr(cuda_calls, "visible_gpus", lambda: gpus)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", module)
    with pytest.raises(CudaError, match=text):
        open_cuda_calls()


def test_a_copy_is_complete_when_it_returns(bindings):
    calls = CudaCalls()
    array = np.zeros(4, np.uint8)
    calls.to_host(array, bindings.memory.ctypes.data + 2, 0)
    assert array.tolist() == [2, 3, 4, 5]
    calls.to_device(bindings.memory.ctypes.data, np.array([7, 8], np.uint16), 0)
    assert bindings.memory.tolist()[:5] == [7, 0, 8, 0, 4]
    assert bindings.calls[-1] == ("cudaStreamSynchronize", 0)
