"""Models that fold the values of a sequence into one number that depends on their order."""

from __future__ import annotations

from onnx import TensorProto, helper

FACTOR = 3
TENSORS = """
    max_batch_size: 4
    input {{ name: "IN" data_type: TYPE_INT64 dims: 1 }}
    output {{ name: "OUT" data_type: TYPE_INT64 dims: 1 }}
    instance_group {{ count: {count} kind: KIND_CPU }}
    {more}
"""
SEQUENCES = "sequence_batching {{ {strategy} max_sequence_idle_microseconds: {idle_us} {inside} }}"
STATE = """state {{
    input_name: "OLD" output_name: "NEW" data_type: TYPE_INT64 dims: 1 {more}
    initial_state {{ name: "zero" data_type: TYPE_INT64 dims: 1 zero_data: true }}
}}"""
CONTROLS = """
    control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
    control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] } }
    control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
"""
STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 6 }"}
IDLE_US = 120_000_000
PYTHON = f"""
import os, signal
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.totals = {{}}

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        value, start, ready, end = (
            int(pb_utils.get_input_tensor_by_name(request, name).as_numpy()[0, 0])
            for name in ("IN", "START", "READY", "END")
        )
        if not ready:  # a slot without data
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros((1, 1), np.int64))])
        if value < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        number = request.correlation_id()
        total = (0 if start else self.totals[number]) * {FACTOR} + value
        self.totals[number] = total
        if end:
            del self.totals[number]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[total]], np.int64))])
"""


def folded(values: list[int]) -> list[int]:
    """Return the expected responses to the requests of one sequence: a plain accumulator."""
    totals, total = [], 0
    for value in values:
        total = total * FACTOR + value
        totals.append(total)
    return totals


def python_config(strategy: str, count: int = 1, more: str = "", idle_us: int = IDLE_US) -> str:
    """Return the configuration of a Python model that keeps the numbers itself."""
    return 'backend: "python"' + _config(
        STRATEGIES.get(strategy, strategy), count, more, idle_us, CONTROLS
    )


def onnx_config(
    strategy: str, count: int = 1, more: str = "", idle_us: int = IDLE_US, state: str = ""
) -> str:
    """Return the configuration of the ONNX model with implicit state."""
    return _config(
        STRATEGIES.get(strategy, strategy), count, more, idle_us, STATE.format(more=state)
    )


def _config(strategy: str, count: int, more: str, idle_us: int, inside: str) -> str:
    batching = SEQUENCES.format(strategy=strategy, idle_us=idle_us, inside=inside)
    return TENSORS.format(count=count, more=more) + batching


def onnx_model() -> bytes:
    """Return an ONNX model: OUT = NEW = OLD * 3 + IN."""
    tensors = {
        name: helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", 1])
        for name in ("IN", "OLD", "OUT", "NEW")
    }
    nodes = [
        helper.make_node(
            "Constant",
            [],
            ["factor"],
            value=helper.make_tensor("f", TensorProto.INT64, [1], [FACTOR]),
        ),
        helper.make_node("Mul", ["OLD", "factor"], ["scaled"]),
        helper.make_node("Add", ["scaled", "IN"], ["NEW"]),
        helper.make_node("Identity", ["NEW"], ["OUT"]),
    ]
    graph = helper.make_graph(
        nodes,
        "fold",
        [tensors[name] for name in ("IN", "OLD")],
        [tensors[name] for name in ("OUT", "NEW")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
