"""Models that record the begin and end of each request, and clients that disconnect."""

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

from tests.conftest import TIMEOUT_S, Models, ServerProcess
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

    def record(self, what, request):
        with (self.folder / "events").open("a") as events:
            events.write(f"{what} {request.request_id()}\\n")

    def execute(self, requests):
        time.sleep(0.02)  # shorter executions let the next request wait in the worker instead of the queue
        return [self.respond(request) for request in requests]

    def respond(self, request):
        self.record("begin", request)
        if self.calls:
            return self.called(request)
        while not request.is_cancelled() and not (self.folder / request.request_id()).exists():
            time.sleep(0.001)
        if request.is_cancelled():
            self.record("cancelled", request)
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("stopped", pb_utils.TritonError.CANCELLED))
        self.record("done", request)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy())])

    def called(self, request):
        call = pb_utils.InferenceRequest(
            model_name=self.calls, request_id="child of " + request.request_id(), requested_output_names=["OUT"],
            inputs=request.inputs())
        response = call.exec()
        self.record("finished" if response.error() is None else f"failed '{response.error().message()}'", request)
        return response
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
    models: Models,
    name: str,
    folder: Path,
    isolation: str = "process",
    calls: str = "",
    more: str = "",
) -> None:
    """Write a model that runs each request until a file with the request's name exists.

    `calls` names a model that the new model calls instead.
    """
    config = CONFIG.format(folder=folder, calls=calls, isolation=isolation, more=more)
    models.repository.add(name, config, {1: {"model.py": MODEL}})


class CancellationServer:
    """A server with such models and the record of their requests."""

    def __init__(self, served: ServerProcess, folder: Path) -> None:
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

    def finish(self, name: str) -> None:
        """Let the model finish a request."""
        (self._folder / name).touch()

    def events(self, *names: str) -> list[str]:
        """Return the recorded events of requests, in order."""
        file = self._folder / "events"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if any(line.endswith(f" {name}") for name in names)]

    def wait_for_event(self, event: str) -> None:
        """Wait for an event."""
        self.served.wait(
            lambda: event in self.events(event.partition(" ")[2]), f"'{event}' happens"
        )

    def failures(self, model: str) -> dict[str, int]:
        """Return the number of failed requests of a model by reason."""
        text = ServerProcess.request(self.metrics, "/metrics").body.decode()
        found = re.findall(
            rf'nv_inference_request_failure{{model="{model}",version="1",reason="(\w+)"}} (\d+)',
            text,
        ) or re.findall(
            rf'nv_inference_request_failure{{model="{model}",reason="(\w+)",version="1"}} (\d+)',
            text,
        )
        return {reason: int(count) for reason, count in found if int(count)}

    def wait_until_failed(self, model: str, **expected: int) -> None:
        """Wait until the failure counts of a model are exactly `expected`."""
        seen: list[dict[str, int]] = []

        def is_so() -> bool:
            seen[:] = [self.failures(model)]
            return seen == [expected]

        self.served.wait(is_so, f"failures of {model} are {expected}")

    def wait_until_queued(self, model: str, count: int) -> None:
        """Wait until that many requests of a model are queued."""
        pattern = rf'nv_inference_pending_request_count{{model="{model}",version="1"}} {count}\n'
        self.served.wait(
            lambda: re.search(
                pattern, ServerProcess.request(self.metrics, "/metrics").body.decode()
            ),
            f"{count} requests wait",
        )

    @property
    def metrics(self) -> ServerProcess:
        """The metrics port, as a server that can be requested."""
        return ServerProcess(
            self.served.process, self.served.output, {"http": self.served.ports["metrics"]}
        )

    def start_request(self, how: str, model: str, name: str) -> Client:
        """Send a request over the transport `how`; return a function that disconnects its client."""
        return getattr(self, f"_by_{how}")(model, name)

    def infer(self, model: str, name: str, **parameters: Any) -> Any:
        """Send a request over gRPC; return the future of its response."""
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

        def disconnect() -> None:
            with contextlib.suppress(grpc.RpcError):
                call.result()
            assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED

        return disconnect

    def _by_stream(self, model: str, name: str) -> Client:
        call = self._stream(iter([message(model, name)]), timeout=TIMEOUT_S)
        return call.cancel

    def _by_stream_deadline(self, model: str, name: str) -> Client:
        call = self._stream(iter([message(model, name)]), timeout=DEADLINE_S)

        def disconnect() -> None:
            with contextlib.suppress(grpc.RpcError):
                next(call)
            assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED

        return disconnect


Client = Callable[[], Any]  # disconnects


def http_request(model: str, name: str) -> bytes:
    """Return the bytes of an HTTP inference request."""
    tensor = {"name": "IN", "shape": [1], "datatype": "INT32", "data": [1]}
    body = json.dumps({"id": name, "inputs": [tensor]}).encode()
    return (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def message(model: str, name: str, **parameters: Any) -> pb.ModelInferRequest:
    """Return the same request as a gRPC message."""
    request = pb.ModelInferRequest(
        model_name=model, id=name, raw_input_contents=[np.int32(1).tobytes()]
    )
    request.inputs.add(name="IN", datatype="INT32", shape=[1])
    for key, value in parameters.items():
        if isinstance(value, bool):
            request.parameters[key].bool_param = value
        else:
            request.parameters[key].int64_param = value
    return request


@contextlib.contextmanager
def cancellation_server(served: ServerProcess, folder: Path) -> Iterator[CancellationServer]:
    """Return the cancellation server of `served` and close it at the end."""
    made = CancellationServer(served, folder)
    try:
        yield made
    finally:
        made.close()
