"""Small ONNX models for unequal batches, and their configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import TensorProto, helper

TYPES = {"FP32": TensorProto.FLOAT, "INT32": TensorProto.INT32}
Tensors = Mapping[str, Sequence[Any]]


def onnx_file(
    nodes: Sequence[Any],
    inputs: Tensors,
    outputs: Tensors,
    constants: Sequence[Any] = (),
    kind: str = "FP32",
) -> bytes:
    """Return a model; tensors are shapes by name, with numbers and names of variable dimensions."""

    def described(tensors: Tensors) -> list[Any]:
        return [
            helper.make_tensor_value_info(name, TYPES[kind], shape)
            for name, shape in tensors.items()
        ]

    graph = helper.make_graph(
        list(nodes), "test", described(inputs), described(outputs), list(constants)
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def ints(name: str, *values: int) -> Any:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def batch_seen(rank: int) -> bytes:
    """A model that returns the whole batch for each row.

    ALL is every element of the ragged input RAGGED. MADE is the batch input BATCH with `rank`
    dimensions. COUNTS, one number per request, gives the number of rows: the model takes one row
    per request.
    """
    nodes = [
        helper.make_node("Div", ["COUNTS", "COUNTS"], ["ones"]),
        helper.make_node("Reshape", ["ones", "column"], ["ones_column"]),
        helper.make_node("Reshape", ["RAGGED", "row"], ["ragged_row"]),
        helper.make_node("MatMul", ["ones_column", "ragged_row"], ["ALL"]),
        helper.make_node("Reshape", ["BATCH", "row"], ["batch_row"]),
        helper.make_node("MatMul", ["ones_column", "batch_row"], ["MADE"]),
        helper.make_node("Reshape", ["COUNTS", "row"], ["counts_row"]),
        helper.make_node("MatMul", ["ones_column", "counts_row"], ["ORDER"]),
    ]
    shapes = {
        "RAGGED": ["elements"],
        "COUNTS": ["requests"],
        "BATCH": [f"b{axis}" for axis in range(rank)],
    }
    outputs = {name: ["requests", f"{name}_size"] for name in ("ALL", "MADE", "ORDER")}
    return onnx_file(nodes, shapes, outputs, [ints("column", -1, 1), ints("row", 1, -1)])


def batch_seen_config(kind: str, more: str = "") -> str:
    """Return the configuration of `batch_seen` with a batch input of the given kind."""
    outputs = "\n".join(
        f'output {{ name: "{name}" data_type: TYPE_FP32 dims: -1 }}'
        for name in ("ALL", "MADE", "ORDER")
    )
    return f"""
        max_batch_size: 8
        dynamic_batching {{ }}
        input {{ name: "RAGGED" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }}
        {outputs}
        batch_input [
          {{ kind: BATCH_ELEMENT_COUNT target_name: "COUNTS" data_type: TYPE_FP32 source_input: "RAGGED" }},
          {{ kind: {kind} target_name: "BATCH" data_type: TYPE_FP32 source_input: "RAGGED" }}
        ]
        {more}
    """


def doubled_flat() -> bytes:
    """OUT = IN + IN, both of one dimension."""
    return onnx_file(
        [helper.make_node("Add", ["IN", "IN"], ["OUT"])], {"IN": ["n"]}, {"OUT": ["n"]}
    )


DOUBLED_FLAT = """
    max_batch_size: 8
    dynamic_batching { }
    input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
    batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT" source_input: "IN" }
"""


def identity(*dims: Any) -> bytes:
    """OUT = IN."""
    return onnx_file([helper.make_node("Identity", ["IN"], ["OUT"])], {"IN": dims}, {"OUT": dims})


def reshape_config(given: str, inside: str) -> str:
    """Return the configuration of an identity whose tensors are reshaped for the model."""
    return f"""
        max_batch_size: 8
        dynamic_batching {{ }}
        input {{ name: "IN" data_type: TYPE_FP32 dims: [{given}] reshape {{ shape: [{inside}] }} }}
        output {{ name: "OUT" data_type: TYPE_FP32 dims: [{given}] reshape {{ shape: [{inside}] }} }}
    """


VARIABLE = """
    max_batch_size: 8
    dynamic_batching { }
    input { name: "IN" data_type: TYPE_FP32 dims: -1 }
    output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
"""


def with_default() -> bytes:
    """OUT = IN + BIAS, which is 10 by default."""
    bias = helper.make_tensor("BIAS", TensorProto.FLOAT, [2], [10.0, 10.0])
    return onnx_file(
        [helper.make_node("Add", ["IN", "BIAS"], ["OUT"])],
        {"IN": [2], "BIAS": [2]},
        {"OUT": [2]},
        [bias],
    )


WITH_DEFAULT = """
    input [
      { name: "IN" data_type: TYPE_FP32 dims: 2 },
      { name: "BIAS" data_type: TYPE_FP32 dims: 2 optional: true }
    ]
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
"""

# Models of the toy backends return the sum of the present inputs and the rows per batch: optional
# inputs, or a shape tensor.
MAYBE = """
    backend: "together"
    max_batch_size: 8
    dynamic_batching { }
    input [
      { name: "A" data_type: TYPE_FP32 dims: 1 optional: true },
      { name: "B" data_type: TYPE_FP32 dims: 1 optional: true }
    ]
    output [ { name: "SUM" data_type: TYPE_FP32 dims: 1 }, { name: "SEEN" data_type: TYPE_STRING dims: 1 } ]
"""
SHAPED = """
    backend: "together"
    platform: "tensorrt_plan"
    max_batch_size: 8
    dynamic_batching { }
    input [
      { name: "A" data_type: TYPE_FP32 dims: 1 },
      { name: "B" data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }
    ]
    output [ { name: "SUM" data_type: TYPE_FP32 dims: 1 }, { name: "SEEN" data_type: TYPE_STRING dims: 1 } ]
"""
