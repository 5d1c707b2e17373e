"""Conversion between tensors of tritonpy and OpenVINO, without copies where possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Tensor

Array = npt.NDArray[Any]


class _WritableView:
    """Read-only memory presented as writable.

    OpenVINO accepts only writable memory, but does not write to its inputs.
    """

    def __init__(self, array: Array) -> None:
        self._kept = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def to_openvino(openvino: Any, array: Array, element: Any) -> Any:
    """Return an `openvino.Tensor` that shares the memory of `array`, a C-contiguous numeric array.

    The caller must keep `array` alive.
    """
    if array.dtype == DTYPES["BF16"]:
        array = array.view(np.uint16)
    if not array.flags.writeable:
        array = np.asarray(_WritableView(array))
    return openvino.Tensor(array, array.shape, element)


def string_tensor(openvino: Any, tensor: Tensor, shape: tuple[int, ...]) -> Any:
    """Return an `openvino.Tensor` with the strings of `tensor`; trailing zero bytes are lost."""
    elements = tensor.strings()
    return openvino.Tensor(np.array(elements, np.bytes_).reshape(shape))


def to_array(tensor: Any, datatype: str) -> Array:
    """Return the values of an `openvino.Tensor`.

    Numbers are a view that keeps the tensor alive, strings an array of `bytes` objects.
    """
    if datatype == "BYTES":
        empty = tensor.get_size() == 0  # OpenVINO divides by the number of strings
        return (
            np.empty(tuple(tensor.shape), np.object_)
            if empty
            else np.asarray(tensor.bytes_data.astype(np.object_))
        )
    data: Array = tensor.data
    return data.view(DTYPES["BF16"]) if datatype == "BF16" else data
