"""One TCP port for several frontends: each connection goes to the frontend of its protocol."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tritonpy.errors import StartupError
from tritonpy.network.acceptor import Acceptor
from tritonpy.network.first_bytes import MAX_FIRST_BYTES, protocol_of

if TYPE_CHECKING:
    from tritonpy.api.frontend import Frontend

_BACKLOG = 2048
_FIRST_BYTES_S = 30.0  # timeout for the first bytes of a client

log = logging.getLogger("tritonpy.server")


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
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise StartupError(
                f"single_port: cannot listen on {self._host}:{self._port}: {error.strerror or error}"
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
        served = {name: frontend for name, frontend in frontends.items() if frontend.context.single_port is self}
        self._frontends = _by_protocol(served)
        _check_encryption(served)
        http, http2 = self._frontends.get("http/1.1"), self._frontends.get("h2")
        if http is not None and http2 is not None:
            http2.serve_http(http.http_connection)
        self._acceptor = Acceptor("single port", None, (), log, handshake_s=_FIRST_BYTES_S, connect=self._pass_on)
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
        frontend = self._frontends.get(protocol) or self._frontends.get("http/1.1") or self._frontends["h2"]
        frontend.accept(accepted)


def _by_protocol(frontends: Mapping[str, Frontend]) -> dict[str, Frontend]:
    """Return the frontends by the ALPN names of their protocols. Raises StartupError."""
    names: dict[str, str] = {}
    for name, frontend in frontends.items():
        for protocol in frontend.protocols:
            if protocol in names:
                raise StartupError(
                    f"single_port: both frontends.{names[protocol]} and frontends.{name} use the protocol {protocol}"
                )
            names[protocol] = name
    if not names:
        raise StartupError("single_port: no frontend serves the port; enable frontends.http or frontends.grpc")
    return {protocol: frontends[name] for protocol, name in names.items()}


def _check_encryption(frontends: Mapping[str, Frontend]) -> None:
    """Raise StartupError unless all frontends have a certificate or none has."""
    encrypted = [f"frontends.{name}" for name, frontend in frontends.items() if frontend.is_encrypted()]
    plain = [f"frontends.{name}" for name, frontend in frontends.items() if not frontend.is_encrypted()]
    if encrypted and plain:
        raise StartupError(
            "single_port: configure a certificate in the section 'tls' of all frontends or of none: "
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
                raise ConnectionResetError("the client closed the connection before its first request")
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
