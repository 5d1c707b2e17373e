"""Tensors of the server as those of OpenVINO, and back, without a copy where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Tensor

Array = npt.NDArray[Any]


class _Writable:
    """Stands for memory that may not be written to, and says that it may: OpenVINO takes no other, and does not write to its inputs."""

    def __init__(self, array: Array) -> None:
        self._kept = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def shared(openvino: Any, array: Array, element: Any) -> Any:
    """Return an `openvino.Tensor` of type `element` on the memory of `array`, numbers in C order; whoever uses it keeps `array`."""
    if array.dtype == DTYPES["BF16"]:
        array = array.view(np.uint16)
    if not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return openvino.Tensor(array, array.shape, element)


def texts(openvino: Any, tensor: Tensor, shape: tuple[int, ...]) -> Any:
    """Return an `openvino.Tensor` of the strings of `tensor`; a string loses the zero bytes at its end."""
    elements = tensor.strings()
    return openvino.Tensor(np.array(elements, np.bytes_).reshape(shape))


def array_of(tensor: Any, datatype: str) -> Array:
    """Return the values of an `openvino.Tensor`: a view that keeps it, for strings an array of `bytes` objects."""
    if datatype == "BYTES":
        empty = tensor.get_size() == 0  # OpenVINO divides by the number of strings
        return np.empty(tuple(tensor.shape), np.object_) if empty else np.asarray(tensor.bytes_data.astype(np.object_))
    data: Array = tensor.data
    return data.view(DTYPES["BF16"]) if datatype == "BF16" else data
