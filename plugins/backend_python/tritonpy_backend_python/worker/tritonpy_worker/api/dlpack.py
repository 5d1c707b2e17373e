"""Conversion between tensors and DLPack capsules, without copies if possible."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from . import cuda
from .capsules import DLTensor, Memory, address_in, copy_to_capsule, is_capsule, tensor_at
from .datatypes import STORED
from .device_array import DeviceArray
from .errors import TritonModelException

HOST = (1, 0)  # DLPack's device type and number of the host
_CUDA, _CUDA_HOST = 2, 3
_DEFAULT_STREAM = 1  # CUDA's default stream in the array API
_CODES = {"BOOL": (6, 8), "BF16": (4, 16)}
_CODES.update({f"INT{bits}": (0, bits) for bits in (8, 16, 32, 64)})
_CODES.update({f"UINT{bits}": (1, bits) for bits in (8, 16, 32, 64)})
_CODES.update({f"FP{bits}": (2, bits) for bits in (16, 32, 64)})
_DATATYPES = {code: datatype for datatype, code in _CODES.items()}


def take(source: Any) -> tuple[str, tuple[int, ...], Any]:
    """Return the data type, shape and data of a capsule, or of an object that exports one.

    The data is an array, or a `DeviceArray` on a GPU. Raises `TritonModelException` for other
    objects, for memory that is not in C order, and for unknown devices and types.
    """
    capsule = source if is_capsule(source) else _capsule_of(source)
    tensor = tensor_at(address_in(capsule))
    shape = tuple(tensor.shape[: tensor.ndim])
    _check_order(tensor, shape)
    _check_device(tensor.device.kind)
    datatype = _datatype(tensor)
    pointer = (tensor.data or 0) + tensor.byte_offset
    kind, number = tensor.device.kind, tensor.device.number
    memory = Memory(capsule)
    if kind == _CUDA:
        return (
            datatype,
            shape,
            DeviceArray(memory, pointer, shape, STORED[datatype], (kind, number)),
        )
    return datatype, shape, _array(memory, pointer, shape, STORED[datatype])


def export(datatype: str, shape: tuple[int, ...], data: Any) -> Any:
    """Return a capsule for the memory of `data`, an array or a `DeviceArray`.

    The capsule keeps it alive. A read-only array is copied. Before numpy 1.22, every array is
    copied and a `DeviceArray` raises `TritonModelException`.
    """
    if isinstance(data, np.ndarray) and not data.flags.writeable:
        data = data.copy()  # a capsule cannot forbid writing
    device = data.device if isinstance(data, DeviceArray) else HOST
    pointer = data.pointer if isinstance(data, DeviceArray) else data.__array_interface__["data"][0]
    # numpy creates the capsule, so that no Python code runs when a consumer deletes it, perhaps
    # during an exception. numpy gets writable unsigned integers on the host, which every version
    # exports. Type and device are set afterwards.
    numbers = _array(data, pointer, shape, np.dtype(f"u{STORED[datatype].itemsize}"))
    if hasattr(numbers, "__dlpack__"):
        capsule = numbers.__dlpack__()
    elif device == HOST:
        capsule = copy_to_capsule(numbers)
    else:
        raise TritonModelException(
            f"DLPack of a GPU's memory needs numpy 1.22 or newer, this is {np.__version__}."
        )
    tensor = tensor_at(address_in(capsule))
    tensor.dtype.code = _CODES[datatype][0]
    tensor.device.kind, tensor.device.number = device
    return capsule


class _Region:
    """A memory region from which numpy makes an array. The array keeps it alive as its base."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self._owner = owner
        self.__array_interface__ = interface


def _array(
    owner: Any, pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    if not prod(shape):
        return np.empty(shape, dtype)
    return np.asarray(
        _Region(
            owner,
            {
                "data": (pointer, False),
                "shape": shape,
                "typestr": dtype.str,
                "strides": None,
                "version": 3,
            },
        )
    )


def _capsule_of(source: Any) -> Any:
    if not hasattr(source, "__dlpack__") or not hasattr(source, "__dlpack_device__"):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule         "
            "or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    kind, number = source.__dlpack_device__()
    _check_device(kind)
    if kind != _CUDA:
        return source.__dlpack__(stream=None)
    capsule = source.__dlpack__(stream=_DEFAULT_STREAM)
    cuda.synchronize(number)
    return capsule


def _check_device(kind: int) -> None:
    if kind not in (HOST[0], _CUDA, _CUDA_HOST):
        raise TritonModelException(f"DLDevice type {int(kind)} is not support by Python backend.")


def _check_order(tensor: DLTensor, shape: tuple[int, ...]) -> None:
    if not tensor.strides or not prod(shape):
        return
    expected = 1
    for size, stride in zip(reversed(shape), reversed(tensor.strides[: len(shape)])):
        if size != 1 and stride != expected:
            raise TritonModelException(
                "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored "
                "in C-Order are supported."
            )
        expected *= size


def _datatype(tensor: DLTensor) -> str:
    dtype = tensor.dtype
    if dtype.lanes == 1 and dtype.code == _CODES["BF16"][0] and dtype.bits != 16:
        raise TritonModelException(f"Expected BF16 tensor to have 16 bits, but had: {dtype.bits}")
    datatype = _DATATYPES.get((dtype.code, dtype.bits)) if dtype.lanes == 1 else None
    if datatype is None:
        raise TritonModelException("Dtype is invalid.")
    return datatype
