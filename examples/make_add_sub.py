"""Write `models/add_sub/1/model.onnx`: sum and difference of two rows of 16 int32.

pip install onnx
python examples/make_add_sub.py
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

TARGET = Path(__file__).parent / "models" / "add_sub" / "1" / "model.onnx"


def build() -> onnx.ModelProto:
    """Return the model; its first dimension is variable, so that requests can share a batch."""

    def rows(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])

    nodes = [
        helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
        helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
    ]
    graph = helper.make_graph(
        nodes, "add_sub", [rows("INPUT0"), rows("INPUT1")], [rows("OUTPUT0"), rows("OUTPUT1")]
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(build(), TARGET)
