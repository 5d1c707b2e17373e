"""Servers on Envoy as processes, and the models that they serve."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

PATIENCE_S = 60
LISTENS = re.compile(r"(http|grpc|metrics) listens on 127\.0\.0\.1:(\d+)")

WHERE = """
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        told = {"executable": sys.executable, "prefix": sys.prefix, "environment": dict(os.environ)}
        text = np.array([json.dumps(told).encode()], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", text)]) for _ in requests]
"""

WAITING = """
import pathlib
import time

import triton_python_backend_utils as pb_utils

here = pathlib.Path(__file__).parent


class TritonPythonModel:
    def execute(self, requests):
        (here / "entered").touch()
        while not (here / "open").exists() and not any(request.is_cancelled() for request in requests):
            time.sleep(0.01)
        if any(request.is_cancelled() for request in requests):
            (here / "cancelled").touch()
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy())])
            for request in requests
        ]
"""

COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([number], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

IDENTITY = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "IN").as_numpy())])
            for request in requests
        ]
"""


@dataclass(frozen=True)
class Reply:
    """What came back over HTTP."""

    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


@dataclass
class Served:
    """A `tritonpy serve --transport envoy` process."""

    process: subprocess.Popen
    output: Path
    ports: dict = field(default_factory=dict)

    @property
    def log(self):
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def envoy(self):
        """The Envoy process, None before there is one."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return next(iter(psutil.Process(self.process.pid).children()), None)
        return None

    def ask(self, path, body=None, headers=None, method=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.ports["http"]), PATIENCE_S)

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.02)
        return pytest.fail(f"{what}: not so (exit status {self.process.poll()}); it printed:\n{self.log[-6000:]}")

    def until_logged(self, pattern):
        self.until(lambda: re.search(pattern, self.log) or self.process.poll() is not None, f"logs '{pattern}'")
        assert re.search(pattern, self.log), self.log[-6000:]

    def until_ended(self):
        return self.process.wait(PATIENCE_S)


class Models:
    """Writes a repository of Python models."""

    def __init__(self, path):
        self.path = path
        path.mkdir()

    def add(self, name, code=IDENTITY, given="TYPE_FP32", answered="TYPE_FP32", dims="[-1]", more=""):
        folder = self.path / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(code)
        tensors = f'input {{ name: "IN" data_type: {given} dims: {dims} }} output {{ name: "OUT" data_type: {answered} dims: [-1] }}'
        (folder.parent / "config.pbtxt").write_text(f'backend: "python" {tensors} {more}')
        return folder


def end(served):
    """Let it end, and leave nothing of it."""
    everything = []
    with contextlib.suppress(psutil.NoSuchProcess):
        everything = psutil.Process(served.process.pid).children(recursive=True)
    served.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        served.process.wait(10)
    for process in everything:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(served.process.pid, signal.SIGKILL)
    served.process.wait()
