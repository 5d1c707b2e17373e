"""A model whose answers tell its generation, clients that check them without a pause, and the requests that replace it."""

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

from tests.conftest import TIMEOUT_S, Served

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
    """The model of a repository; each `write` is the next generation, in one step: nobody sees half of it."""

    def __init__(self, repository: Path, backend: str = "onnxruntime", more: str = WARMUP, name: str = NAME) -> None:
        self.name, self._backend = name, backend
        self.folder = repository / name
        self.folder.mkdir(parents=True)
        (self.folder / "config.pbtxt").write_text(CONFIG.format(backend=backend, more=more))
        self.generation = -1
        self.write()

    def write(self, version: int = 1, begin: str = "pass", work: str = "pass", content: bytes | None = None) -> int:
        """Write a version's file and return its generation; `begin` and `work` are what a Python model does when it starts and when it executes."""
        self.generation += 1
        python = self._backend == "python"
        if content is None and python:
            content = MODEL_PY.format(generation=self.generation, begin=begin, work=work).encode()
        file = self.folder / str(version) / ("model.py" if python else "model.onnx")
        file.parent.mkdir(exist_ok=True)
        new = file.with_name(".new")
        new.write_bytes(_telling_onnx(self.generation) if content is None else content)
        moment = next(_clock)
        os.utime(new, (moment, moment))
        os.replace(new, file)
        return self.generation


def _telling_onnx(generation: int) -> bytes:
    tensors = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("IN", "OUT")]
    given = {"zero": np.zeros(1, np.float32), "generation": np.array([generation], np.float32)}
    nodes = [
        helper.make_node("Mul", ["IN", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "generation"], ["OUT"]),
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "telling", tensors[:1], tensors[1:], weights)
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )


def load(served: Served, protocol: Any = tritonclient.http, name: str = NAME) -> None:
    """Load the model over a protocol; returns when it serves."""
    with _client(served, protocol) as client:
        client.load_model(name)


def load_of(served: Served, action: str, protocol: Any, versions: str, name: str = NAME) -> None:
    """Load or unload some versions: what tritonclient's own calls have no argument for."""
    if protocol is tritonclient.http:
        body = json.dumps({"parameters": {"versions": versions}})
        answer = served.ask(f"/v2/repository/models/{name}/{action}", body)
        if answer.status != 200:
            raise InferenceServerException(answer.json()["error"])
        return
    pb = tritonclient.grpc.service_pb2
    kind = pb.RepositoryModelLoadRequest if action == "load" else pb.RepositoryModelUnloadRequest
    asked = kind(model_name=name, parameters={"versions": pb.ModelRepositoryParameter(string_param=versions)})
    with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        getattr(client._client_stub, "RepositoryModelLoad" if action == "load" else "RepositoryModelUnload")(asked)


def ask(served: Served, protocol: Any = tritonclient.http, name: str = NAME, version: str = "", **more: Any) -> int:
    """Return the generation that answers."""
    with _client(served, protocol) as client:
        return _generation(client.infer(name, [_input(protocol)], model_version=version, **more))


def _client(served: Served, protocol: Any) -> Any:
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
class Switches:
    """The generation that has to answer from now on, as the one who replaces the model says it."""

    newest: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@dataclass
class Asker:
    """One client that asks again and again; an answer must not be older than the switch was, or the answers before, when it was asked for."""

    answers: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self, call: Callable[[], int], switches: Switches) -> None:
        while not switches.over.is_set():
            least = max([switches.newest, *self.answers[-1:]])
            try:
                found = call()
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                return
            if found < least:
                self.wrong.append(f"generation {found} answered when {least} served")
            self.answers.append(found)


@contextmanager
def asked(served: Served, name: str = NAME, each: int = 1) -> Iterator[tuple[list[Asker], Switches]]:
    """Have the model asked over HTTP, over gRPC and over gRPC streams, by `each` clients; at the end nothing must have gone wrong."""
    askers, switches = [], Switches()
    with ExitStack() as stack, ThreadPoolExecutor(3 * each) as pool:
        for call in [found for _ in range(each) for found in _calls(served, name, stack)]:
            askers.append(Asker())
            pool.submit(askers[-1].run, call, switches)
        try:
            until_asked(served, askers)
            yield askers, switches
        finally:
            switches.over.set()
            pool.shutdown()
    assert [text for asker in askers for text in asker.wrong] == []


def until_asked(served: Served, askers: Sequence[Asker], times: int = 2) -> None:
    """Wait until each client had `times` more answers: the later of two began after this did."""
    counts = [len(asker.answers) + times for asker in askers]
    served.wait(
        lambda: all(asker.wrong or len(asker.answers) >= count for asker, count in zip(askers, counts, strict=True)),
        "every client is answered",
    )
    assert [text for asker in askers for text in asker.wrong] == []


def _calls(served: Served, name: str, stack: ExitStack) -> list[Callable[[], int]]:
    http = stack.enter_context(_client(served, tritonclient.http))
    grpc = stack.enter_context(_client(served, tritonclient.grpc))
    streaming = stack.enter_context(_client(served, tritonclient.grpc))
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    streaming.start_stream(lambda result, error: answers.put(error or result))

    def over_a_stream() -> int:
        streaming.async_stream_infer(name, [_input(tritonclient.grpc)])
        found = answers.get(timeout=TIMEOUT_S)
        if isinstance(found, Exception):
            raise found
        return _generation(found)

    return [
        lambda: _generation(http.infer(name, [_input(tritonclient.http)])),
        lambda: _generation(grpc.infer(name, [_input(tritonclient.grpc)])),
        over_a_stream,
    ]
