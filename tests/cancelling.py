"""Models that say when they begin and end a request, and clients that leave."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from tests.conftest import TIMEOUT_S, Models, Served
from tritonpy_protos import grpc_service_pb2 as pb

DEADLINE_S = 5
MODEL = """
import json, time
from pathlib import Path
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.folder = Path(parameters["folder"]["string_value"])
        self.calls = parameters["calls"]["string_value"]

    def tell(self, what, request):
        with (self.folder / "events").open("a") as events:
            events.write(f"{what} {request.request_id()}\\n")

    def execute(self, requests):
        time.sleep(0.02)  # what is shorter lets the next request wait in the worker and not in the queue
        return [self.answer(request) for request in requests]

    def answer(self, request):
        self.tell("begin", request)
        if self.calls:
            return self.called(request)
        while not request.is_cancelled() and not (self.folder / request.request_id()).exists():
            time.sleep(0.001)
        if request.is_cancelled():
            self.tell("cancelled", request)
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("stopped", pb_utils.TritonError.CANCELLED))
        self.tell("done", request)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy())])

    def called(self, request):
        call = pb_utils.InferenceRequest(
            model_name=self.calls, request_id="child of " + request.request_id(), requested_output_names=["OUT"],
            inputs=request.inputs())
        answer = call.exec()
        self.tell("answered" if answer.error() is None else f"heard '{answer.error().message()}'", request)
        return answer
"""
CONFIG = """
    backend: "python"
    input {{ name: "IN" data_type: TYPE_INT32 dims: 1 }}
    output {{ name: "OUT" data_type: TYPE_INT32 dims: 1 }}
    parameters {{ key: "folder" value {{ string_value: "{folder}" }} }}
    parameters {{ key: "calls" value {{ string_value: "{calls}" }} }}
    parameters {{ key: "isolation" value {{ string_value: "{isolation}" }} }}
    {more}
"""


def add_model(
    models: Models, name: str, folder: Path, isolation: str = "process", calls: str = "", more: str = ""
) -> None:
    """Write a model that runs each request until a file of the request's name is there, or passes it on to the model that it `calls`."""
    config = CONFIG.format(folder=folder, calls=calls, isolation=isolation, more=more)
    models.repository.add(name, config, {1: {"model.py": MODEL}})


class Stage:
    """A server with such models, and what happened there."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served = served
        self._folder = folder
        self._channel = grpc.insecure_channel(served.grpc)
        self._infer = self._channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            pb.ModelInferRequest.SerializeToString,
            pb.ModelInferResponse.FromString,
        )
        self._stream = self._channel.stream_stream(
            "/inference.GRPCInferenceService/ModelStreamInfer",
            pb.ModelInferRequest.SerializeToString,
            pb.ModelStreamInferResponse.FromString,
        )

    def close(self) -> None:
        self._channel.close()

    def go(self, name: str) -> None:
        """Let the model end a request."""
        (self._folder / name).touch()

    def events(self, *names: str) -> list[str]:
        """Return what happened to requests, in order."""
        file = self._folder / "events"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if any(line.endswith(f" {name}") for name in names)]

    def until(self, event: str) -> None:
        """Wait for an event."""
        self.served.wait(lambda: event in self.events(event.partition(" ")[2]), f"'{event}' happens")

    def failures(self, model: str) -> dict[str, int]:
        """Return how many requests of a model failed, by reason."""
        text = Served.ask(self.metrics, "/metrics").body.decode()
        found = re.findall(
            rf'nv_inference_request_failure{{model="{model}",version="1",reason="(\w+)"}} (\d+)', text
        ) or re.findall(rf'nv_inference_request_failure{{model="{model}",reason="(\w+)",version="1"}} (\d+)', text)
        return {reason: int(count) for reason, count in found if int(count)}

    def until_failed(self, model: str, **expected: int) -> None:
        """Wait until so many requests of a model failed, and no others."""
        seen: list[dict[str, int]] = []

        def is_so() -> bool:
            seen[:] = [self.failures(model)]
            return seen == [expected]

        self.served.wait(is_so, f"failures of {model} are {expected}")

    def until_waiting(self, model: str, count: int) -> None:
        """Wait until that many requests of a model wait for an instance."""
        pattern = rf'nv_inference_pending_request_count{{model="{model}",version="1"}} {count}\n'
        self.served.wait(
            lambda: re.search(pattern, Served.ask(self.metrics, "/metrics").body.decode()), f"{count} requests wait"
        )

    @property
    def metrics(self) -> Served:
        """The metrics port, as something to ask."""
        return Served(self.served.process, self.served.output, {"http": self.served.ports["metrics"]})

    def ask(self, how: str, model: str, name: str) -> Client:
        """Send a request that nobody waits for."""
        return getattr(self, f"_by_{how}")(model, name)

    def answer(self, model: str, name: str, **parameters: Any) -> Any:
        """Send a request by gRPC; return the future of its answer."""
        return self._infer.future(message(model, name, **parameters), timeout=TIMEOUT_S)

    def _by_http(self, model: str, name: str) -> Client:
        return self._by_sockets(model, name)

    def _by_pipelining(self, model: str, name: str) -> Client:
        return self._by_sockets(model, name, f"{name}, pipelined")

    def _by_sockets(self, model: str, *names: str) -> Client:
        connection = socket.create_connection(("127.0.0.1", self.served.ports["http"]), TIMEOUT_S)
        connection.sendall(b"".join(http_request(model, name) for name in names))
        return connection.close

    def _by_grpc(self, model: str, name: str) -> Client:
        call = self._infer.future(message(model, name), timeout=TIMEOUT_S)
        return call.cancel

    def _by_deadline(self, model: str, name: str) -> Client:
        call = self._infer.future(message(model, name), timeout=DEADLINE_S)

        def leave() -> None:
            with contextlib.suppress(grpc.RpcError):
                call.result()
            assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED

        return leave

    def _by_stream(self, model: str, name: str) -> Client:
        call = self._stream(iter([message(model, name)]), timeout=TIMEOUT_S)
        return call.cancel

    def _by_stream_deadline(self, model: str, name: str) -> Client:
        call = self._stream(iter([message(model, name)]), timeout=DEADLINE_S)

        def leave() -> None:
            with contextlib.suppress(grpc.RpcError):
                next(call)
            assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED

        return leave


Client = Callable[[], Any]  # leaves


def http_request(model: str, name: str) -> bytes:
    """Return an inference request as it is sent."""
    tensor = {"name": "IN", "shape": [1], "datatype": "INT32", "data": [1]}
    body = json.dumps({"id": name, "inputs": [tensor]}).encode()
    return f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def message(model: str, name: str, **parameters: Any) -> pb.ModelInferRequest:
    """Return it as gRPC sends it."""
    request = pb.ModelInferRequest(model_name=model, id=name, raw_input_contents=[np.int32(1).tobytes()])
    request.inputs.add(name="IN", datatype="INT32", shape=[1])
    for key, value in parameters.items():
        if isinstance(value, bool):
            request.parameters[key].bool_param = value
        else:
            request.parameters[key].int64_param = value
    return request


@contextlib.contextmanager
def stage(served: Served, folder: Path) -> Iterator[Stage]:
    """Return the stage of a server and close it."""
    made = Stage(served, folder)
    try:
        yield made
    finally:
        made.close()
