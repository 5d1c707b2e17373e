"""File descriptor limits: a connection flood leaves descriptors for every port and for models."""

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
    """Hold many connections open that send incomplete requests."""
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            with contextlib.suppress(
                OSError
            ):  # the server may have closed it in favor of a later one
                connection.sendall(sent)
        yield


def responses(served: Any, frontend: str, path: str) -> bool:
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
def test_a_connection_flood_on_one_port_leaves_descriptors_for_other_ports_and_models(
    serve: Any, models: Any, frontend: str, sent: bytes
) -> None:
    models.example("add_sub")
    flags = (f"--model-repository={models.path}", "--model-control-mode=explicit")
    with serve(*flags, under=LIMIT) as served, flood(served.ports[frontend], sent):
        served.wait(lambda: responses(served, "http", "/v2/health/ready"), "HTTP answers")
        served.wait(lambda: responses(served, "metrics", "/metrics"), "metrics answer")
        with tritonclient.grpc.InferenceServerClient(served.grpc) as client:
            assert client.is_server_live()
            client.load_model("add_sub")
            assert client.is_model_ready("add_sub")
        assert "Traceback" not in served.log


@pytest.mark.parametrize("sent", [b"", PREFACE], ids=["silent", "preface"])
def test_grpcio_s_connections_leave_descriptors_for_others(
    serve: Any, models: Any, sent: bytes
) -> None:
    models.example("add_sub")
    flags = (
        f"--model-repository={models.path}",
        "--model-control-mode=explicit",
        "--transport=grpcio",
    )
    with serve(*flags, under=LIMIT) as served, flood(served.ports["grpc"], sent):
        assert responses(served, "metrics", "/metrics")
        assert served.request("/v2/repository/models/add_sub/load", "{}").status == 200
        assert served.request("/v2/models/add_sub/ready").status == 200
