"""Tensors as models see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import strings
from .arguments import argument_type_error, text
from .datatypes import DataType, name_of
from .device_array import DeviceArray
from .dlpack import HOST, export, take
from .errors import TritonModelException


class Tensor:
    """A named array.

    `_data` is the form that is sent. It is a C-contiguous array of the tensor's shape; for BF16, it
    has the bits as uint16. For BYTES, it is a flat uint8 array in wire format (see `strings`). On a
    device, it is a `DeviceArray`. `_strings` is the array of objects of a BYTES tensor, once it
    exists.
    """

    __module__ = "c_python_backend_utils"
    __slots__ = ("__weakref__", "_data", "_datatype", "_name", "_shape", "_strings")

    def __init__(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Take an array without copying if it is C-contiguous.

        Objects other than bytes are sent as text. Raises `TypeError` for arguments of wrong types,
        and `TritonModelException` for an empty name and for elements that cannot be sent.
        """
        if type(name) is not str or type(array) is not np.ndarray or not name:
            if not isinstance(name, (str, bytes)) or not isinstance(array, np.ndarray):
                raise argument_type_error(
                    "__init__",
                    "c_python_backend_utils.Tensor(arg0: str, arg1: numpy.ndarray)",
                    name,
                    array,
                )
            name = _checked(name)
        self._name = name
        datatype = name_of(array.dtype)
        if datatype is None:
            raise TritonModelException("NumPy dtype is not supported.")
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        self._datatype = datatype
        self._shape = array.shape
        self._data: Any = array
        self._strings: np.ndarray[Any, Any] | None = None
        if datatype == "BYTES":
            self._strings = array
            self._data = strings.encode(array)

    @classmethod
    def received(cls, name: str, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
        """Return a tensor with `data` in the form of `_data`, without validation."""
        tensor = cls.__new__(cls)
        tensor._name = name
        tensor._datatype = datatype
        tensor._shape = shape
        tensor._data = data
        tensor._strings = None
        return tensor

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> Tensor:
        """Return a tensor for the memory of a DLPack capsule or exporter, without a copy.

        Raises `TritonModelException` for an empty name, for memory that is not in C order, and for
        unknown devices and types.
        """
        if not isinstance(name, (str, bytes)):
            raise argument_type_error(
                "from_dlpack",
                "(arg0: str, arg1: object) -> c_python_backend_utils.Tensor",
                name,
                tensor,
            )
        return Tensor.received(_checked(name), *take(tensor))

    def name(self) -> str:
        """Return the name."""
        return self._name

    def shape(self) -> list[int]:
        """Return the dimensions."""
        return list(self._shape)

    def triton_dtype(self) -> DataType:
        """Return the number of the data type in TRITONSERVER_DataType."""
        return DataType[self._datatype]

    def is_cpu(self) -> bool:
        """Return true if the memory is on the host."""
        return not isinstance(self._data, DeviceArray)

    def as_numpy(self) -> np.ndarray[Any, Any]:
        """Return the array without a copy.

        For BYTES, create an array of `bytes` objects at the first call. Raises
        `TritonModelException` for BF16, for a tensor on a device, and for malformed BYTES.
        """
        if self._strings is not None:
            return self._strings
        if isinstance(self._data, DeviceArray):
            raise TritonModelException("Tensor is stored in GPU and cannot be converted to NumPy.")
        if self._datatype == "BF16":
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and "
                "from_dlpack() instead."
            )
        if self._datatype == "BYTES":
            self._strings = strings.decode(self._data, self._shape)
            return self._strings
        array: np.ndarray[Any, Any] = self._data
        return array

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule for the same memory. Raises `TritonModelException` for BYTES."""
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        return export(self._datatype, self._shape, self._data)

    def __dlpack__(self, stream: Any = None) -> Any:
        """Return a DLPack capsule. No stream has pending work on the memory."""
        return self.to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number; (1, 0) is the host."""
        return self._data.device if isinstance(self._data, DeviceArray) else HOST


def _checked(name: str | bytes) -> str:
    checked = text(name)
    if not checked:
        raise TritonModelException("Tensor name cannot be an empty string.")
    return checked
