"""The functions of the CUDA driver that copy GPU memory to the host."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import TritonModelException


def copy_to_host(device: int, source: int, target: int, size: int) -> None:
    """Copy `size` bytes from a device to the host, after all earlier work on the device.

    Raises `TritonModelException` if there is no driver or it fails.
    """
    driver = _driver()
    with _context(driver, device):
        _check(driver, driver.cuCtxSynchronize())
        _check(
            driver,
            driver.cuMemcpyDtoH_v2(
                ctypes.c_void_p(target), ctypes.c_uint64(source), ctypes.c_size_t(size)
            ),
        )


def synchronize(device: int) -> None:
    """Wait for all work on a device.

    Raises `TritonModelException` if there is no driver or it fails.
    """
    driver = _driver()
    with _context(driver, device):
        _check(driver, driver.cuCtxSynchronize())


def _driver() -> Any:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise TritonModelException(
            "DLPack capsule passed pointer to memory allocated on GPU device, "
            "          when GPU is not available"
        ) from error
    _check(driver, driver.cuInit(0))
    return driver


@contextmanager
def _context(driver: Any, device: int) -> Iterator[None]:
    """Use the primary context, which frameworks share, and restore the thread's own context."""
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    _check(driver, driver.cuDeviceGet(ctypes.byref(handle), device))
    _check(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
    try:
        _check(driver, driver.cuCtxPushCurrent_v2(context))
        try:
            yield
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(handle)


def _check(driver: Any, status: int) -> None:
    if status:
        reason = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(reason))
        raise TritonModelException(
            f"failed to copy data: {(reason.value or b'unknown error').decode()}"
        )
