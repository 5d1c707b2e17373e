"""Models and input files for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper

from tritonpy_batch import BatchOptions

POISON = '''
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Doubles X; rejects batches with 13, and ends its process at 666."""

    def execute(self, requests):
        responses = []
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if (values == 666).any():
                import os
                os._exit(1)
            if (values == 13).any():
                error = pb_utils.TritonError("13 is not allowed")
                responses.append(pb_utils.InferenceResponse([], error))
                continue
            outputs = [pb_utils.Tensor("Y", 2 * values)]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
'''
ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("Y", request.inputs()[0].as_numpy())])
            for request in requests
        ]
"""
POISON_CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "X" data_type: TYPE_FP32 dims: 1 }
output { name: "Y" data_type: TYPE_FP32 dims: 1 }
"""


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`double` (Y = 2 X, rows of 4), `classes` (rows of 4 with labels), `ragged` (any length) and others."""
    folder = tmp_path_factory.mktemp("models")
    _write(folder, "double", helper.make_node("Add", ["X", "X"], ["Y"]), [4], [4], 8)
    _write(folder, "classes", helper.make_node("Identity", ["X"], ["Y"]), [4], [4], 8, labels=True)
    _write(folder, "ragged", helper.make_node("Neg", ["X"], ["Y"]), [-1], [-1], 8)
    _write(folder, "image", helper.make_node("Identity", ["X"], ["Y"]), [3, 2, 2], [3, 2, 2], 8)
    _write(folder, "single", helper.make_node("Neg", ["X"], ["Y"]), [2, 3], [2, 3], 0)
    largest = helper.make_node("ReduceMax", ["X"], ["Y"], axes=[1], keepdims=1)
    _write(folder, "largest", largest, [-1], [1], 8)
    for name, code, config in (
        ("poison", POISON, POISON_CONFIG),
        ("echo", ECHO, POISON_CONFIG.replace("FP32", "STRING")),
    ):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "1" / "model.py").write_text(code)
        (folder / name / "config.pbtxt").write_text(config)
    return folder


def _write(
    folder: Path,
    name: str,
    node: Any,
    dims: list[int],
    out: list[int],
    batch: int,
    labels: bool = False,
) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True)

    def info(tensor: str, shape: list[int]) -> Any:
        sizes = [dim if dim > 0 else f"n{at}" for at, dim in enumerate(shape)]
        return helper.make_tensor_value_info(
            tensor, TensorProto.FLOAT, ["b", *sizes] if batch else sizes
        )

    graph = helper.make_graph([node], name, [info("X", dims)], [info("Y", out)])
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), version / "model.onnx")
    config = f'backend: "onnxruntime"\nmax_batch_size: {batch}\n'
    if labels:
        config += 'output { name: "Y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }\n'
        (folder / name / "labels.txt").write_text("zero\none\ntwo\nthree\n")
    (folder / name / "config.pbtxt").write_text(config)


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., Path]:
    """`source(rows, files=2)`: a folder of Parquet files with `id` and `X`, four floats per row."""

    def make(rows: int, files: int = 2, group: int = 10) -> Path:
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        for number, ids in enumerate(np.array_split(np.arange(rows), files)):
            values = np.repeat(ids.astype(np.float32), 4)
            column = pa.FixedSizeListArray.from_arrays(pa.array(values), 4)
            table = pa.table({"id": pa.array(ids), "X": column})
            pq.write_table(table, folder / f"{number:03}.parquet", row_group_size=group)
        return folder

    return make


@pytest.fixture
def options(repository: Path, tmp_path: Path) -> Callable[..., BatchOptions]:
    """`options(model, input, **more)`: options with an output folder below `tmp_path`."""

    def make(model: str, source: object, **more: Any) -> BatchOptions:
        more.setdefault("output", str(tmp_path / "out"))
        more.setdefault("repository", str(repository))
        return BatchOptions(model=model, inputs=(str(source),), **more)

    return make


@pytest.fixture
def read() -> Callable[..., list[dict[str, Any]]]:
    """`read(folder)`: the rows of all Parquet parts in order."""

    def rows(folder: object) -> list[dict[str, Any]]:
        parts = sorted(Path(str(folder)).glob("part-*.parquet"))
        return [row for part in parts for row in pq.read_table(part).to_pylist()]

    return rows
