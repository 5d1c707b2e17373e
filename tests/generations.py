"""A model that returns its generation, clients that check it, and calls that reload it."""

from __future__ import annotations

import itertools
import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tritonclient.grpc
import tritonclient.http
from onnx import helper, numpy_helper
from tritonclient.utils import InferenceServerException

from tests.conftest import TIMEOUT_S, ServerProcess

NAME = "m"
CONFIG = """
backend: "{backend}"
input [{{ name: "IN" data_type: TYPE_FP32 dims: [1] }}]
output [{{ name: "OUT" data_type: TYPE_FP32 dims: [1] }}]
{more}
"""
MODEL_PY = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        {begin}

    def execute(self, requests):
        {work}
        out = np.array([{generation}], np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out)]) for _ in requests]
"""
WARMUP = 'model_warmup { name: "one" inputs { key: "IN" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }'
_clock = itertools.count(1)


class Generations:
    """The model of a repository; each `write` atomically creates the next generation."""

    def __init__(
        self, repository: Path, backend: str = "onnxruntime", more: str = WARMUP, name: str = NAME
    ) -> None:
        self.name, self._backend = name, backend
        self.folder = repository / name
        self.folder.mkdir(parents=True)
        (self.folder / "config.pbtxt").write_text(CONFIG.format(backend=backend, more=more))
        self.generation = -1
        self.write()

    def write(
        self,
        version: int = 1,
        begin: str = "pass",
        work: str = "pass",
        content: bytes | None = None,
    ) -> int:
        """Write a version's file and return its generation.

        `begin` and `work` are code of a Python model: for its start and for each execution.
        """
        self.generation += 1
        python = self._backend == "python"
        if content is None and python:
            content = MODEL_PY.format(generation=self.generation, begin=begin, work=work).encode()
        file = self.folder / str(version) / ("model.py" if python else "model.onnx")
        file.parent.mkdir(exist_ok=True)
        new = file.with_name(".new")
        new.write_bytes(_constant_onnx(self.generation) if content is None else content)
        moment = next(_clock)
        os.utime(new, (moment, moment))
        os.replace(new, file)
        return self.generation


def _constant_onnx(generation: int) -> bytes:
    tensors = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("IN", "OUT")
    ]
    given = {"zero": np.zeros(1, np.float32), "generation": np.array([generation], np.float32)}
    nodes = [
        helper.make_node("Mul", ["IN", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "generation"], ["OUT"]),
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "telling", tensors[:1], tensors[1:], weights)
    return bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )


def load(served: ServerProcess, protocol: Any = tritonclient.http, name: str = NAME) -> None:
    """Load the model over a protocol; return when it serves."""
    with _client(served, protocol) as client:
        client.load_model(name)


def load_of(
    served: ServerProcess, action: str, protocol: Any, versions: str, name: str = NAME
) -> None:
    """Load or unload some versions, which tritonclient's own calls cannot."""
    if protocol is tritonclient.http:
        body = json.dumps({"parameters": {"versions": versions}})
        response = served.request(f"/v2/repository/models/{name}/{action}", body)
        if response.status != 200:
            raise InferenceServerException(response.json()["error"])
        return
    pb = tritonclient.grpc.service_pb2
    kind = pb.RepositoryModelLoadRequest if action == "load" else pb.RepositoryModelUnloadRequest
    request = kind(
        model_name=name, parameters={"versions": pb.ModelRepositoryParameter(string_param=versions)}
    )
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        getattr(
            client._client_stub,
            "RepositoryModelLoad" if action == "load" else "RepositoryModelUnload",
        )(request)


def infer_generation(
    served: ServerProcess,
    protocol: Any = tritonclient.http,
    name: str = NAME,
    version: str = "",
    **more: Any,
) -> int:
    """Return the generation that responds."""
    with _client(served, protocol) as client:
        return _generation(client.infer(name, [_input(protocol)], model_version=version, **more))


def _client(served: ServerProcess, protocol: Any) -> Any:
    if protocol is tritonclient.http:
        return tritonclient.http.InferenceServerClient(served.http, network_timeout=TIMEOUT_S)
    return tritonclient.grpc.InferenceServerClient(served.grpc)


def _input(protocol: Any) -> Any:
    given = protocol.InferInput("IN", [1], "FP32")
    given.set_data_from_numpy(np.ones(1, np.float32))
    return given


def _generation(result: Any) -> int:
    return int(result.as_numpy("OUT")[0])


@dataclass
class ExpectedGeneration:
    """The oldest generation that may still respond, as set by the test that reloads the model."""

    newest: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@dataclass
class RequestLoop:
    """One client that sends requests continuously.

    A response must not be older than the expected generation at send time, or than earlier
    responses.
    """

    responses: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self, call: Callable[[], int], expected: ExpectedGeneration) -> None:
        while not expected.over.is_set():
            least = max([expected.newest, *self.responses[-1:]])
            try:
                found = call()
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                return
            if found < least:
                self.wrong.append(f"generation {found} answered when {least} served")
            self.responses.append(found)


@contextmanager
def continuous_requests(
    served: ServerProcess, name: str = NAME, each: int = 1
) -> Iterator[tuple[list[RequestLoop], ExpectedGeneration]]:
    """Send requests over HTTP, gRPC and gRPC streams, with `each` clients per protocol.

    Fails at the end if any client recorded an error.
    """
    loops, expected = [], ExpectedGeneration()
    with ExitStack() as stack, ThreadPoolExecutor(3 * each) as pool:
        for call in [found for _ in range(each) for found in _calls(served, name, stack)]:
            loops.append(RequestLoop())
            pool.submit(loops[-1].run, call, expected)
        try:
            wait_for_responses(served, loops)
            yield loops, expected
        finally:
            expected.over.set()
            pool.shutdown()
    assert [text for loop in loops for text in loop.wrong] == []


def wait_for_responses(served: ServerProcess, loops: Sequence[RequestLoop], times: int = 2) -> None:
    """Wait until each client has `times` more responses: the later of two was sent after this call."""
    counts = [len(loop.responses) + times for loop in loops]
    served.wait(
        lambda: all(
            loop.wrong or len(loop.responses) >= count
            for loop, count in zip(loops, counts, strict=True)
        ),
        "every client is answered",
    )
    assert [text for loop in loops for text in loop.wrong] == []


def _calls(served: ServerProcess, name: str, stack: ExitStack) -> list[Callable[[], int]]:
    http = stack.enter_context(_client(served, tritonclient.http))
    grpc = stack.enter_context(_client(served, tritonclient.grpc))
    streaming = stack.enter_context(_client(served, tritonclient.grpc))
    responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
    streaming.start_stream(lambda result, error: responses.put(error or result))

    def over_a_stream() -> int:
        streaming.async_stream_infer(name, [_input(tritonclient.grpc)])
        found = responses.get(timeout=TIMEOUT_S)
        if isinstance(found, Exception):
            raise found
        return _generation(found)

    return [
        lambda: _generation(http.infer(name, [_input(tritonclient.http)])),
        lambda: _generation(grpc.infer(name, [_input(tritonclient.grpc)])),
        over_a_stream,
    ]
