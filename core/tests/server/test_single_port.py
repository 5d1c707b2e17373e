from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.api.frontend import Frontend, FrontendContext
from tritonpy.server.single_port import MAX_FIRST_BYTES, SinglePort, offered_protocols, protocol_of
from tritonpy_types.errors import StartupError


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
        super().__init__(
            None, FrontendContext("127.0.0.1", logging.getLogger("test"), single_port=single_port)
        )
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
def test_a_client_that_stops_sending_in_its_first_bytes_is_dropped_at_once(
    port: SinglePort, first: bytes
) -> None:
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
    with pytest.raises(
        StartupError, match=r"both frontends\.one and frontends\.two use the protocol http/1\.1"
    ):
        port.serve(frontends)


def test_encryption_of_some_frontends_is_a_startup_error_that_names_them(port: SinglePort) -> None:
    other = RecordingFrontend(SinglePort("127.0.0.1", 0))
    frontends = {"http": RecordingFrontend(port), "grpc": EncryptedFrontend(port), "metrics": other}
    with pytest.raises(
        StartupError,
        match=r"certificate in the section 'tls' .*: frontends.grpc has one, frontends.http has none$",
    ):
        port.serve(frontends)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def client_hello(*protocols: str) -> bytes:
    """Return the first bytes of a real TLS client that offers `protocols`."""
    context = ssl.create_default_context()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("first", "protocol"),
    [
        (b"G", "http/1.1"),
        (b"POST ", "http/1.1"),
        (b"PR", None),
        (b"PROPFIND", "http/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM", None),
        (b"PRI * HTTP/1.1\r\n", "http/1.1"),
        (PREFACE, "h2"),
        (PREFACE + b"\0\0\0", "h2"),
        (b"\x16\x03", None),
        (b"\x16\x03\x01\xff\xff", "http/1.1"),
        (b"\x00", "http/1.1"),
    ],
)
def test_the_protocol_follows_from_the_first_bytes(first: bytes, protocol: str | None) -> None:
    assert protocol_of(first) == protocol


@pytest.mark.parametrize(
    ("offered", "protocol"),
    [((), "http/1.1"), (("http/1.1",), "http/1.1"), (("h2",), "h2"), (("http/1.1", "h2"), "h2")],
)
def test_a_tls_client_gets_http2_if_it_offers_it(offered: tuple[str, ...], protocol: str) -> None:
    hello = client_hello(*offered)
    assert offered_protocols(hello[5:]) == list(offered)
    assert protocol_of(hello) == protocol
    assert protocol_of(hello[:-1]) is None


@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_any_bytes_have_a_protocol_or_need_more(first: bytes, is_tls: bool) -> None:
    assert protocol_of((b"\x16" if is_tls else b"") + first) in ("h2", "http/1.1", None)


@given(st.data())
def test_a_damaged_hello_is_no_error(data: st.DataObject) -> None:
    hello = bytearray(client_hello("h2"))
    for _ in range(data.draw(st.integers(1, 5))):
        hello[data.draw(st.integers(5, len(hello) - 1))] = data.draw(st.integers(0, 255))
    assert protocol_of(bytes(hello)) in ("h2", "http/1.1")
    assert protocol_of(bytes(hello).ljust(MAX_FIRST_BYTES, b"\0")) in ("h2", "http/1.1")
