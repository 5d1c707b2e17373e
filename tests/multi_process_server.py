"""Helpers for servers with frontend processes: processes, load generators and models."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import Models, ServerProcess
from tests.served_transport import TRANSPORT

FLAGS = (f"--transport={TRANSPORT or 'none'}", "--frontend-processes=2")


ONE = '{"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [4]}]}'


SUMS = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.respond(request) for request in requests]

    def respond(self, request):
        name = request.correlation_id()
        value = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        self.sums[name] = self.sums.get(name, 0) + int(value.sum())
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([[self.sums[name]]], np.int32))])
"""


SUMS_CONFIG = """
backend: "python"
max_batch_size: 4
input [{ name: "IN" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "OUT" data_type: TYPE_INT32 dims: [1] }]
instance_group [{ count: 2 kind: KIND_CPU }]
sequence_batching { control_input [
  { name: "START" control [{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }] }] }
"""


COUNTING = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(100_000):
                if request.is_cancelled():
                    break
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full((1, 4096), number, np.int32))]))
                open(PROGRESS, "w").write(str(number + 1))
            open(PROGRESS + ".ended", "w").close()
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


COUNTING_CONFIG = """
backend: "python"
max_batch_size: 1
input [{ name: "IN" data_type: TYPE_INT32 dims: [1] }]
output [{ name: "OUT" data_type: TYPE_INT32 dims: [4096] }]
model_transaction_policy { decoupled: true }
"""


def processes(served: ServerProcess) -> list[psutil.Process]:
    """Return the running frontend processes."""
    found = []
    for child in psutil.Process(served.process.pid).children():
        with contextlib.suppress(psutil.Error):  # the process ended meanwhile
            if "tritonpy_frontend_processes.process" in " ".join(child.cmdline()):
                found.append(child)
    return found


def listener_count(served: ServerProcess) -> int:
    """Return the number of processes that listen on the HTTP port."""
    with contextlib.suppress(psutil.Error):
        return len(
            [process for process in processes(served) for one in process.net_connections("tcp")
             if one.status == psutil.CONN_LISTEN and one.laddr.port == served.ports["http"]]
        )  # fmt: skip
    return 0


@contextlib.contextmanager
def connections(
    served: ServerProcess, count: int = 32
) -> Iterator[list[http.client.HTTPConnection]]:
    """Open enough connections that each process has at least one."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)))
            for _ in range(count)
        ]  # fmt: skip


def request_path(
    connection: http.client.HTTPConnection, path: str, body: str | None = None
) -> tuple[int, bytes]:
    connection.request("GET" if body is None else "POST", path, body)
    response = connection.getresponse()
    return response.status, response.read()


def metrics(served: ServerProcess) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["metrics"], timeout=60)
    with contextlib.closing(connection):
        return request_path(connection, "/metrics")[1].decode()


@contextlib.contextmanager
def slow_stream(served: ServerProcess) -> Iterator[socket.socket]:
    """A generate_stream call of the model `counting` whose responses are never read."""
    body = '{"IN": 1}'
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", served.ports["http"]))
        head = f"POST /v2/models/counting/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        reader.sendall((head + body).encode())
        yield reader


def read_count(progress_file: Path) -> int:
    return int(progress_file.read_text() or 0)


def pending(served: ServerProcess, model: str) -> int:
    line = next(
        each
        for each in metrics(served).splitlines()
        if each.startswith(f'nv_inference_pending_request_count{{model="{model}"')
    )
    return int(float(line.rpartition(" ")[2]))


class Load:
    """Clients that send requests continuously and reconnect after a lost connection.

    `failures` holds the responses that no client should get.
    """

    def __init__(self, served: ServerProcess, clients: int = 8) -> None:
        self.answered = self.lost = 0
        self.failures: list[Any] = []
        self._served = served
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for_responses(self, count: int = 100) -> None:
        """Wait for `count` further responses."""
        goal = self.answered + count
        self._served.wait(lambda: self.answered >= goal, "requests are answered")

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._served.ports["http"], timeout=60)
        with contextlib.closing(connection):
            while not self._over.is_set():
                try:
                    status, response = request_path(connection, "/v2/models/identity/infer", ONE)
                except (OSError, http.client.HTTPException):
                    connection.close()
                    with self._lock:
                        self.lost += 1
                    continue
                with self._lock:
                    self.answered += 1
                    if status != 200:
                        self.failures.append(response)


def add_models(models: Models, progress_file: Path) -> None:
    """Add the models of these tests; `counting` writes its progress to `progress_file`."""
    models.identity("identity", "FP32", ["rows", "columns"])
    models.identity("wide", "FP32", ["rows", "columns"])
    models.toy("raising", more="dynamic_batching { }")
    models.toy("repeat", "INT32", "model_transaction_policy { decoupled: true }")
    models.repository.add("sums", SUMS_CONFIG, {1: {"model.py": SUMS}})
    models.repository.add(
        "counting",
        COUNTING_CONFIG,
        {1: {"model.py": COUNTING.replace("PROGRESS", repr(str(progress_file)))}},
    )
