from __future__ import annotations

import ctypes
import gc
from datetime import datetime_CAPI

import numpy as np
import pytest

from tritonpy_worker.api.capsules import (
    Memory,
    _Managed,
    address_in,
    copy_to_capsule,
    is_capsule,
    tensor_at,
)
from tritonpy_worker.api.errors import TritonModelException


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_a_copy_is_described_and_complete(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.uint32).reshape(shape)
    capsule = copy_to_capsule(array)
    expected = array.tolist()
    array[...] = 99
    tensor = tensor_at(address_in(capsule))
    assert tuple(tensor.shape[: tensor.ndim]) == shape
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (1, 32, 1)
    assert (tensor.device.kind, tensor.device.number, tensor.byte_offset) == (1, 0, 0)
    values = (ctypes.c_uint32 * array.size).from_address(tensor.data)
    assert np.array(values[:], np.uint32).reshape(shape).tolist() == expected
    Memory(capsule)


def test_memory_is_returned_once_by_its_owner():
    given_back = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(given_back.append)
    capsule = copy_to_capsule(np.zeros(1, np.uint8))
    address = address_in(capsule)
    managed = _Managed.from_address(address)
    free, managed.deleter = managed.deleter, ctypes.cast(deleter, ctypes.c_void_p)
    memory = Memory(capsule)
    assert "used_dltensor" in repr(capsule)
    del capsule
    gc.collect()
    assert given_back == []
    del memory
    gc.collect()
    assert given_back == [address]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)(address)


def test_a_producer_may_have_no_deleter():
    capsule = copy_to_capsule(np.zeros(1, np.uint8))
    managed = _Managed.from_address(address_in(capsule))
    free, managed.deleter = managed.deleter, None
    address = address_in(capsule)
    Memory(capsule)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)(address)


def test_other_capsules_hold_no_tensor():
    assert is_capsule(datetime_CAPI)
    assert not is_capsule(5)
    for other in (datetime_CAPI, 5, None):
        with pytest.raises(
            TritonModelException, match="is not a DLPack capsule, or its tensor was already taken"
        ):
            address_in(other)
        with pytest.raises(TritonModelException):
            Memory(other)
