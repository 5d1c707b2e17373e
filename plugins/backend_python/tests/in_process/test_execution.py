"""A model.py's `execute` behaves equally in a worker and in the server's process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tritonpy import OutputSpec, SequenceInfo, Tensor
from tritonpy_testing import RunningServer

from .modes import MODES, PLAN, both, planned, query, send, traced, values_of

METHODS = """
def initialize(self, args):
    self.args = args

def do_request(self, request):
    return [
        request.request_id(), request.correlation_id(), request.flags(), request.timeout(), request.parameters(),
        sorted(request.requested_output_names()), [tensor.name() for tensor in request.inputs()], request.is_cancelled(),
        request.trace().get_context(), pb_utils.get_model_dir().split("/")[-1],
    ]

def do_args(self, request):
    return [sorted(self.args), self.args["model_instance_kind"], self.args["model_version"], self.args["model_instance_device_id"]]

def do_raise(self, request, kind, text):
    raise getattr(__builtins__ if isinstance(__builtins__, type(os)) else __import__("builtins"), kind)(text)

def do_exit(self, request):
    sys.exit(3)

def do_nested(self, request):
    def inner(depth):
        return {}["missing"] if depth == 0 else inner(depth - 1)
    return inner(2)

def do_bad_tensor(self, request):
    return pb_utils.Tensor("", np.zeros(1)) and None

def do_received_again(self, request):
    return request.exec() and None

def do_model_object(self, request):
    return [type(self).__name__, type(request).__module__, pb_utils.using_decoupled_model_transaction_policy(json.loads(self.args["model_config"]))]
"""
PLANS: list[tuple[Any, ...]] = [
    ("request",),
    ("args",),
    ("raise", "ValueError", "no"),
    ("raise", "KeyError", "a"),
    ("raise", "KeyboardInterrupt", ""),
    ("raise", "MemoryError", ""),
    ("raise", "RuntimeError", "two\nlines"),
    ("exit",),
    ("nested",),
    ("bad_tensor",),
    ("received_again",),
    ("model_object",),
    ("nothing_of_that_name",),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), METHODS) as running:
        yield running


@pytest.mark.parametrize("plan", PLANS, ids=" ".join)
def test_responses_are_equal_in_both_modes(server: RunningServer, plan: tuple[Any, ...]) -> None:
    one, other = (query(server, mode, *plan) for mode in MODES)
    assert one == other
    assert one is not None


def test_fields_of_a_request_reach_the_model(server: RunningServer) -> None:
    fields = {
        "id": "7", "parameters": {"a": 1, "b": "ü", "c": True}, "timeout_us": 5_000_000, "sequence": SequenceInfo(9, True, True),
        "outputs": {"OUT": OutputSpec("OUT")},
    }  # fmt: skip
    one, other = (
        query(server, mode, "request", **fields, trace=traced("context")) for mode in MODES
    )
    assert one == other
    assert one[:5] == ["7", 9, 3, 5_000_000, '{"a":1,"b":"ü","c":true}']
    assert one[8] == "context"


RESPONSES = """
def execute(self, requests):
    name = json.loads(requests[0].inputs()[0].as_numpy()[0])[0]
    return getattr(self, name)(requests)

def good(self, requests):
    return [self.answer("good") for _ in requests]

def number(self, requests):
    return 3

def tuple(self, requests):
    return (self.answer(1),)

def too_many(self, requests):
    return [self.answer(1), self.answer(2)]

def wrong_element(self, requests):
    return ["text"]

def error(self, requests):
    return [pb_utils.InferenceResponse(error=pb_utils.TritonError("not found", pb_utils.TritonError.NOT_FOUND))]

def cancelled(self, requests):
    return [pb_utils.InferenceResponse(error=pb_utils.TritonError("left", pb_utils.TritonError.CANCELLED))]

