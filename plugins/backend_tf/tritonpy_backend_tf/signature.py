"""Signature of a TensorFlow model: its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# TensorFlow's element types by their numbers in its files.
TF_TYPES: Mapping[int, str] = {
    1: "DT_FLOAT", 2: "DT_DOUBLE", 3: "DT_INT32", 4: "DT_UINT8", 5: "DT_INT16", 6: "DT_INT8",
    7: "DT_STRING",
    8: "DT_COMPLEX64", 9: "DT_INT64", 10: "DT_BOOL", 11: "DT_QINT8", 12: "DT_QUINT8",
    13: "DT_QINT32", 14: "DT_BFLOAT16",
    15: "DT_QINT16", 16: "DT_QUINT16", 17: "DT_UINT16", 18: "DT_COMPLEX128", 19: "DT_HALF",
    20: "DT_RESOURCE",
    21: "DT_VARIANT", 22: "DT_UINT32", 23: "DT_UINT64",
}  # fmt: skip
_DATATYPES = {
    "DT_BOOL": "BOOL", "DT_UINT8": "UINT8", "DT_UINT16": "UINT16", "DT_UINT32": "UINT32",
    "DT_UINT64": "UINT64",
    "DT_INT8": "INT8", "DT_INT16": "INT16", "DT_INT32": "INT32", "DT_INT64": "INT64",
    "DT_HALF": "FP16",
    "DT_FLOAT": "FP32", "DT_DOUBLE": "FP64", "DT_BFLOAT16": "BF16", "DT_STRING": "BYTES",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output; `tensor` is its name in the graph, such as `StatefulPartitionedCall:0`.

    A dynamic dimension is -1, a scalar has no dimensions, and `dims` is None if the rank is
    unknown.
    """

    datatype: str
    dims: tuple[int, ...] | None
    tensor: str


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs by the names that clients use.

    A graph without a signature has only candidates: `optional` are inputs that requests may omit,
    `inner` are other tensors that a configuration may name as outputs. `exact` means that every
    input is required. `outputs_have_rows` means that no output is ragged or sparse; their parts
    have other numbers of rows.
    """

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    optional: Mapping[str, TensorInfo] = field(default_factory=dict)
    inner: Mapping[str, TensorInfo] = field(default_factory=dict)
    exact: bool = True
    outputs_have_rows: bool = True

    @property
    def known_inputs(self) -> Mapping[str, TensorInfo]:
        """All inputs that a configuration may name."""
        return {**self.inputs, **self.optional}

    @property
    def known_outputs(self) -> Mapping[str, TensorInfo]:
        """All outputs that a configuration may name."""
        return {**self.outputs, **self.inner}

    @property
    def can_batch(self) -> bool:
        """Whether the first dimension of every input and output is dynamic or unknown."""
        infos = (*self.inputs.values(), *self.outputs.values())
        return self.outputs_have_rows and all(
            info.dims is None or info.dims[:1] == (-1,) for info in infos
        )


def protocol_datatype(number: int) -> str | None:
    """Return the protocol's datatype for an element type in TensorFlow's files, or None."""
    return _DATATYPES.get(TF_TYPES.get(number, ""))


def type_name(number: int) -> str:
    """Return TensorFlow's name of an element type."""
    return TF_TYPES.get(number, f"DT_{number}")
