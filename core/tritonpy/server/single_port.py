"""One TCP port for several frontends: each connection goes to the frontend of its protocol."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonpy_network.acceptor import Acceptor
from tritonpy_types.errors import StartupError

if TYPE_CHECKING:
    from tritonpy.api.frontend import Frontend

_BACKLOG = 2048
_FIRST_BYTES_S = 30.0  # timeout for the first bytes of a client

log = logging.getLogger("tritonpy.server")


HTTP1 = "http/1.1"
HTTP2 = "h2"
MAX_FIRST_BYTES = 5 + 2**14  # one TLS record
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HANDSHAKE_RECORD = 0x16
_CLIENT_HELLO = 1
_ALPN = 16
_RECORD_HEADER = 5
_BEFORE_SESSION_ID = 38  # type, length, version and random of a ClientHello


def protocol_of(first: bytes) -> str | None:
    """Return `h2` or `http/1.1` for a connection that begins with `first`, or None.

    `first` has at least one byte. None means that more bytes are needed.
    """
    if first[0] == _HANDSHAKE_RECORD:
        return _protocol_of_tls(first)
    if first.startswith(_PREFACE):
        return HTTP2
    return None if _PREFACE.startswith(first) else HTTP1


def _protocol_of_tls(first: bytes) -> str | None:
    if len(first) < _RECORD_HEADER:
        return None
    length = int.from_bytes(first[3:5], "big")
    if length > MAX_FIRST_BYTES - _RECORD_HEADER:
        return HTTP1  # not a TLS record: the frontend's handshake fails
    if len(first) < _RECORD_HEADER + length:
        return None
    return (
        HTTP2
        if HTTP2 in offered_protocols(first[_RECORD_HEADER : _RECORD_HEADER + length])
        else HTTP1
    )


def offered_protocols(hello: bytes) -> list[str]:
    """Return the ALPN names in a ClientHello, empty if it has none or is malformed."""
    try:
        return _alpn_of(hello) if hello[0] == _CLIENT_HELLO else []
    except (IndexError, UnicodeDecodeError):
        return []


def _alpn_of(hello: bytes) -> list[str]:
    at = _BEFORE_SESSION_ID
    at += 1 + hello[at]  # session id
    at += 2 + _number(hello, at)  # cipher suites
    at += 1 + hello[at]  # compression methods
    end = at + 2 + _number(hello, at)
    at += 2
    while at + 4 <= min(end, len(hello)):
        kind, length = _number(hello, at), _number(hello, at + 2)
        at += 4
        if kind == _ALPN:
            return _names(hello[at + 2 : at + length])
        at += length
    return []


def _names(listed: bytes) -> list[str]:
    names, at = [], 0
    while at < len(listed):
        length = listed[at]
        names.append(listed[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    return names


def _number(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


class SinglePort:
    """Listens on `host` and `port` and passes each accepted socket to the frontend of its protocol.

    The first bytes show the protocol and are not consumed: HTTP/2 begins with its preface, TLS with
    the client's ALPN names. The frontend gets the connection as if it had accepted it, and applies
    its own TLS, limits and access rules. Call `bind`, `serve` and `close` in this order, on one
    event loop.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._acceptor: Acceptor | None = None
        self._frontends: dict[str, Frontend] = {}

    def bind(self) -> None:
        """Bind the port. Raises StartupError if it is in use or the address is not available."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            self._socket = socket.create_server(
                (self._host, self._port), family=family, backlog=_BACKLOG
            )
        except OSError as error:
            raise StartupError(
                f"single_port: cannot listen on {self._host}:{self._port}: "
                f"{error.strerror or error}"
            ) from error
        self._socket.setblocking(False)

    @property
    def address(self) -> str:
        """The address `host:port` for clients, empty before `bind`."""
        if self._socket is None:
            return ""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def serve(self, frontends: Mapping[str, Frontend]) -> None:
        """Accept connections for the started frontends in `frontends` that use this port.

        Raises StartupError if there is none, if two have the same protocol, or if only some of them
        use TLS.
        """
        assert self._socket is not None  # noqa: S101
        served = {
            name: frontend
            for name, frontend in frontends.items()
            if frontend.context.single_port is self
        }
        self._frontends = _by_protocol(served)
        _check_encryption(served)
        http, http2 = self._frontends.get("http/1.1"), self._frontends.get("h2")
        if http is not None and http2 is not None:
            http2.serve_http(http.http_connection)
        self._acceptor = Acceptor(
            "single port", None, (), log, handshake_s=_FIRST_BYTES_S, connect=self._pass_on
        )
        self._acceptor.listen([self._socket])

    async def close(self) -> None:
        """Stop listening, and close connections whose protocol is unknown."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.closed()
        elif self._socket is not None:
            self._socket.close()

    async def _pass_on(self, accepted: socket.socket) -> None:
        protocol = await _protocol_of(accepted)
        frontend = (
            self._frontends.get(protocol)
            or self._frontends.get("http/1.1")
            or self._frontends["h2"]
        )
        frontend.accept(accepted)


def _by_protocol(frontends: Mapping[str, Frontend]) -> dict[str, Frontend]:
    """Return the frontends by the ALPN names of their protocols. Raises StartupError."""
    names: dict[str, str] = {}
    for name, frontend in frontends.items():
        for protocol in frontend.protocols:
            if protocol in names:
                raise StartupError(
                    f"single_port: both frontends.{names[protocol]} and frontends.{name} use the "
                    f"protocol {protocol}"
                )
            names[protocol] = name
    if not names:
        raise StartupError(
            "single_port: no frontend serves the port; enable frontends.http or frontends.grpc"
        )
    return {protocol: frontends[name] for protocol, name in names.items()}


def _check_encryption(frontends: Mapping[str, Frontend]) -> None:
    """Raise StartupError unless all frontends have a certificate or none has."""
    encrypted = [
        f"frontends.{name}" for name, frontend in frontends.items() if frontend.is_encrypted()
    ]
    plain = [
        f"frontends.{name}" for name, frontend in frontends.items() if not frontend.is_encrypted()
    ]
    if encrypted and plain:
        raise StartupError(
            "single_port: configure a certificate in the section 'tls' of all frontends or of "
            "none: "
            f"{', '.join(encrypted)} has one, {', '.join(plain)} has none"
        )


async def _protocol_of(accepted: socket.socket) -> str:
    """Return the ALPN name of the client's protocol.

    Raises OSError if the client disconnects or sends nothing in time.
    """
    peeked = 0
    async with asyncio.timeout(_FIRST_BYTES_S):
        while True:
            try:
                first = accepted.recv(MAX_FIRST_BYTES, socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                await _readable(accepted)
                continue
            # At the end of the input the socket stays readable, and no more bytes come.
            if len(first) <= peeked or not first:
                raise ConnectionResetError(
                    "the client closed the connection before its first request"
                )
            protocol = protocol_of(first)
            if protocol is not None:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                return protocol
            # A peeked socket stays readable, so wait for one more byte than it has.
            peeked = len(first)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, peeked + 1)
            await _readable(accepted)


async def _readable(accepted: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(accepted, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(accepted)
