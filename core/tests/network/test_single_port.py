from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.errors import StartupError
from tritonpy.network.single_port import SinglePort


class CountingSocket(socket.socket):
    """Counts its peeks."""

    peeks = 0

    def recv(self, *arguments: Any) -> bytes:
        self.peeks += 1
        return super().recv(*arguments)


class RecordingFrontend(Frontend):
    """Records the connections that it accepts."""

    protocols = ("http/1.1",)

    def __init__(self, single_port: SinglePort) -> None:
        super().__init__(None, FrontendContext("127.0.0.1", logging.getLogger("test"), single_port=single_port))
        self.accepted: list[socket.socket] = []

    async def start(self, engine: Any) -> None:
        """Do nothing."""

    def accept(self, accepted: socket.socket) -> None:
        self.accepted.append(accepted)

    def http_connection(self) -> asyncio.Protocol:
        return asyncio.Protocol()


class Http2Frontend(RecordingFrontend):
    protocols = ("h2",)


class EncryptedFrontend(Http2Frontend):
    def is_encrypted(self) -> bool:
        return True


@contextlib.contextmanager
def connected() -> Iterator[tuple[socket.socket, CountingSocket]]:
    """The client's and the server's end of a TCP connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        accepted, _ = listening.accept()
        with CountingSocket(fileno=accepted.detach()) as server:
            server.setblocking(False)
            yield client, server


async def pass_on(port: SinglePort, accepted: socket.socket) -> None:
    await asyncio.wait_for(port._pass_on(accepted), 10)


@pytest.fixture
def port() -> Iterator[SinglePort]:
    made = SinglePort("127.0.0.1", 0)
    made.bind()
    yield made
    asyncio.run(made.close())


@pytest.mark.parametrize("first", [b"PRI * HT", b"\x16\x03", b""])
def test_a_client_that_stops_sending_in_its_first_bytes_is_dropped_at_once(port: SinglePort, first: bytes) -> None:
    with connected() as (client, server):
        client.sendall(first)
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            asyncio.run(pass_on(port, server))
        assert server.peeks <= 4


def test_waiting_for_more_bytes_does_not_poll(port: SinglePort) -> None:
    async def scenario() -> None:
        with connected() as (client, server):
            port.serve({"http": (http := RecordingFrontend(port))})
            routed = asyncio.create_task(pass_on(port, server))
            for byte in b"POST":
                client.sendall(bytes([byte]))
            await routed
            assert http.accepted == [server]
            assert server.peeks <= 5

    asyncio.run(scenario())


def test_no_frontend_for_the_port_is_a_startup_error(port: SinglePort) -> None:
    with pytest.raises(StartupError, match="no frontend serves the port"):
        port.serve({})


def test_two_frontends_of_one_protocol_are_a_startup_error(port: SinglePort) -> None:
    frontends = {"one": RecordingFrontend(port), "two": RecordingFrontend(port)}
    with pytest.raises(StartupError, match=r"both frontends\.one and frontends\.two use the protocol http/1\.1"):
        port.serve(frontends)


def test_encryption_of_some_frontends_is_a_startup_error_that_names_them(port: SinglePort) -> None:
    other = RecordingFrontend(SinglePort("127.0.0.1", 0))
    frontends = {"http": RecordingFrontend(port), "grpc": EncryptedFrontend(port), "metrics": other}
    with pytest.raises(
        StartupError, match=r"certificate in the section 'tls' .*: frontends.grpc has one, frontends.http has none$"
    ):
        port.serve(frontends)
