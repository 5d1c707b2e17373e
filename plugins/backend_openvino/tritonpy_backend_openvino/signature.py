"""Signature of an OpenVINO model: its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tritonpy import Unsupported

# OpenVINO's names of the element types that the protocol supports.
DATATYPES_OF_ELEMENTS: Mapping[str, str] = {
    "boolean": "BOOL",
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "u64": "UINT64",
    "i8": "INT8",
    "i16": "INT16",
    "i32": "INT32",
    "i64": "INT64",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "bf16": "BF16",
    "string": "BYTES",
}
ELEMENTS_OF_DATATYPES: Mapping[str, str] = {
    datatype: name for name, datatype in DATATYPES_OF_ELEMENTS.items()
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output; `index` is its position.

    A dynamic dimension is -1, a scalar has no dimensions, and `dims` is None if the rank is
    dynamic. `names` are all names of the tensor in the model. `layout` is OpenVINO's layout, such
    as `[N,C,H,W]`, or empty.
    """

    index: int
    datatype: str
    dims: tuple[int, ...] | None
    names: frozenset[str] = frozenset()
    layout: str = ""

    @property
    def batches(self) -> bool:
        """Whether the first dimension is the batch: by the layout, or because it is dynamic."""
        if self.layout:
            return (
                self.layout.startswith("[N,")
                or self.layout == "[N]"
                or self.layout.startswith("[N...")
            )
        return self.dims is not None and self.dims[:1] == (-1,)


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs by the name that clients see, in the model's order."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]

    @property
    def can_batch(self) -> bool:
        """Whether every input and output has a batch dimension."""
        return all(info.batches for info in (*self.inputs.values(), *self.outputs.values()))


def with_aliases(infos: Mapping[str, TensorInfo]) -> Mapping[str, TensorInfo]:
    """Return `infos` by the names that clients see and by all their other names in the model."""
    return {alias: info for info in infos.values() for alias in info.names} | dict(infos)


def read_signature(model: Any) -> Signature:
    """Return the signature of an `openvino.Model` or a compiled model.

    Raises `Unsupported` for a data type that the protocol does not support.
    """
    return Signature(_read_infos(model.inputs, "INPUT"), _read_infos(model.outputs, "OUTPUT"))


def _read_infos(ports: Iterable[Any], kind: str) -> dict[str, TensorInfo]:
    found = {}
    for index, port in enumerate(ports):
        names = frozenset(
            alias for name in port.get_names() for alias in (name, name.removesuffix(":0"))
        )
        name = shortest_name(names) or f"{kind}__{index}"
        shape = port.get_partial_shape()
        dims = (
            None
            if shape.rank.is_dynamic
            else tuple(dim.get_length() if dim.is_static else -1 for dim in shape)
        )
        found[name] = TensorInfo(
            index,
            _datatype(name, port.get_element_type().get_type_name()),
            dims,
            names,
            _layout(port),
        )
    return found


def shortest_name(names: Iterable[str]) -> str:
    """Return the shortest name, preferably without TensorFlow's output number.

    Empty if there are none.
    """
    return min(names, key=lambda name: (":" in name, len(name), name), default="")


def _datatype(name: str, element: str) -> str:
    datatype = DATATYPES_OF_ELEMENTS.get(element)
    if datatype is None:
        raise Unsupported(
            f"the element type of I/O '{name}' is {element}, which the protocol does not support"
        )
    return datatype


def _layout(port: Any) -> str:
    """Return the layout of a model's input or output; those of compiled models are empty."""
    layout = getattr(port.get_node(), "layout", None)
    return "" if layout is None or layout.empty else str(layout)
