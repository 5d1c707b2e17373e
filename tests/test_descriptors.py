"""Few file descriptors and many connections: every port goes on answering, and models can be loaded."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
import tritonclient.grpc

LIMIT = ("prlimit", "--nofile=200:200")
CONNECTIONS = 250
INFER = b"POST /v2/models/add_sub/infer HTTP/1.1\r\nhost: x\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@contextlib.contextmanager
def flood(port: int, sent: bytes) -> Iterator[None]:
    """Hold many connections open that send too little."""
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            with contextlib.suppress(OSError):  # it may have been closed for a later one
                connection.sendall(sent)
        yield


def answers(served: Any, frontend: str, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", served.ports[frontend], timeout=60)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


@pytest.mark.parametrize(
    ("frontend", "sent"),
    [
        ("metrics", b""),
        ("http", b""),
        ("grpc", b""),
        ("metrics", b"GET /metrics HTTP/1.1\r\nhos"),
        ("http", INFER[:-3]),
        ("http", INFER + b"content-length: 9\r\n\r\nabc"),
        ("grpc", PREFACE[:10]),
        ("grpc", PREFACE),
    ],
)
def test_connections_to_one_port_leave_descriptors_for_the_others_and_for_models(
    serve: Any, models: Any, frontend: str, sent: bytes
) -> None:
    models.example("add_sub")
    flags = (f"--model-repository={models.path}", "--model-control-mode=explicit")
    with serve(*flags, under=LIMIT) as served, flood(served.ports[frontend], sent):
        served.wait(lambda: answers(served, "http", "/v2/health/ready"), "HTTP answers")
        served.wait(lambda: answers(served, "metrics", "/metrics"), "metrics answer")
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            assert client.is_server_live()
            client.load_model("add_sub")
            assert client.is_model_ready("add_sub")
        assert "Traceback" not in served.log


@pytest.mark.parametrize("sent", [b"", PREFACE], ids=["silent", "preface"])
def test_grpcio_s_connections_leave_descriptors_for_others(serve: Any, models: Any, sent: bytes) -> None:
    models.example("add_sub")
    flags = (f"--model-repository={models.path}", "--model-control-mode=explicit", "--transport=grpcio")
    with serve(*flags, under=LIMIT) as served, flood(served.ports["grpc"], sent):
        assert answers(served, "metrics", "/metrics")
        assert served.ask("/v2/repository/models/add_sub/load", "{}").status == 200
        assert served.ask("/v2/models/add_sub/ready").status == 200


@pytest.mark.parametrize("sent", [b"", b"PR", b"\x16\x03\x01", PREFACE, INFER[:-3]])
def test_connections_to_a_single_port_leave_descriptors_for_others(serve: Any, models: Any, sent: bytes) -> None:
    models.example("add_sub")
    flags = (
        f"--model-repository={models.path}",
        "--model-control-mode=explicit",
        "--single-port=0",
        "--metrics-port=0",
    )
    with serve(*flags, ports=False, under=LIMIT) as served, flood(served.ports["http"], sent):
        served.wait(lambda: answers(served, "http", "/v2/health/ready"), "HTTP answers")
        served.wait(lambda: answers(served, "metrics", "/metrics"), "metrics answer")
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            client.load_model("add_sub")
            assert client.is_model_ready("add_sub")
        assert "Traceback" not in served.log
