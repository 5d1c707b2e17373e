"""Execution of one batch in a session, with `run` or with an I/O binding.

On the CPU, plain `run` is the fastest call for small tensors. An int32[8,16] add/sub takes 14 us,
20 us with an I/O binding and 100 us with OrtValues.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import DTYPES, Tensor, Unsupported
from tritonpy.execution import CPU
from tritonpy_backend_onnx.shared_model import OpenSession
from tritonpy_backend_onnx.signature import TensorInfo

Array = npt.NDArray[Any]
Execute = Callable[[Sequence[Tensor]], dict[str, Tensor]]

_BF16 = 16  # TensorProto.DataType.BFLOAT16 of the ONNX format; numpy and `run` do not support it


def create_execution(
    opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]], gpu: bool
) -> Execute:
    """Return the function that computes `outputs` from the input tensors of a batch.

    `scalars` maps each output that is a scalar in the model to the shape that clients see. Raises
    `Unsupported` for a model with both BF16 and BYTES tensors.
    """
    signature = opened.signature
    used = [
        *signature.inputs.values(),
        *signature.defaults.values(),
        *(signature.outputs[name] for name in outputs),
    ]
    types = {info.datatype for info in used}
    if types >= {"BF16", "BYTES"}:
        raise Unsupported(
            "ONNX Runtime's Python interface cannot run a model that has both BF16 and text "
            "among its inputs and outputs"
        )
    if "BF16" in types or (gpu and "BYTES" not in types):
        return BoundExecution(opened, outputs, scalars)
    if "BYTES" in types or any(not info.dims for info in used):
        return ConvertingExecution(opened, outputs, scalars)
    return ArrayExecution(opened, outputs)


class ArrayExecution:
    """Runs numeric CPU tensors without conversion."""

    def __init__(self, opened: OpenSession, outputs: Sequence[str]) -> None:
        self._run = opened.session.run
        self._run_options = opened.run_options
        self._names = list(outputs)
        self._types = [(name, opened.signature.outputs[name].datatype) for name in outputs]

    def __call__(
        self, tensors: Sequence[Tensor]
    ) -> dict[str, Tensor]:  # hot path: adds 3 us to `run`
        feeds: dict[str, Array] = {}
        for tensor in tensors:
            data = tensor.data
            feeds[tensor.name] = data if type(data) is np.ndarray else tensor.numpy()
        arrays = self._run(self._names, feeds, self._run_options)
        return {
            name: Tensor(name, datatype, array.shape, array)
            for (name, datatype), array in zip(self._types, arrays, strict=True)
        }


class ConvertingExecution:
    """Runs batches with string or scalar tensors and converts them on the way in and out."""

    def __init__(
        self, opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]]
    ) -> None:
        self._run = opened.session.run
        self._run_options = opened.run_options
        self._names = list(outputs)
        self._inputs = {**opened.signature.inputs, **opened.signature.defaults}
        self._scalars = scalars

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        feeds = {tensor.name: to_array(tensor, self._inputs[tensor.name]) for tensor in tensors}
        arrays = self._run(self._names, feeds, self._run_options)
        return {
            name: Tensor.from_numpy(name, reshape_array(np.asarray(array), self._scalars.get(name)))
            for name, array in zip(self._names, arrays, strict=True)
        }


class BoundExecution:
    """Runs batches with device memory or BF16 through an I/O binding.

    Returns outputs on the host.
    """

    def __init__(
        self, opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]]
    ) -> None:
        self._session = opened.session
        self._run_options = opened.run_options
        self._outputs = [(name, opened.signature.outputs[name].datatype) for name in outputs]
        self._inputs = {**opened.signature.inputs, **opened.signature.defaults}
        self._scalars = scalars
        self._binding = opened.session.io_binding()
        self._value_type = opened.value_type

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        binding = self._binding
        try:
            kept = [self._bind(tensor, self._inputs[tensor.name]) for tensor in tensors]
            for name, _ in self._outputs:
                binding.bind_output(name)
            self._session.run_with_iobinding(binding, self._run_options)
            values = binding.get_outputs()
            del kept
            return {
                name: self._tensor(name, datatype, value)
                for (name, datatype), value in zip(self._outputs, values, strict=True)
            }
        finally:
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()

    def _bind(self, tensor: Tensor, info: TensorInfo) -> object:
        """Bind `tensor` and return the object that must stay alive until the run ends."""
        if tensor.device != CPU:
            value = self._value_type.from_dlpack(tensor.data)
            self._binding.bind_ortvalue_input(tensor.name, value)
            return value
        array = to_array(tensor, info)
        if tensor.datatype == "BF16":
            self._binding.bind_input(tensor.name, "cpu", 0, _BF16, array.shape, array.ctypes.data)
        else:
            self._binding.bind_cpu_input(tensor.name, array)
        return array

    def _tensor(self, name: str, datatype: str, value: Any) -> Tensor:
        array = _read_bfloat16(value) if datatype == "BF16" else np.asarray(value.numpy())
        return Tensor.from_numpy(name, reshape_array(array, self._scalars.get(name)))


def to_array(tensor: Tensor, info: TensorInfo) -> Array:
    """Return the array that ONNX Runtime expects.

    It has `str` elements for BYTES, and no dimensions for a scalar.
    """
    array = _decode_strings(tensor) if tensor.datatype == "BYTES" else tensor.numpy()
    return array if info.dims else reshape_array(array, ())


def _decode_strings(tensor: Tensor) -> Array:
    elements = tensor.strings()
    try:
        texts: list[str] = [element.decode() for element in elements]
    except UnicodeDecodeError:
        # Bytes that are not UTF-8 are passed as fixed-width numpy text. It ends at a NUL byte, as
        # strings do in Triton.
        return np.array(elements, np.bytes_).reshape(tensor.shape)
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array.reshape(tensor.shape)


def reshape_array(array: Array, shape: tuple[int, ...] | None) -> Array:
    """Return `array` reshaped to `shape`, or unchanged if `shape` is None."""
    return array if shape is None else np.asarray(array).reshape(shape)


def _read_bfloat16(value: Any) -> Array:
    shape = tuple(value.shape())
    size = prod(shape) * 2
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, DTYPES["BF16"]).reshape(shape)
