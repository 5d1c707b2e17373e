"""The memory layout of DLPack and its capsules."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
    py_object,
)
from datetime import datetime_CAPI  # a capsule, to get the type of capsules
from typing import Any

import numpy as np

from .errors import TritonModelException


class DLDevice(Structure):
    """DLDevice."""

    _fields_ = (("kind", c_int32), ("number", c_int32))


class ElementType(Structure):
    """DLDataType."""

    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class DLTensor(Structure):
    """DLTensor. `strides` counts elements and may be NULL for C order."""

    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", ElementType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class _Managed(Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p))


_NAME, _USED = b"dltensor", b"used_dltensor"
_CAPSULE = type(datetime_CAPI)
_python = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose declarations other code may change
_python.PyCapsule_IsValid.argtypes = (py_object, c_char_p)
_python.PyCapsule_GetPointer.argtypes = (py_object, c_char_p)
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_SetName.argtypes = (py_object, c_char_p)
_python.Py_IncRef.argtypes = (py_object,)
_python.Py_IncRef(_USED)  # capsules keep its address, perhaps longer than this module exists
_python.PyCapsule_New.argtypes = (c_void_p, c_char_p, c_void_p)
_python.PyCapsule_New.restype = py_object
_python.malloc.argtypes = (c_size_t,)
_python.malloc.restype = c_void_p
_free = ctypes.cast(_python.free, c_void_p).value
_DELETER = ctypes.PYFUNCTYPE(None, c_void_p)


def is_capsule(value: Any) -> bool:
    """Return true if `value` is a capsule of any kind."""
    return type(value) is _CAPSULE


def address_in(capsule: Any) -> int:
    """Return the address of a capsule's managed tensor.

    Raises `TritonModelException` if it has none.
    """
    if not is_capsule(capsule) or not _python.PyCapsule_IsValid(capsule, _NAME):
        raise TritonModelException(
            f"{capsule!r} is not a DLPack capsule, or its tensor was already taken."
        )
    return int(_python.PyCapsule_GetPointer(capsule, _NAME))


def tensor_at(address: int) -> DLTensor:
    """Return a view of the description. Changes are visible to the consumer of the tensor."""
    tensor: DLTensor = _Managed.from_address(address).tensor
    return tensor


def copy_to_capsule(array: np.ndarray[Any, Any]) -> Any:
    """Return a capsule with a copy of an unsigned integer array, in one block that C can free."""
    described = ctypes.sizeof(_Managed) + 8 * array.ndim
    offset = -(-described // 64) * 64
    address = _python.malloc(offset + array.nbytes)
    if address is None:
        raise MemoryError
    managed = _Managed.from_address(address)
    ctypes.memset(address, 0, described)
    managed.deleter = _free
    shape = (c_int64 * array.ndim).from_address(address + ctypes.sizeof(_Managed))
    shape[:] = array.shape
    managed.tensor.shape = ctypes.cast(shape, POINTER(c_int64))
    managed.tensor.ndim = array.ndim
    managed.tensor.device = DLDevice(1, 0)
    managed.tensor.dtype = ElementType(1, 8 * array.itemsize, 1)
    managed.tensor.data = address + offset
    ctypes.memmove(address + offset, array.__array_interface__["data"][0], array.nbytes)
    return _python.PyCapsule_New(address, _NAME, None)


class Memory:
    """The memory of a tensor from a capsule. Deleting the object returns it to its producer."""

    __slots__ = ("_address",)

    def __init__(self, capsule: Any) -> None:
        """Raises `TritonModelException` if the capsule contains no tensor."""
        self._address = address_in(capsule)
        _python.PyCapsule_SetName(capsule, _USED)

    # Globals may already be deleted.
    def __del__(self, managed: Any = _Managed, deleter: Any = _DELETER) -> None:
        address = getattr(self, "_address", None)
        if address is not None and managed.from_address(address).deleter:
            deleter(managed.from_address(address).deleter)(address)
