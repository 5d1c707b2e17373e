"""Signature of an engine: its tensors and optimization profiles as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Shape = tuple[int, ...]

# TensorRT's names of the element types that the protocol supports.
_DATATYPES = {
    "FLOAT": "FP32", "HALF": "FP16", "BF16": "BF16", "INT8": "INT8", "UINT8": "UINT8",
    "INT32": "INT32", "INT64": "INT64",
    "BOOL": "BOOL",
}  # fmt: skip
NO_DATATYPE = "INVALID"


class Packing(NamedTuple):
    """A nonlinear format: padded vectors of `components` elements along `dimension`."""

    dimension: int
    components: int

    def pad(self, shape: Shape) -> Shape:
        """Return the padded shape in memory of a tensor of `shape`."""
        at, size = self.dimension, self.components
        return (*shape[:at], -(-shape[at] // size) * size, *shape[at + 1 :])


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output; a dynamic dimension is -1, and a scalar has no dimensions.

    `datatype` is the protocol's name, or INVALID. A shape tensor (`is_shape`) has its values on the
    host. `packing` is None for the linear format.
    """

    name: str
    datatype: str
    dims: Shape
    is_input: bool
    is_shape: bool = False
    packing: Packing | None = None

    def in_memory(self, shape: Shape) -> Shape:
        """Return `shape` as laid out in memory."""
        return shape if self.packing is None else self.packing.pad(shape)


class Range(NamedTuple):
    """Range that a profile allows, for the shape of an input or the values of a shape tensor."""

    minimum: Shape
    optimum: Shape
    maximum: Shape


@dataclass(frozen=True, slots=True)
class Profile:
    """One optimization profile: `shapes` of all inputs, and `values` of the shape tensors."""

    index: int
    shapes: Mapping[str, Range]
    values: Mapping[str, Range]


@dataclass(frozen=True, slots=True)
class Signature:
    """All tensors by name in the engine's order, and all profiles."""

    tensors: Mapping[str, TensorInfo]
    profiles: tuple[Profile, ...]

    @property
    def inputs(self) -> Mapping[str, TensorInfo]:
        """The inputs in the engine's order."""
        return {name: info for name, info in self.tensors.items() if info.is_input}

    @property
    def outputs(self) -> Mapping[str, TensorInfo]:
        """The outputs in the engine's order."""
        return {name: info for name, info in self.tensors.items() if not info.is_input}


def read_signature(engine: Any) -> Signature:
    """Return the signature of an `ICudaEngine`."""
    tensors = {info.name: info for info in _read_tensors(engine)}
    inputs = [info for info in tensors.values() if info.is_input]
    return Signature(
        tensors,
        tuple(
            _read_profile(engine, index, inputs)
            for index in range(engine.num_optimization_profiles)
        ),
    )


def _read_tensors(engine: Any) -> Iterator[TensorInfo]:
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        yield TensorInfo(
            name,
            _DATATYPES.get(engine.get_tensor_dtype(name).name, NO_DATATYPE),
            tuple(engine.get_tensor_shape(name)),
            engine.get_tensor_mode(name).name == "INPUT",
            engine.is_shape_inference_io(name),
            _read_packing(engine, name),
        )


def _read_packing(engine: Any, name: str) -> Packing | None:
    # Not `get_tensor_format`: the lean runtime has no name for its result.
    if "linear" in engine.get_tensor_format_desc(name):
        return None
    return Packing(
        engine.get_tensor_vectorized_dim(name), engine.get_tensor_components_per_element(name)
    )


def _read_profile(engine: Any, index: int, inputs: list[TensorInfo]) -> Profile:
    shapes = {
        info.name: _read_range(engine.get_tensor_profile_shape(info.name, index)) for info in inputs
    }
    values = {
        info.name: _read_range(engine.get_tensor_profile_values(index, info.name))
        for info in inputs
        if info.is_shape
    }
    return Profile(index, shapes, values)


def _read_range(found: Any) -> Range:
    minimum, optimum, maximum = found
    return Range(tuple(minimum), tuple(optimum), tuple(maximum))
