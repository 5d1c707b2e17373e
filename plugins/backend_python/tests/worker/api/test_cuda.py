from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tritonpy_worker.api import cuda
from tritonpy_worker.api.errors import TritonModelException

from .fake_driver import FakeDriver


def address(array):
    return array.__array_interface__["data"][0]


def copy(source, target):
    cuda.copy_to_host(3, address(source), address(target), source.nbytes)


def test_bytes_are_copied_in_the_context_of_the_device(monkeypatch):
    driver = FakeDriver.install(monkeypatch)
    source, target = np.arange(5), np.zeros(5, int)
    copy(source, target)
    assert target.tolist() == source.tolist()
    assert [
        call for call in driver.calls if call[0] in ("cuCtxSynchronize", "cuMemcpyDtoH_v2")
    ] == [
        ("cuCtxSynchronize", 3),
        ("cuMemcpyDtoH_v2", 3),
    ]


@pytest.mark.parametrize("failing", ["cuMemcpyDtoH_v2", "cuCtxPushCurrent_v2", None])
def test_the_threads_context_is_restored(monkeypatch, failing):
    driver = FakeDriver.install(monkeypatch)
    driver.failing = {failing: 7}
    array = np.zeros(2)
    if failing:
        with pytest.raises(TritonModelException, match=r"^failed to copy data: out of memory 7$"):
            copy(array, array)
    else:
        copy(array, array)
    assert driver.retained == 0
    assert len(driver.called("cuCtxPopCurrent_v2")) == (failing != "cuCtxPushCurrent_v2")


@pytest.mark.parametrize("failing", ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"])
def test_an_early_failure_of_the_driver_is_reported(monkeypatch, failing):
    driver = FakeDriver.install(monkeypatch)
    driver.failing = {failing: 999}
    with pytest.raises(TritonModelException, match=r"^failed to copy data: unknown error$"):
        cuda.synchronize(0)
    assert driver.called("cuCtxSynchronize") == []


def test_without_a_driver_there_is_no_gpu(monkeypatch):
    FakeDriver.remove(monkeypatch)
    with pytest.raises(TritonModelException, match=r"when GPU is not available$"):
        cuda.synchronize(0)


def test_memory_of_a_real_gpu_is_copied():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        pytest.skip("needs CUDA's driver")
    if driver.cuInit(0):
        pytest.skip("needs a GPU")
    given, taken = np.arange(1000.0), np.zeros(1000)
    with cuda._context(driver, 0):
        pointer = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(given.nbytes)) == 0
        assert (
            driver.cuMemcpyHtoD_v2(
                pointer, ctypes.c_void_p(address(given)), ctypes.c_size_t(given.nbytes)
            )
            == 0
        )
        cuda.copy_to_host(0, pointer.value, address(taken), taken.nbytes)
        assert driver.cuMemFree_v2(pointer) == 0
    assert taken.tolist() == given.tolist()
