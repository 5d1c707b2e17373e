"""Models of 5 ms that return their generation, and atomic replacement of their files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAME = "replaced"
TAKES_S = 0.005
_CONFIG = """\
backend: "{backend}"
input {{ name: "IN" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ count: 1 kind: KIND_CPU }}
model_warmup {{
  name: "one"
  inputs {{ key: "IN" value {{ data_type: TYPE_FP32 dims: 1 zero_data: true }} }}
}}
parameters {{ key: "intra_op_thread_count" value {{ string_value: "1" }} }}
"""
_MODEL_PY = """\
import time

import numpy as np
import triton_python_backend_utils as pb_utils

GENERATION = np.array([{generation}], np.float32)


class TritonPythonModel:
    def execute(self, requests):
        time.sleep({seconds} * len(requests))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", GENERATION)]) for _ in requests]
"""
_WIDTH = 128


class ReplaceableModel:
    """A model in `repository`; `content` makes the file of each generation, from 0."""

    def __init__(
        self, repository: Path, backend: str, file: str, content: Callable[[int], bytes]
    ) -> None:
        self._content = content
        self._file = repository / NAME / "1" / file
        self._file.parent.mkdir(parents=True)
        (repository / NAME / "config.pbtxt").write_text(_CONFIG.format(backend=backend))
        self.replace(0)

    def replace(self, generation: int) -> None:
        """Replace the model's file atomically with that of `generation`."""
        new = self._file.with_name(f".{self._file.name}.new")
        new.write_bytes(self._content(generation))
        os.replace(new, self._file)


def python_model(repository: Path) -> ReplaceableModel:
    """Write a Python model that sleeps."""
    return ReplaceableModel(
        repository,
        "python",
        "model.py",
        lambda generation: _MODEL_PY.format(generation=generation, seconds=TAKES_S).encode(),
    )


def onnx_model(repository: Path) -> ReplaceableModel:
    """Write an ONNX model with as many matrix multiplications as this machine computes in 5 ms."""
    layers = _layers()
    return ReplaceableModel(
        repository, "onnxruntime", "model.onnx", lambda generation: _graph(layers, generation)
    )


def _graph(layers: int, generation: int) -> bytes:
    weight = np.random.default_rng(0).normal(0, _WIDTH**-0.5, (_WIDTH, _WIDTH)).astype(np.float32)
    given = {
        "w": weight,
        "none": np.zeros(1, np.float32),
        "generation": np.array([generation], np.float32),
    }
    nodes = [helper.make_node("Mul", ["IN", "w"], ["x0"])]
    nodes += [
        helper.make_node("MatMul", [f"x{layer}", "w"], [f"x{layer + 1}"]) for layer in range(layers)
    ]
    nodes += [
        helper.make_node("ReduceMin", [f"x{layers}"], ["least"], keepdims=0),
        helper.make_node("Mul", ["least", "none"], ["nothing"]),
        helper.make_node("Add", ["generation", "nothing"], ["OUT"]),
    ]
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("IN", "OUT")
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "replaced", tensors[:1], tensors[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _layers(tried: int = 64) -> int:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _graph(tried, 0), options, providers=["CPUExecutionProvider"]
    )
    taken = []
    for _ in range(50):
        began = time.perf_counter()
        session.run(None, {"IN": np.ones(1, np.float32)})
        taken.append(time.perf_counter() - began)
    return max(1, round(tried * TAKES_S / min(taken)))
