"""Models with one good version, and helpers for routes to them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from typing import Any

import tritonclient.grpc
import tritonclient.http
import tritonclient.utils

from tests.conftest import TIMEOUT_S, Models, ServerProcess

CODE = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = int(args["model_version"])

    def execute(self, requests):
        return [self.respond(request.inputs()[0].as_numpy()) for request in requests]

    def respond(self, given):
        if self.version == 2:
            return pb_utils.InferenceResponse([], error=pb_utils.TritonError("this version is bad"))
        if self.version == 3:
            time.sleep(0.05)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given + (self.version == 4))])
"""
STREAMS = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(request.inputs()[0].as_numpy()[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number], np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
COUNTS = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = int(args["model_version"])
        self.sum = {}

    def execute(self, requests):
        answers = []
        for request in requests:
            start, identity = (pb_utils.get_input_tensor_by_name(request, name).as_numpy().item() for name in ("START", "ID"))
            given = request.inputs()[0].as_numpy()
            self.sum[identity] = (0 if start else self.sum[identity]) + given.item()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full_like(given, self.sum[identity]))]))
        return answers
"""
TENSORS = """
backend: "python" max_batch_size: 0 version_policy { all {} }
input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
instance_group { count: 1 kind: KIND_CPU } parameters { key: "isolation" value { string_value: "thread" } }
"""
SEQUENCES = """
sequence_batching {
  oldest { max_candidate_sequences: 64 }
  max_sequence_idle_microseconds: 60000000
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
  control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
}
"""
ONE = {"model": "work", "version": 1}
LIMIT = 0.02
ANSWERED_BY = ("model_name", "model_version")

Infer = Callable[..., Any]


def write(models: Models) -> None:
    models.repository.add("work", TENSORS, {version: {"model.py": CODE} for version in range(1, 6)})
    decoupled = TENSORS + "model_transaction_policy { decoupled: true }"
    models.repository.add("streams", decoupled, {1: {"model.py": STREAMS}})
    batched = TENSORS.replace("max_batch_size: 0", "max_batch_size: 4") + SEQUENCES
    models.repository.add("counts", batched, {1: {"model.py": COUNTS}, 2: {"model.py": COUNTS}})


def config(models: Models, more: str = "") -> str:
    path = models.path.parent / "server.yaml"
    path.write_text(
        f"repositories: [{{url: {models.path}}}]\n"
        "control: {mode: explicit, load: ['*']}\nallow_client_shm: true\n"
        f"routers: {{traffic: {{sticky_headers: [x-user], state_file: {path.parent / 'routes.json'}{more}}}}}\n"
    )
    return f"--config={path}"


def operate(
    served: ServerProcess,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] = {},
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=TIMEOUT_S)
    try:
        connection.request(
            method,
            f"/v2/traffic/routes{path}",
            None if body is None else json.dumps(body),
            dict(headers),
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def put(served: ServerProcess, name: str, **route: object) -> Any:
    status, created = operate(served, "PUT", f"/{name}", {"targets": [ONE], **route})
    assert status == 200, created
    return created


def route_status(served: ServerProcess, name: str) -> Any:
    status, found = operate(served, "GET", f"/{name}")
    assert status == 200, found
    return found


def failed(infer_route: Infer, route: str) -> bool:
    try:
        infer_route(route)
    except tritonclient.utils.InferenceServerException as error:
        return "this version is bad" in str(error)
    return False


def canary(version: int, **more: object) -> dict[str, object]:
    steps = [{"share": 0.25, "requests": 20}, {"share": 0.5, "requests": 20}]
    return {"model": "work", "version": version, "steps": steps, "max_failed_share": LIMIT, **more}


def name_of(protocol: Any, test: str) -> str:
    return f"{test}-{protocol.__name__.rpartition('.')[2]}"
