"""Runs one batch in a session: arrays through `run`, whatever `run` cannot take through an I/O binding.

On the CPU a plain `run` is the fastest door for small tensors (int32[8,16] add/sub: 14 us, an I/O binding 20 us, OrtValues 100 us).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tritonpy import CPU, DTYPES, Tensor, Unsupported
from tritonpy_backend_onnx.sessions import OpenSession
from tritonpy_backend_onnx.signature import TensorInfo

Array = npt.NDArray[Any]
Execute = Callable[[Sequence[Tensor]], dict[str, Tensor]]

_BF16 = 16  # TensorProto.DataType.BFLOAT16 of the ONNX format, which numpy and so `run` do not know


def execution_for(
    opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]], gpu: bool
) -> Execute:
    """Return the function that computes `outputs` from a batch's input tensors.

    `scalars` maps outputs that are scalars in the model to the shape that clients see. Raises Unsupported for a model with
    both BF16 and BYTES.
    """
    signature = opened.signature
    used = [*signature.inputs.values(), *signature.defaults.values(), *(signature.outputs[name] for name in outputs)]
    types = {info.datatype for info in used}
    if types >= {"BF16", "BYTES"}:
        raise Unsupported(
            "ONNX Runtime's Python interface cannot run a model that has both BF16 and text among its inputs and outputs"
        )
    if "BF16" in types or (gpu and "BYTES" not in types):
        return BoundRun(opened, outputs, scalars)
    if "BYTES" in types or any(not info.dims for info in used):
        return MixedRun(opened, outputs, scalars)
    return ArrayRun(opened, outputs)


class ArrayRun:
    """Tensors of plain numbers on the CPU: what arrived is what runs."""

    def __init__(self, opened: OpenSession, outputs: Sequence[str]) -> None:
        self._run = opened.session.run
        self._run_options = opened.run_options
        self._names = list(outputs)
        self._types = [(name, opened.signature.outputs[name].datatype) for name in outputs]

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:  # the hot path: 3 us beside `run`
        feeds = {tensor.name: tensor.data if tensor.device == CPU else tensor.numpy() for tensor in tensors}
        arrays = self._run(self._names, feeds, self._run_options)
        return {
            name: Tensor(name, datatype, array.shape, array)
            for (name, datatype), array in zip(self._types, arrays, strict=True)
        }


class MixedRun:
    """Texts and scalars among the tensors: they are converted on the way in and out."""

    def __init__(self, opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]]) -> None:
        self._run = opened.session.run
        self._run_options = opened.run_options
        self._names = list(outputs)
        self._inputs = {**opened.signature.inputs, **opened.signature.defaults}
        self._scalars = scalars

    def __call__(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        feeds = {tensor.name: array_of(tensor, self._inputs[tensor.name]) for tensor in tensors}
        arrays = self._run(self._names, feeds, self._run_options)
        return {
            name: Tensor.from_numpy(name, shaped(np.asarray(array), self._scalars.get(name)))
            for name, array in zip(self._names, arrays, strict=True)
        }


class BoundRun:
    """Device memory and BF16, which only an I/O binding takes. Outputs come back to the host."""

    def __init__(self, opened: OpenSession, outputs: Sequence[str], scalars: Mapping[str, tuple[int, ...]]) -> None:
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
        """Bind `tensor` and return what must live until the run is over."""
        if tensor.device != CPU:
            value = self._value_type.from_dlpack(tensor.data)
            self._binding.bind_ortvalue_input(tensor.name, value)
            return value
        array = array_of(tensor, info)
        if tensor.datatype == "BF16":
            self._binding.bind_input(tensor.name, "cpu", 0, _BF16, array.shape, array.ctypes.data)
        else:
            self._binding.bind_cpu_input(tensor.name, array)
        return array

    def _tensor(self, name: str, datatype: str, value: Any) -> Tensor:
        array = _bfloat16(value) if datatype == "BF16" else np.asarray(value.numpy())
        return Tensor.from_numpy(name, shaped(array, self._scalars.get(name)))


def array_of(tensor: Tensor, info: TensorInfo) -> Array:
    """Return what ONNX Runtime takes for `tensor`: text as `str`, a scalar without dimensions."""
    array = _texts(tensor) if tensor.datatype == "BYTES" else tensor.numpy()
    return array if info.dims else shaped(array, ())


def _texts(tensor: Tensor) -> Array:
    elements = tensor.strings()
    try:
        texts: list[str] = [element.decode() for element in elements]
    except UnicodeDecodeError:
        # Bytes that are not UTF-8 pass as numpy's fixed-width text, which ends at a NUL as texts do in Triton.
        return np.array(elements, np.bytes_).reshape(tensor.shape)
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array.reshape(tensor.shape)


def shaped(array: Array, shape: tuple[int, ...] | None) -> Array:
    """Return `array` in `shape` (None: as it is)."""
    return array if shape is None else np.asarray(array).reshape(shape)


def _bfloat16(value: Any) -> Array:
    shape = tuple(value.shape())
    size = prod(shape) * 2
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, DTYPES["BF16"]).reshape(shape)
