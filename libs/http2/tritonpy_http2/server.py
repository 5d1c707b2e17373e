"""The server: connections on the event loop, their limits, and their end.

A connection reads into buffers, writes once per iteration and checks timeouts.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import math
import sys
import termios
from collections.abc import Callable

from tritonpy_http2.abuse_limits import PingRules
from tritonpy_http2.calls import ClientReservation, Http2Calls, MemoryAccount, UnlimitedReservation
from tritonpy_http2.codes import NO_ERROR
from tritonpy_http2.connection import ServerConnection
from tritonpy_http2.limits import Http2Limits
from tritonpy_http2.timeouts import ConnectionTimeouts, TimeoutSettings

_READ_SIZE = 256 * 1024
# Received data up to this size is copied from the shared buffer: bytes are faster than views.
_SMALL = 64 * 1024
_UNSENT = 1024 * 1024  # unsent bytes in the transport above which reading pauses
_CLOSE_CHECK_S = 1.0  # interval of checks for unread data before a connection is closed
_NO_PROGRESS_S = 20.0  # time without progress before the connection is aborted


class Http2Server:
    """Serves `calls` on the running event loop.

    `make_protocol` makes the protocol of each connection; pass it to `loop.create_server` or
    `loop.connect_accepted_socket`. A TLS context must offer `h2` with ALPN. At most
    `max_connections` are open, 0 for no limit. `make_account` returns the memory budget of a new
    client, None if its memory is not counted.
    """

    def __init__(
        self,
        calls: Http2Calls,
        *,
        limits: Http2Limits | None = None,
        ping_rules: PingRules | None = None,
        timeouts: TimeoutSettings | None = None,
        max_connections: int = 0,
        make_account: Callable[[], MemoryAccount | None] = lambda: None,
    ) -> None:
        self.calls = calls
        self.limits = limits or Http2Limits()
        self.ping_rules = ping_rules or PingRules()
        self.timeouts = timeouts or TimeoutSettings()
        self.make_account = make_account
        self.buffer = memoryview(bytearray(_READ_SIZE))  # read buffer shared by all connections
        self.connections: set[Http2Protocol] = set()
        self._max_connections = max_connections
        self._is_empty = asyncio.Event()

    def make_protocol(self) -> Http2Protocol:
        """Return the protocol of a new connection."""
        return Http2Protocol(self, asyncio.get_running_loop())

    def unread_bytes(self) -> int:
        """Return the number of response bytes that clients have not read."""
        return sum([connection.unread_bytes() for connection in self.connections])

    async def stop(self, grace_s: float) -> None:
        """Wait up to `grace_s` for open calls, and close all connections.

        Stop accepting connections first.
        """
        for connection in list(self.connections):
            connection.finish("")
        await self._wait_until_empty(grace_s)
        for connection in list(self.connections):
            connection.abort()
        await self._wait_until_empty(None)

    def admit(self, connection: Http2Protocol) -> bool:
        """Add a connection; return whether the limit allows it."""
        self.connections.add(connection)
        return not 0 < self._max_connections < len(self.connections)

    def remove(self, connection: Http2Protocol) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._is_empty.set()

    async def _wait_until_empty(self, seconds: float | None) -> None:
        if self.connections:
            self._is_empty.clear()
            try:
                await asyncio.wait_for(self._is_empty.wait(), seconds)
            except TimeoutError:
                return


class Http2Protocol(asyncio.BufferedProtocol):
    """Connects a socket and a `ServerConnection`."""

    __deletable__ = ("_connection", "_timeouts", "_transport")  # read by mypyc

    last_received = 0.0
    _unsent = 0
    _into_body_buffer = False
    _ending = False
    _timer: asyncio.TimerHandle | None = None
    _transport: asyncio.Transport
    _connection: ServerConnection
    _timeouts: ConnectionTimeouts
    _unsent_memory: ClientReservation

    def __init__(self, server: Http2Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = server.buffer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a transport that reads and writes
        """Start, unless there are too many connections or TLS negotiated another protocol."""
        server = self._server
        self._transport = transport
        account = server.make_account()
        self._unsent_memory = UnlimitedReservation() if account is None else account.reservation()
        self._connection = ServerConnection(
            server.calls,
            server.limits,
            server.ping_rules,
            self._loop.time,
            self._schedule_flush,
            account,
            transport.get_extra_info,
        )
        self.last_received = now = self._loop.time()
        self._timeouts = ConnectionTimeouts(self, server.timeouts, now)
        encryption = transport.get_extra_info("ssl_object")
        if not server.admit(self) or (encryption and encryption.selected_alpn_protocol() != "h2"):
            self.abort()
            return
        transport.set_write_buffer_limits(high=_UNSENT)
        self._check_timeouts()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer of a large message, or the buffer shared by all connections."""
        body_buffer = self._connection.read_buffer()
        self._into_body_buffer = body_buffer is not None
        return self._buffer if body_buffer is None else body_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the received data and write the responses."""
        connection = self._connection
        self.last_received = self._loop.time()
        connection.sender.awake = True
        if self._into_body_buffer:
            connection.read_buffer_updated(nbytes)
        else:
            data = self._buffer[:nbytes]
            connection.receive(bytes(data) if nbytes <= _SMALL else data)
        self._flush()

    def eof_received(self) -> bool:
        """Let the transport close: gRPC clients do not half-close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Reset the calls and release all references to this connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._ending = True
        self._connection.close()
        self._server.remove(self)
        del self._connection, self._timeouts, self._transport

    def pause_writing(self) -> None:
        """Pause until the client reads; close the connection if the request memory is full."""
        if not self._unsent_memory.grow(self._transport.get_write_buffer_size()):
            self.abort()
        self._pause()

    def _pause(self) -> None:
        """Stop preparing responses and reading calls until the client has read its data."""
        self._connection.sender.open = False
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume after a pause."""
        self._unsent_memory.shrink()
        self.last_received = self._loop.time()
        self._connection.sender.open = True
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self._connection.sender.fill_output()

    def idle_since(self) -> float | None:
        """Return the time of the last data if the connection has no calls, else None."""
        return None if self._ending or self._connection.streams else self.last_received

    def evict(self) -> None:
        """Send GOAWAY and close the connection."""
        self._connection.refuse_new_calls("too many connections")
        self._flush()
        if self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.abort()  # with TLS, close() waits for the client

    # Interface for the timeouts

    def is_started(self) -> bool:
        return self._connection.control.has_settings

    def calls(self) -> int:
        return len(self._connection.streams)

    def activity(self) -> int:
        return self._connection.activity

    def ping(self, on_ack: Callable[[], None]) -> None:
        self._connection.control.ping(on_ack)

    def start_draining(self, text: str) -> None:
        self._connection.start_draining(text)

    def finish(self, text: str) -> None:
        self._connection.refuse_new_calls(text)
        self._schedule_flush()

    def fail(self, text: str) -> None:
        self._connection.fail(NO_ERROR, text)

    def unread_bytes(self) -> int:
        """Return the number of response bytes that the client has not read."""
        return _unread_bytes(self._transport) + self._connection.unsent()

    def abort(self) -> None:
        """Close immediately."""
        self._ending = True
        self._transport.abort()

    def _check_timeouts(self) -> None:
        now, unsent = self._loop.time(), _unread_bytes(self._transport)
        if unsent < self._unsent:  # a slow client is alive although reading from it is paused
            self.last_received = now
        self._unsent = unsent
        next_check = self._timeouts.check(now)
        if next_check < math.inf and not self._ending:
            self._timer = self._loop.call_later(max(next_check - now, 0.001), self._check_timeouts)

    def _schedule_flush(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._ending:
            return
        sender, transport = self._connection.sender, self._transport
        while pieces := sender.take():
            for piece in pieces:
                transport.write(piece)
            if not sender.waiting:
                break
            sender.fill_output()
        if self._connection.finished:
            self._end()

    def _end(self) -> None:
        """Close when the client has read all data, or after a timeout."""
        self._ending = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport.can_write_eof():
            with contextlib.suppress(
                OSError
            ):  # the client has disconnected, and the transport has not noticed yet
                self._transport.write_eof()
        elif not _unread_bytes(self._transport):
            self._transport.close()
            return
        self._schedule_client_check(math.inf, math.inf)

    def _schedule_client_check(self, rest: float, until: float) -> None:
        """Check again until the client has read all data or makes no progress.

        Most clients close earlier.
        """
        self._timer = self._loop.call_later(_CLOSE_CHECK_S, self._check_client, rest, until)

    def _check_client(self, before: float, until: float) -> None:
        now, rest = self._loop.time(), _unread_bytes(self._transport)
        if rest and (rest < before or now < until):
            self._schedule_client_check(rest, now + _NO_PROGRESS_S if rest < before else until)
        elif rest or self._transport.can_write_eof():
            self._transport.abort()
        else:
            self._transport.close()  # includes the TLS close_notify


def _unread_bytes(transport: asyncio.Transport) -> int:
    """Return how many written bytes the client's machine has not acknowledged.

    They are in the transport's buffer and in the kernel's, which may hold megabytes.
    """
    waiting, sock = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError, ValueError):  # the socket is closed
            waiting += int.from_bytes(
                fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder
            )
    return waiting
