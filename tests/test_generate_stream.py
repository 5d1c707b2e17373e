"""Streams of server-sent events whose clients read at different speeds, from a Python model and from an ensemble that stands on it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.conftest import TIMEOUT_S, Models, Serve, Served

PAD_BYTES = 4096
# What a client that does not read leaves under way at most, in answers: those that wait in the server, and what the transport and
# sockets hold. It is half of this mostly; more where the threads of a busy machine hear late that nobody reads.
UNDER_WAY = 4000
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
        with (self.folder / name).open("w") as told:
            while given != count and not sender.is_cancelled():
                index = pb_utils.Tensor("INDEX", np.array([given], np.int64))
                sender.send(pb_utils.InferenceResponse([index, self.pad]))
                given += 1
                told.seek(0)
                told.write(str(given))
                told.flush()
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
        model_name: "pouring" model_version: -1 input_map { key: "COUNT" value: "COUNT" }
        output_map { key: "INDEX" value: "poured" } output_map { key: "PAD" value: "PAD" }
      }
      step {
        model_name: "echo" model_version: -1
        input_map { key: "IN" value: "poured" } output_map { key: "OUT" value: "INDEX" }
      }
    }
"""


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Where the model tells of each request how often it answered; "<id> ended" at last."""
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


@pytest.fixture
def pouring(serve: Serve, models: Models, told: Path) -> Iterator[Served]:
    parameters = f'parameters {{ key: "folder" value: {{ string_value: "{told}" }} }}'
    models.repository.add("pouring", CONFIG + parameters, {1: {"model.py": MODEL}})
    models.repository.add("echo", ECHO_CONFIG, {1: {"model.py": ECHO}})
    models.repository.add("poured_on", ENSEMBLE_CONFIG, {1: {}})
    with serve(f"--model-repository={models.path}", "--exit-timeout-secs=2") as served:
        yield served


@pytest.fixture(params=["pouring", "poured_on"])
def model(request: pytest.FixtureRequest) -> str:
    """The model itself, and the ensemble that hands each of its answers through another one."""
    return str(request.param)


def ask(served: Served, model: str, count: int, name: str) -> socket.socket:
    """Ask for a stream and read nothing of it yet."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(TIMEOUT_S)
    connection.connect(("127.0.0.1", served.ports["http"]))
    body = json.dumps({"COUNT": count, "id": name}).encode()
    head = f"POST /v2/models/{model}/generate_stream HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_who_reads_gets_everything_beside_those_who_do_not(pouring: Served, model: str, told: Path) -> None:
    with ExitStack() as stack:
        for number in range(3):
            stack.enter_context(ask(pouring, model, -1, f"slow {number}"))
        pouring.wait(lambda: len(list(told.iterdir())) == 3, "the model began to answer all three")

        fast = stack.enter_context(ask(pouring, model, 2 * UNDER_WAY, "fast"))
        answer = http.client.HTTPResponse(fast)
        answer.begin()
        indices = [json.loads(line[6:])["INDEX"] for line in answer if line != b"\n"]
        assert indices == list(range(2 * UNDER_WAY))
        given = [int((told / f"slow {number}").read_text() or 0) for number in range(3)]
        assert max(given) < UNDER_WAY
    pouring.wait(lambda: len(list(told.glob("* ended"))) == 4, "the model stopped when its clients had left")


def test_a_slow_reader_gets_every_answer(pouring: Served, model: str) -> None:
    with closing(ask(pouring, model, UNDER_WAY, "slow")) as connection:
        pouring.wait(lambda: pouring.ask("/v2/models/pouring/stats").status == 200, "the server goes on")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        events = answer.read().split(b"\n\n")[:-1]
    assert [json.loads(event[6:])["INDEX"] for event in events] == list(range(UNDER_WAY))
    assert all(len(json.loads(event[6:])["PAD"]) == PAD_BYTES for event in events)


def test_stopping_the_server_ends_streams_that_nobody_reads(pouring: Served, model: str, told: Path) -> None:
    with closing(ask(pouring, model, -1, "slow")):
        pouring.wait((told / "slow").exists, "the model began to answer")
        pouring.process.terminate()
        pouring.until_ended()
