"""Streams of server-sent events with slow and fast readers, from a Python model and an ensemble."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.conftest import TIMEOUT_S, Models, Serve, ServerProcess

PAD_BYTES = 4096
# The most responses in flight for a client that does not read: queued in the server, and
# in transport and sockets. Usually it is half of this, and more on a busy machine.
MAX_IN_FLIGHT = 4000
CONFIG = """
    backend: "python" model_transaction_policy { decoupled: true }
    input { name: "COUNT" data_type: TYPE_INT64 dims: 1 }
    output [ { name: "INDEX" data_type: TYPE_INT64 dims: 1 }, { name: "PAD" data_type: TYPE_STRING dims: 1 } ]
"""
MODEL = """
import json, threading
from pathlib import Path
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        self.folder = Path(json.loads(args["model_config"])["parameters"]["folder"]["string_value"])
        self.pad = pb_utils.Tensor("PAD", np.array([b"x" * 4096], np.object_))

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.pour, args=(request,)).start()

    def pour(self, request):
        sender, name = request.get_response_sender(), request.request_id()
        count, given = int(request.inputs()[0].as_numpy()[0]), 0
        with (self.folder / name).open("w") as progress:
            while given != count and not sender.is_cancelled():
                index = pb_utils.Tensor("INDEX", np.array([given], np.int64))
                sender.send(pb_utils.InferenceResponse([index, self.pad]))
                given += 1
                progress.seek(0)
                progress.write(str(given))
                progress.flush()
        sender.send(flags=FINAL)
        (self.folder / name).rename(self.folder / f"{name} ended")
"""
ECHO_CONFIG = """
    backend: "python"
    input { name: "IN" data_type: TYPE_INT64 dims: 1 } output { name: "OUT" data_type: TYPE_INT64 dims: 1 }
"""
ECHO = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", each.inputs()[0].as_numpy())]) for each in requests]
"""
ENSEMBLE_CONFIG = """
    platform: "ensemble" model_transaction_policy { decoupled: true }
    input { name: "COUNT" data_type: TYPE_INT64 dims: 1 }
    output [ { name: "INDEX" data_type: TYPE_INT64 dims: 1 }, { name: "PAD" data_type: TYPE_STRING dims: 1 } ]
    ensemble_scheduling {
      step {
        model_name: "streaming" model_version: -1 input_map { key: "COUNT" value: "COUNT" }
        output_map { key: "INDEX" value: "poured" } output_map { key: "PAD" value: "PAD" }
      }
      step {
        model_name: "echo" model_version: -1
        input_map { key: "IN" value: "poured" } output_map { key: "OUT" value: "INDEX" }
      }
    }
"""


@pytest.fixture
def progress(tmp_path: Path) -> Path:
    """A folder where the model writes the number of responses of each request, and "<id> ended"."""
    folder = tmp_path / "progress"
    folder.mkdir()
    return folder


@pytest.fixture
def streaming(serve: Serve, models: Models, progress: Path) -> Iterator[ServerProcess]:
    parameters = f'parameters {{ key: "folder" value: {{ string_value: "{progress}" }} }}'
    models.repository.add("streaming", CONFIG + parameters, {1: {"model.py": MODEL}})
    models.repository.add("echo", ECHO_CONFIG, {1: {"model.py": ECHO}})
    models.repository.add("forwarded", ENSEMBLE_CONFIG, {1: {}})
    with serve(f"--model-repository={models.path}", "--exit-timeout-secs=2") as served:
        yield served


@pytest.fixture(params=["streaming", "forwarded"])
def model(request: pytest.FixtureRequest) -> str:
    """The model itself, and the ensemble that passes each response through another model."""
    return str(request.param)


def open_stream(served: ServerProcess, model: str, count: int, name: str) -> socket.socket:
    """Start a stream without reading from it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(TIMEOUT_S)
    connection.connect(("127.0.0.1", served.ports["http"]))
    body = json.dumps({"COUNT": count, "id": name}).encode()
    head = f"POST /v2/models/{model}/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_a_reading_client_gets_everything_while_others_do_not_read(
    streaming: ServerProcess, model: str, progress: Path
) -> None:
    with ExitStack() as stack:
        for number in range(3):
            stack.enter_context(open_stream(streaming, model, -1, f"slow {number}"))
        streaming.wait(
            lambda: len(list(progress.iterdir())) == 3, "the model began to answer all three"
        )

        fast = stack.enter_context(open_stream(streaming, model, 2 * MAX_IN_FLIGHT, "fast"))
        response = http.client.HTTPResponse(fast)
        response.begin()
        indices = [json.loads(line[6:])["INDEX"] for line in response if line != b"\n"]
        assert indices == list(range(2 * MAX_IN_FLIGHT))
        given = [int((progress / f"slow {number}").read_text() or 0) for number in range(3)]
        assert max(given) < MAX_IN_FLIGHT
    streaming.wait(
        lambda: len(list(progress.glob("* ended"))) == 4,
        "the model stopped when its clients had left",
    )


def test_a_slow_reader_gets_every_response(streaming: ServerProcess, model: str) -> None:
    with closing(open_stream(streaming, model, MAX_IN_FLIGHT, "slow")) as connection:
        streaming.wait(
            lambda: streaming.request("/v2/models/streaming/stats").status == 200,
            "the server keeps serving",
        )
        response = http.client.HTTPResponse(connection)
        response.begin()
        events = response.read().split(b"\n\n")[:-1]
    assert [json.loads(event[6:])["INDEX"] for event in events] == list(range(MAX_IN_FLIGHT))
    assert all(len(json.loads(event[6:])["PAD"]) == PAD_BYTES for event in events)


def test_shutdown_ends_streams_without_readers(
    streaming: ServerProcess, model: str, progress: Path
) -> None:
    with closing(open_stream(streaming, model, -1, "slow")):
        streaming.wait((progress / "slow").exists, "the model began to answer")
        streaming.process.terminate()
        streaming.wait_until_exit()
