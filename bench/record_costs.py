"""Recording of batch durations: `python -m bench.record_costs`.

Runs three models in ONNX Runtime on one thread, each batch size many times. `bench/costs/` has the
durations in microseconds, so that the simulation of batch policies gives the same results on every
machine.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

COSTS = Path(__file__).with_name("costs")
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
TIMES, FASTEST = 80, 40  # per size; other processes disturbed the slowest runs
_LAYERS = 200


def main() -> None:
    """Write one file per model."""
    COSTS.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    for name, model, width in (_deep(random), wide(random), _convolution(random)):
        costs = _record(model, width)
        (COSTS / f"{name}.json").write_text(json.dumps(costs) + "\n", encoding="utf-8")
        print(
            name,
            {size: round(float(np.median(each)), 1) for size, each in costs.items()},
            flush=True,
        )


def _record(model: onnx.ModelProto, shape: tuple[int, ...]) -> dict[int, list[float]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    batches = {size: np.ones((size, *shape), np.float32) for size in SIZES}
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    for round_number in range(
        TIMES + 1
    ):  # alternating sizes: other processes disturb all sizes equally
        for size, batch in batches.items():
            at = time.perf_counter_ns()
            session.run(None, {"IN": batch})
            if round_number:
                costs[size].append(round((time.perf_counter_ns() - at) / 1e3, 1))
    return {size: sorted(each)[:FASTEST] for size, each in costs.items()}


def _deep(random: np.random.Generator) -> tuple[str, onnx.ModelProto, tuple[int, ...]]:
    """Return a model of many small layers: the calls cost more than the computation."""
    weight = random.normal(0, 0.1, (64, 64)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", [f"x{index}", "w"], [f"x{index + 1}"])
        for index in range(_LAYERS)
    ]
    nodes[0].input[0], nodes[-1].output[0] = "IN", "OUT"
    return "deep", _model(nodes, [numpy_helper.from_array(weight, "w")], (64,)), (64,)


def wide(random: np.random.Generator) -> tuple[str, onnx.ModelProto, tuple[int, ...]]:
    """Return a model with large weights, read once per batch: a large fixed cost, as on a GPU."""
    weights = [random.normal(0, 0.01, (2048, 2048)).astype(np.float32) for _ in range(3)]
    nodes = [
        helper.make_node("MatMul", [f"x{index}", f"w{index}"], [f"x{index + 1}"])
        for index in range(3)
    ]
    nodes[0].input[0], nodes[-1].output[0] = "IN", "OUT"
    arrays = [numpy_helper.from_array(each, f"w{index}") for index, each in enumerate(weights)]
    return "wide", _model(nodes, arrays, (2048,)), (2048,)


def _convolution(random: np.random.Generator) -> tuple[str, onnx.ModelProto, tuple[int, ...]]:
    """Return a model of convolutions: every row costs the same, so batches save little."""
    kernels = [
        random.normal(0, 0.1, shape).astype(np.float32) for shape in ((16, 3, 3, 3), (8, 16, 3, 3))
    ]
    nodes = [
        helper.make_node("Conv", [f"x{index}", f"w{index}"], [f"x{index + 1}"], pads=[1] * 4)
        for index in range(2)
    ]
    nodes[0].input[0], nodes[-1].output[0] = "IN", "OUT"
    arrays = [numpy_helper.from_array(each, f"w{index}") for index, each in enumerate(kernels)]
    return "convolution", _model(nodes, arrays, (3, 16, 16)), (3, 16, 16)


def _model(nodes: list[Any], arrays: list[Any], shape: tuple[int, ...]) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("IN", TensorProto.FLOAT, ("N", *shape))]
    outputs = [helper.make_tensor_value_info("OUT", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "model", inputs, outputs, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