def sender_and_return(self, requests):
    requests[0].get_response_sender().send(self.answer(1), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    return [self.answer(2)]

def sender(self, requests):
    requests[0].get_response_sender().send(self.answer("sent"), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    return [None]

def thread(self, requests):
    sender = requests[0].get_response_sender()
    threading.Thread(
        target=lambda: sender.send(self.answer("from a thread"), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    ).start()
    return None

def forgotten(self, requests):
    return [None]

async def coroutine(self, requests):
    await asyncio.sleep(0)
    return [self.answer("awaited")]

async def coroutine_raises(self, requests):
    await asyncio.sleep(0)
    raise ValueError("in a coroutine")
"""
NAMES = [
    "good",
    "number",
    "tuple",
    "too_many",
    "wrong_element",
    "error",
    "cancelled",
    "sender_and_return",
    "sender",
    "thread",
    "forgotten",
    "coroutine",
    "coroutine_raises",
    "missing",
]


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with both(tmp_path_factory.mktemp("models"), RESPONSES) as running:
        yield running


@pytest.mark.parametrize("name", NAMES)
def test_return_values_are_validated_equally_in_both_modes(
    answering: RunningServer, name: str
) -> None:
    one, other = (values_of(send(answering, mode, planned(name)), mode) for mode in MODES)
    assert one == other
    assert len(one) == 1


def test_parameters_of_a_response_reach_the_client(tmp_path: Path) -> None:
    methods = """
def execute(self, requests):
    response = self.answer(1)
    return [pb_utils.InferenceResponse(response.output_tensors(), parameters={"a": 1, "b": "c"})]
"""
    with both(tmp_path, methods) as server:
        one, other = (send(server, mode, planned("")) for mode in MODES)
        assert one[0].parameters == other[0].parameters == {"a": 1, "b": "c"}


ANY = """
backend: "python"
input { name: "IN" data_type: TYPE_%s dims: -1 } output { name: "OUT" data_type: TYPE_%s dims: -1 }
"""
VALUES = {
    "BOOL": np.array([True, False]),
    "INT8": np.array([-1, 7], np.int8),
    "UINT64": np.array([2**63], np.uint64),
    "FP16": np.array([0.5, -2], np.float16),
    "FP64": np.array([], np.float64),
    "STRING": np.array([b"", b"\xff\x00", "ü".encode()], np.object_),
    "BF16": np.array([1.5, -3], ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_datatype_can_be_input_and_output(tmp_path: Path, kind: str) -> None:
    if kind == "BF16":
        passed = "pb_utils.Tensor.from_dlpack('OUT', request.inputs()[0].to_dlpack())"
    else:
        passed = "pb_utils.Tensor('OUT', request.inputs()[0].as_numpy())"
    methods = f"def execute(self, requests): return [pb_utils.InferenceResponse([{passed}]) for request in requests]"
    with both(tmp_path, methods, ANY % (kind, kind)) as server:
        for mode in MODES:
            (answer,) = send(server, mode, {"IN": Tensor.from_numpy("IN", VALUES[kind])})
            assert answer.error is None
            assert answer.outputs[0].numpy().tolist() == VALUES[kind].tolist()
            assert answer.outputs[0].numpy().dtype == VALUES[kind].dtype


def test_only_requested_outputs_are_sent(tmp_path: Path) -> None:
    methods = """
def execute(self, requests):
    return [
        pb_utils.InferenceResponse([pb_utils.Tensor(name, np.array([b"1"], object)) for name in ("OUT", "MORE")]) for _ in requests
    ]
"""
    with both(
        tmp_path, methods, 'output { name: "MORE" data_type: TYPE_STRING dims: 1 }' + PLAN
    ) as server:
        for mode in MODES:
            (answer,) = send(server, mode, planned(""), outputs={"MORE": OutputSpec("MORE")})
            assert [tensor.name for tensor in answer.outputs] == ["MORE"]


def test_requests_of_a_batch_are_executed_together(tmp_path: Path) -> None:
    config = """
    backend: "python" max_batch_size: 8 dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 30000000 }
    input { name: "IN" data_type: TYPE_INT64 dims: 1 } output { name: "OUT" data_type: TYPE_INT64 dims: 1 }
    """
    methods = """
def execute(self, requests):
    return [
        pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() + 100 * len(requests))])
        for request in requests
    ]
"""
    with both(tmp_path, methods, config) as server, ThreadPoolExecutor(3) as pool:
        for mode in MODES:
            inputs = [
                {"IN": Tensor.from_numpy("IN", np.array([[number]], np.int64))}
                for number in range(3)
            ]
            answers = list(pool.map(lambda one, mode=mode: send(server, mode, one), inputs))
            assert [answer.outputs[0].numpy().tolist() for (answer,) in answers] == [
                [[300]],
                [[301]],
                [[302]],
            ]
            statistics = server.engine.statistics(mode)[0]
            assert (statistics.inference_count, statistics.execution_count) == (3, 1)
