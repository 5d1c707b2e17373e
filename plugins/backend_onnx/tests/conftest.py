"""Tiny ONNX models, built on demand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf import text_format
from onnx import TensorProto, helper

from tritonpy import ModelContext
from tritonpy_backend_onnx.options import OnnxOptions
from tritonpy_protos.model_config_pb2 import ModelConfig

TYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING, "BF16": TensorProto.BFLOAT16,
}  # fmt: skip
Tensors = Mapping[str, tuple[str, Sequence[Any] | None]]  # name -> datatype, shape


class Models:
    """Writes models; a shape contains numbers, names of dynamic dimensions, or None."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "1" / "model.onnx"

    def write(
        self,
        nodes: Sequence[Any],
        inputs: Tensors,
        outputs: Tensors,
        initializers: Sequence[Any] = (),
    ) -> Path:
        def values(tensors: Tensors) -> list[Any]:
            return [
                helper.make_tensor_value_info(name, TYPES[kind], shape)
                for name, (kind, shape) in tensors.items()
            ]

        graph = helper.make_graph(
            nodes, "test", values(inputs), values(outputs), list(initializers)
        )
        return self.save(graph)

    def save(self, graph: Any) -> Path:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, self.path)
        return self.path

    def identity(self, datatype: str, shape: Sequence[Any] | None) -> Path:
        tensor = (datatype, shape)
        return self.write(
            [helper.make_node("Identity", ["IN"], ["OUT"])], {"IN": tensor}, {"OUT": tensor}
        )

    def add_sub(self) -> Path:
        tensor = ("INT32", ["batch", 16])
        return self.write(
            [
                helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
                helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"]),
            ],
            {"INPUT0": tensor, "INPUT1": tensor},
            {"OUTPUT0": tensor, "OUTPUT1": tensor},
        )

    def with_default(self) -> Path:
        """OUT = IN + BIAS, where BIAS is 10 by default."""
        return self.write(
            [helper.make_node("Add", ["IN", "BIAS"], ["OUT"])],
            {"IN": ("FP32", [2]), "BIAS": ("FP32", [2])},
            {"OUT": ("FP32", [2])},
            [helper.make_tensor("BIAS", TensorProto.FLOAT, [2], [10.0, 10.0])],
        )

    def sequence_output(self) -> Path:
        inputs = [helper.make_tensor_value_info("IN", TensorProto.FLOAT, [2])]
        outputs = [helper.make_tensor_sequence_value_info("OUT", TensorProto.FLOAT, [2])]
        return self.save(
            helper.make_graph(
                [helper.make_node("SequenceConstruct", ["IN"], ["OUT"])], "test", inputs, outputs
            )
        )


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Writes `model.onnx` of version 1 in the test's folder."""
    return Models(tmp_path)


@pytest.fixture
def context(models: Models) -> Callable[..., ModelContext]:
    """Return the context of version 1 of a model."""

    def make(text: str = "", options: OnnxOptions | None = None, **parameters: str) -> ModelContext:
        parsed = text_format.Parse('name: "m" ' + text, ModelConfig())
        return ModelContext(
            name="m", version=1, config=parsed, directory=models.folder, path=models.folder / "1", parameters=parameters,
            output_types={}, options=options or OnnxOptions(), engine=None,
            log=logging.LoggerAdapter(logging.getLogger("test")),
        )  # fmt: skip

    return make
