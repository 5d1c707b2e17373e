"""Memory that libraries exchange by DLPack: https://dmlc.github.io/dlpack/latest/.

A library that offers memory returns a capsule named "dltensor" with the address of a
`DLManagedTensor`. The library that takes it renames the capsule and calls the deleter when it is
done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from tritonpy_tritonserver_api.errors import InvalidArgumentError, UnsupportedError
from tritonpy_tritonserver_api.names import DataType, DLDeviceType

_NAME = b"dltensor"
_LEGACY_DEFAULT_STREAM = 1
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLDataTypeCode
_TYPES = {
    DataType.BOOL: (_BOOL, 8),
    DataType.UINT8: (_UINT, 8),
    DataType.UINT16: (_UINT, 16),
    DataType.UINT32: (_UINT, 32),
    DataType.UINT64: (_UINT, 64),
    DataType.INT8: (_INT, 8),
    DataType.INT16: (_INT, 16),
    DataType.INT32: (_INT, 32),
    DataType.INT64: (_INT, 64),
    DataType.FP16: (_FLOAT, 16),
    DataType.FP32: (_FLOAT, 32),
    DataType.FP64: (_FLOAT, 64),
    DataType.BF16: (_BFLOAT, 16),
}
_DATA_TYPES = {code: data_type for data_type, code in _TYPES.items()}
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),  # addresses: ctypes' pointers refer to themselves, and stay
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class _ManagedTensor(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", _DESTRUCTOR),
    ]


def _python_function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new_capsule = _python_function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_pointer_of = _python_function(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
# For a capsule that is being deleted: it must get no further reference.
_is_unused = _python_function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer_of_deleted = _python_function(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p
)


class OfferedMemory(NamedTuple):
    """Row-major memory of a device, as its owner offers it."""

    address: int
    device: DLDeviceType
    device_id: int
    data_type: DataType
    shape: list[int]
    size: int


def read(value: Any) -> OfferedMemory:
    """Return the memory that `value` offers; it is valid as long as `value`.

    Raises `InvalidArgumentError` if it offers none, or none that the API can use.
    """
    try:
        device, _ = value.__dlpack_device__()
        is_gpu = int(device) == DLDeviceType.kDLCUDA
        capsule = value.__dlpack__(stream=_LEGACY_DEFAULT_STREAM) if is_gpu else value.__dlpack__()
        tensor = _ManagedTensor.from_address(_pointer_of(capsule, _NAME)).tensor
    except Exception as error:
        raise InvalidArgumentError(f"Object does not support DLPack protocol: {error}") from error
    shape = _numbers(tensor.shape, tensor.ndim)
    data_type = _DATA_TYPES.get((tensor.code, tensor.bits))
    if data_type is None or tensor.lanes != 1:
        raise InvalidArgumentError(
            f"Unsupported DLPack data type. Can't convert {(tensor.code, tensor.bits)} to Triton "
            "server data type"
        )
    if not _is_contiguous(tensor, shape):
        raise InvalidArgumentError("Only contiguous memory is supported")
    size = tensor.bits // 8
    for dim in shape:
        size *= dim
    address = (tensor.data or 0) + tensor.byte_offset
    return OfferedMemory(
        address, DLDeviceType(tensor.device_type), tensor.device_id, data_type, shape, size
    )


def _is_contiguous(tensor: _Tensor, shape: Sequence[int]) -> bool:
    if not tensor.strides or 0 in shape:
        return True
    expected = 1
    strides = _numbers(tensor.strides, len(shape))
    for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
        if dim != 1 and stride != expected:
            return False
        expected *= dim
    return True


def _numbers(address: int | None, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if address and count else []


# What was offered and not yet released, by address.
_offered: dict[int, tuple[_ManagedTensor, Any, Any]] = {}


def _release(address: int) -> None:
    _offered.pop(address, None)


def _delete_capsule(capsule: int) -> None:
    if _is_unused(capsule, _NAME):  # nothing took it
        _release(_pointer_of_deleted(capsule, _NAME))


_deleter, _capsule_deleter = _DESTRUCTOR(_release), _DESTRUCTOR(_delete_capsule)


def offer(
    owner: object, address: int, device: tuple[int, int], data_type: DataType, shape: Sequence[int]
) -> Any:
    """Return a capsule with the memory of `owner`, which lives until the receiver releases it.

    Raises `UnsupportedError` for BYTES, which DLPack does not have.
    """
    if data_type not in _TYPES:
        raise UnsupportedError(
            f"Unsupported Triton server data type. Can't convert {data_type.name} to DLPack data "
            "type"
        )
    code, bits = _TYPES[data_type]
    dims = (ctypes.c_int64 * len(shape))(*shape)
    tensor = _Tensor(address, *device, len(shape), code, bits, 1, ctypes.addressof(dims), None, 0)
    managed = _ManagedTensor(tensor, None, _deleter)
    place = ctypes.addressof(managed)
    _offered[place] = managed, dims, owner
    return _new_capsule(place, _NAME, ctypes.cast(_capsule_deleter, ctypes.c_void_p))
