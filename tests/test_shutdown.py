"""Shutdown: live requests finish, new ones are refused; a second signal forces it."""

from __future__ import annotations

import contextlib
import http.client
import json
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
    """A server with one request that executes until `gate` exists."""

    served: Any
    gate: Path
    responses: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.responses.append(self.served.request(INFER, ONE))


@pytest.fixture
def live(
    serve: Any, models: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[LiveRequest]:
    gate = tmp_path / "open"
    models.toy("gate", more=f'parameters {{ key: "gate" value {{ string_value: "{gate}" }} }}')
    with serve(
        f"--model-repository={models.path}", f"--exit-timeout-secs={getattr(request, 'param', 30)}"
    ) as served:
        busy = LiveRequest(served, gate)
        try:
            served.wait(gate.with_suffix(".entered").exists, "the request is being executed")
            yield busy
        finally:
            served.end()
            busy.thread.join()


def answered_503(served: Any) -> bool:
    """Return whether a new connection gets "Server is stopping".

    Raises ConnectionError if the connection is not served.
    """
    return bool(served.request("/v2/health/live").status == 503)


def refused_over_http(connection: http.client.HTTPConnection) -> tuple[int, str]:
    connection.request("POST", INFER, ONE)
    response = connection.getresponse()
    return response.status, response.read().decode()


def gate_inputs() -> list[Any]:
    given = tritonclient.grpc.InferInput("IN", [1, 1], "FP32")
    given.set_data_from_numpy(np.array([[3]], np.float32))
    return [given]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_live_requests_finish_and_refuses_new_connections(
    live: LiveRequest, number: signal.Signals
) -> None:
    live.served.process.send_signal(number)
    live.served.wait(lambda: answered_503(live.served), "new connections get 'Server is stopping'")
    assert "Server is stopping" in live.served.request(INFER, ONE).json()["error"]
    assert live.served.request("/v2/health/ready").status == 503
    assert live.responses == []
    live.gate.touch()
    assert live.served.wait_until_exit() == 0
    live.thread.join()
    assert [
        (response.status, response.json()["outputs"][0]["data"]) for response in live.responses
    ] == [(200, [3.0])]
    assert "Traceback" not in live.served.log


def kept_connection(served: Any) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)
    connection.request("GET", "/v2/health/live")
    connection.getresponse().read()
    return connection


def test_a_keep_alive_connection_is_served_until_it_closes(serve: Any, models: Any) -> None:
    models.example("add_sub")
    names = ("INPUT0", "INPUT1")
    inputs = [
        {"name": name, "datatype": "INT32", "shape": [1, 16], "data": list(range(16))}
        for name in names
    ]
    body = json.dumps({"inputs": inputs})
    with (
        serve(f"--model-repository={models.path}") as served,
        contextlib.closing(kept_connection(served)) as connection,
    ):
        served.process.send_signal(signal.SIGINT)
        served.wait(lambda: answered_503(served), "new connections get 'Server is stopping'")
        for _ in range(3):
            connection.request("POST", "/v2/models/add_sub/infer", body)
            response = connection.getresponse()
            assert response.status == 200
            response.read()
        served.wait_until_logged(r"Timeout 30: Found \d HTTP service connections")
        assert "Waiting for in-flight" not in served.log
        connection.close()
        assert served.wait_until_exit() == 0
        assert "Waiting for in-flight requests to complete." in served.log
        assert "Found 0 model versions that have in-flight inferences" in served.log
        assert served.log.count("Timeout 30: ") == 1


def test_an_idle_connection_closes_after_its_last_request(
    serve: Any, models: Any, tmp_path: Path
) -> None:
    models.example("add_sub")
    config = tmp_path / "server.yaml"
    config.write_text("frontends:\n  http: {drain_idle_s: 0.5}\n  grpc: {}\n  metrics: {}\n")
    with (
        serve(f"--config={config}", f"--model-repository={models.path}") as served,
        contextlib.closing(kept_connection(served)),
    ):
        served.process.send_signal(signal.SIGTERM)
        assert served.wait_until_exit() == 0


# One fifth of the exit timeout remains for the rest, which must suffice on a busy machine.
@pytest.mark.parametrize("live", [15], indirect=True)
def test_keep_alive_and_grpc_connections_are_refused_after_the_drain_period(
    live: LiveRequest,
) -> None:
    served = live.served
    with (
        contextlib.closing(kept_connection(served)) as connection,
        tritonclient.grpc.InferenceServerClient(served.grpc) as client,
    ):
        assert client.is_server_ready()
        served.process.send_signal(signal.SIGTERM)
        served.wait_until_logged("Waiting for in-flight requests")
        assert served.log.count("Model 'gate' (version 1) has 1 in-flight inferences") == 1
        status, text = refused_over_http(connection)
        assert (status, "stopping" in text) == (503, True)
        with pytest.raises(InferenceServerException) as raised:
            client.infer("gate", gate_inputs())
        assert raised.value.status() == "StatusCode.UNAVAILABLE"
        assert "shutting down" in raised.value.message()
        live.gate.touch()
        assert served.wait_until_exit() == 0


def test_new_grpc_connections_are_answered_while_the_server_drains(live: LiveRequest) -> None:
    live.served.process.send_signal(signal.SIGTERM)
    live.served.wait(lambda: answered_503(live.served), "new connections get 'Server is stopping'")
    with tritonclient.grpc.InferenceServerClient(live.served.grpc) as client:
        assert client.is_server_live()
    live.gate.touch()
    assert live.served.wait_until_exit() == 0


@pytest.mark.parametrize("live", [1], indirect=True)
def test_an_endless_request_does_not_delay_shutdown_beyond_the_timeout(live: LiveRequest) -> None:
    live.served.process.send_signal(signal.SIGINT)
    assert live.served.wait_until_exit() == 1
    assert "Exit timeout expired. Exiting immediately." in live.served.log


def test_a_second_signal_ends_the_server_at_once(live: LiveRequest) -> None:
    live.served.process.send_signal(signal.SIGINT)
    live.served.wait_until_logged(r"Signal \(2\) received")
    live.served.process.send_signal(signal.SIGINT)
    assert live.served.wait_until_exit() == 1
    assert "second signal" in live.served.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_ends_well_and_frees_its_ports(
    serve: Any, models: Any, number: signal.Signals
) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}") as served:
        served.process.send_signal(number)
        assert served.wait_until_exit() == 0
        assert "successfully unloaded 'add_sub' version 1" in served.log
        with pytest.raises(ConnectionRefusedError):
            served.request("/v2/health/live")


def test_open_streams_and_idle_connections_do_not_delay_shutdown(serve: Any, models: Any) -> None:
    models.example("add_sub")
    with serve(f"--model-repository={models.path}") as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.ports["http"], timeout=60)
        with (
            contextlib.closing(connection),
            tritonclient.grpc.InferenceServerClient(served.grpc) as client,
        ):
            connection.connect()
            client.start_stream(lambda result, error: None)
            assert client.is_server_live()
            served.process.send_signal(signal.SIGTERM)
            assert served.wait_until_exit() == 0
