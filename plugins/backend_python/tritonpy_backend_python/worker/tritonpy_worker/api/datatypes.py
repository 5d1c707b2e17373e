"""Triton's data types: numbers, names and numpy types."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class DataType(IntEnum):
    """TRITONSERVER_DataType, with the protocol's names."""

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14


_NUMPY_TYPES: dict[int, Any] = {
    DataType.BOOL: np.bool_,
    DataType.UINT8: np.uint8,
    DataType.UINT16: np.uint16,
    DataType.UINT32: np.uint32,
    DataType.UINT64: np.uint64,
    DataType.INT8: np.int8,
    DataType.INT16: np.int16,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
    DataType.FP16: np.float16,
    DataType.FP32: np.float32,
    DataType.FP64: np.float64,
    DataType.BYTES: np.object_,
}
_NAMES: dict[Any, str] = {
    np.dtype(kind): DataType(number).name for number, kind in _NUMPY_TYPES.items()
}
# numpy has one dtype object per type, and nearly every array uses it. A lookup by id is faster than
# by equality.
_BY_IDENTITY: dict[int, str] = {id(dtype): name for dtype, name in _NAMES.items()}

# The dtypes of tensors in memory. Types unknown to numpy are stored as their bits.
STORED: dict[str, np.dtype[Any]] = {
    name: dtype for dtype, name in _NAMES.items() if name != "BYTES"
}
STORED["BF16"] = np.dtype(np.uint16)

TRITON_STRING_TO_NUMPY: dict[str, Any] = {
    f"TYPE_{name}": dtype.type for dtype, name in _NAMES.items()
}
TRITON_STRING_TO_NUMPY["TYPE_STRING"] = TRITON_STRING_TO_NUMPY.pop("TYPE_BYTES")
TRITON_STRING_TO_NUMPY["TYPE_BOOL"] = bool


def name_of(dtype: np.dtype[Any]) -> str | None:
    """Return the protocol's name of a dtype, or None."""
    return _BY_IDENTITY.get(id(dtype)) or (
        "BYTES" if dtype.type is np.bytes_ else _NAMES.get(dtype)
    )


def triton_to_numpy_type(data_type: int) -> Any:
    """Return the numpy type for a number of TRITONSERVER_DataType, or None."""
    return _NUMPY_TYPES.get(data_type)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Return the number of TRITONSERVER_DataType for a numpy type, or None."""
    for number, kind in _NUMPY_TYPES.items():
        if data_type == kind:
            return int(number)
    return int(DataType.BYTES) if data_type == np.bytes_ else None


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """Return the numpy type for a type of a model configuration ("TYPE_FP32").

    Raises `KeyError` for others.
    """
    return TRITON_STRING_TO_NUMPY[triton_type_string]
