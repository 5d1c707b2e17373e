"""Signature of an ONNX model: its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tritonpy import Unsupported

# ONNX Runtime's names of the element types that the protocol supports.
_DATATYPES = {
    "tensor(bool)": "BOOL",
    "tensor(uint8)": "UINT8",
    "tensor(uint16)": "UINT16",
    "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64",
    "tensor(int8)": "INT8",
    "tensor(int16)": "INT16",
    "tensor(int32)": "INT32",
    "tensor(int64)": "INT64",
    "tensor(float16)": "FP16",
    "tensor(bfloat16)": "BF16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": "BYTES",
}
_KINDS = {
    "seq": "ONNX_TYPE_SEQUENCE",
    "map": "ONNX_TYPE_MAP",
    "sparse_tensor": "ONNX_TYPE_SPARSETENSOR",
    "opaque": "ONNX_TYPE_OPAQUE",
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One input or output; a dynamic dimension is -1, and a scalar has no dimensions."""

    datatype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs by name, in the model's order.

    `defaults` are inputs with a default value.
    """

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    defaults: Mapping[str, TensorInfo]

    @property
    def can_batch(self) -> bool:
        """Whether the first dimension of every input and output is dynamic."""
        return all(
            info.dims[:1] == (-1,) for info in (*self.inputs.values(), *self.outputs.values())
        )


def read_signature(session: Any) -> Signature:
    """Return the signature of an `InferenceSession`.

    Raises `Unsupported` for values that are no tensors.
    """
    return Signature(
        _read_infos(session.get_inputs()),
        _read_infos(session.get_outputs()),
        _read_infos(session.get_overridable_initializers()),
    )


def _read_infos(nodes: Iterable[Any]) -> dict[str, TensorInfo]:
    return {
        node.name: TensorInfo(
            protocol_datatype(node.name, node.type),
            tuple(dim if isinstance(dim, int) else -1 for dim in node.shape),
        )
        for node in nodes
    }


def protocol_datatype(name: str, onnx_type: str) -> str:
    """Return the protocol's datatype for an ONNX type such as `tensor(float)`.

    Raises `Unsupported` if the protocol has none.
    """
    datatype = _DATATYPES.get(onnx_type)
    if datatype is None:
        kind = onnx_type.partition("(")[0]
        if kind != "tensor":
            raise Unsupported(
                f"Unsupported ONNX Type '{_KINDS.get(kind, 'ONNX_TYPE_UNKNOWN')}' for I/O "
                f"'{name}', "
                "expected 'ONNX_TYPE_TENSOR'."
            )
        raise Unsupported(
            f"the element type of I/O '{name}' is {onnx_type}, which the protocol does not support"
        )
    return datatype
