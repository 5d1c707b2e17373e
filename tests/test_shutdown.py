"""How a server ends: live requests finish, new ones are refused, and a second signal or the time-out ends it at once."""

from __future__ import annotations

import contextlib
import http.client
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

ONE = '{"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [3]}]}'
INFER = "/v2/models/gate/infer"


@dataclass
class LiveRequest:
    """A server with one request that is being executed until `gate` exists."""

    served: Any
    gate: Path
    answers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.answers.append(self.served.ask(INFER, ONE))


@pytest.fixture
def live(serve: Any, models: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveRequest]:
    gate = tmp_path / "open"
    models.toy("gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}')
    with serve(f"--model-repository={models.path}", f"--exit-timeout-secs={getattr(request, 'param', 30)}") as served:
        busy = LiveRequest(served, gate)
        try:
            served.wait(gate.with_suffix(".entered").exists, "the request is being executed")
            yield busy
        finally:
            served.end()
            busy.thread.join()


def answered_503(served: Any) -> bool:
    """Say whether a new connection is told that the server stops. Raises ConnectionError where it is not served at all."""
    return bool(served.ask("/v2/health/live").status == 503)


def refused_over_http(connection: http.client.HTTPConnection) -> tuple[int, str]:
    connection.request("POST", INFER, ONE)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_live_request_finish_and_refuses_new_ones(live: LiveRequest, number: signal.Signals) -> None:
    served = live.served
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)
    given = tritonclient.grpc.InferInput("IN", [1, 1], "FP32")
    given.set_data_from_numpy(np.array([[3]], np.float32))
    with contextlib.closing(connection), tritonclient.grpc.InferenceServerClient(served.grpc) as client:
        assert client.is_server_ready()
        connection.request("GET", "/v2/health/live")
        connection.getresponse().read()
        served.process.send_signal(number)
        served.wait(lambda: answered_503(served), "new connections are told that the server stops")
        status, text = refused_over_http(connection)
        assert status == 503
        assert "stopping" in text
        with pytest.raises(InferenceServerException) as raised:
            client.infer("gate", [given])
        assert raised.value.status() == "StatusCode.UNAVAILABLE"
        assert "shutting down" in raised.value.message()
        assert live.answers == []
        live.gate.touch()
        assert served.until_ended() == 0
    live.thread.join()
    assert [(answer.status, answer.json()["outputs"][0]["data"]) for answer in live.answers] == [(200, [3.0])]
    assert "Traceback" not in served.log


@pytest.mark.parametrize("live", [1], indirect=True)
def test_a_request_that_never_ends_does_not_hold_the_server_beyond_its_time_out(live: LiveRequest) -> None:
    live.served.process.send_signal(signal.SIGINT)
    assert live.served.until_ended() == 1
    assert "Exit timeout expired. Exiting immediately." in live.served.log


def test_a_second_signal_ends_the_server_at_once(live: LiveRequest) -> None:
    live.served.process.send_signal(signal.SIGINT)
    live.served.until_logged(r"Signal \(2\) received")
    live.served.process.send_signal(signal.SIGINT)
    assert live.served.until_ended() == 1
    assert "second signal" in live.served.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_ends_well_and_frees_its_ports(serve: Any, models: Any, number: signal.Signals) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}") as served:
        served.process.send_signal(number)
        assert served.until_ended() == 0
        assert "successfully unloaded 'add_sub' version 1" in served.log
        with pytest.raises(ConnectionRefusedError):
            served.ask("/v2/health/live")


def test_open_streams_and_idle_connections_do_not_hold_the_server(serve: Any, models: Any) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}") as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)
        with contextlib.closing(connection), tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            connection.connect()
            client.start_stream(lambda result, error: None)
            assert client.is_server_live()
            served.process.send_signal(signal.SIGTERM)
            assert served.until_ended() == 0
