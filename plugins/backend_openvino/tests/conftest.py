"""Tiny models, built on demand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openvino
import pytest
from openvino import opset13 as ops

from tritonpy import ModelContext
from tritonpy_backend_openvino.options import OpenVinoOptions
from tritonpy_backend_openvino.shared_model import SharedModel
from tritonpy_backend_openvino.signature import ELEMENTS_OF_DATATYPES
from tritonpy_protos.model_config_pb2 import ModelConfig


class Models:
    """Writes models; -1 is a dynamic dimension, None a dynamic rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "1" / "model.xml"

    def parameter(
        self, name: str, datatype: str, dims: Sequence[int] | None, layout: str = ""
    ) -> Any:
        shape = (
            openvino.PartialShape.dynamic() if dims is None else openvino.PartialShape(list(dims))
        )
        node = ops.parameter(
            shape, getattr(openvino.Type, ELEMENTS_OF_DATATYPES[datatype]), name=name
        )
        node.output(0).set_names({name})
        if layout:
            node.set_layout(openvino.Layout(layout))
        return node

    def result(self, name: str, node: Any, layout: str = "") -> Any:
        node.output(0).add_names({name})
        result = ops.result(node)
        if layout:
            result.set_layout(openvino.Layout(layout))
        return result

    def save(self, results: Sequence[Any], parameters: Sequence[Any]) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        openvino.save_model(
            openvino.Model(list(results), list(parameters), "test"),
            self.path,
            compress_to_fp16=False,
        )
        return self.path

    def map(
        self,
        datatype: str,
        dims: Sequence[int] | None,
        make: Callable[[Any], Any],
        layout: str = "",
    ) -> Path:
        """OUT = make(IN)."""
        source = self.parameter("IN", datatype, dims, layout)
        return self.save([self.result("OUT", make(source), layout)], [source])

    def same(self, datatype: str, dims: Sequence[int] | None, layout: str = "") -> Path:
        """OUT is IN under another name."""
        return self.map(datatype, dims, lambda node: node, layout)

    def copied(self, datatype: str, dims: Sequence[int]) -> Path:
        """OUT has the values of IN in separate memory."""
        return self.map(
            datatype, dims, lambda node: ops.reshape(node, ops.shape_of(node), special_zero=False)
        )

    def add_sub(self) -> Path:
        one, other = (self.parameter(name, "INT32", [-1, 16]) for name in ("INPUT0", "INPUT1"))
        results = [
            self.result("OUTPUT0", ops.add(one, other)),
            self.result("OUTPUT1", ops.subtract(one, other)),
        ]
        return self.save(results, [one, other])


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Writes `model.xml` of version 1 in the test's folder."""
    return Models(tmp_path)


@pytest.fixture
def opened(models: Models) -> Callable[..., SharedModel]:
    """`opened(config, parameter=…)`: the model written by `models`."""

    def make(
        config: ModelConfig, options: OpenVinoOptions | None = None, **parameters: str
    ) -> SharedModel:
        return SharedModel(
            ModelContext(
                name="m",
                version=1,
                config=config,
                directory=models.folder,
                path=models.path.parent,
                parameters=parameters,
                output_types={},
                options=options or OpenVinoOptions(),
                engine=None,
                log=logging.LoggerAdapter(logging.getLogger("test")),
            )
        )

    return make
