"""A connection on the event loop: reads into buffers, writes what a turn of the loop brought together, watches the time."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import Evictable, unread
from tritonpy_frontend_h2.http2.codes import NO_ERROR
from tritonpy_frontend_h2.http2.connection import Connection
from tritonpy_frontend_h2.watch import Watch

if TYPE_CHECKING:
    from tritonpy_frontend_h2.server import Http2Server

_SMALL = 64 * 1024  # what came is copied out of the common buffer: cutting bytes is quicker than cutting views
_UNSENT = 1024 * 1024  # bytes that wait for a slow client in the transport, before reading stops
_FAREWELL_S = 1.0  # how long a client may take to read why the connection ends
_SILENCE_S = 20.0  # how long it may read nothing while it still gets its answers


class Http2Protocol(asyncio.BufferedProtocol, Evictable):
    """Brings a socket and HTTP/2 together."""

    heard = 0.0
    _unsent = 0
    _into_room = False
    _ending = False
    _timer: asyncio.TimerHandle | None = None
    _transport: asyncio.Transport
    _connection: Connection
    _watch: Watch

    def __init__(self, server: Http2Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = server.buffer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is one that reads and writes
        """Begin, unless there are too many connections or the client wants another protocol."""
        server = self._server
        self._transport = transport
        account = server.memory.client()
        self._unsent_memory = account.reservation()
        self._connection = Connection(
            server.calls,
            server.limits,
            server.ping_rules,
            self._loop.time,
            self._flush_soon,
            account,
            transport.get_extra_info,
        )
        self.heard = now = self._loop.time()
        self._watch = Watch(self, server.times, now)
        encryption = transport.get_extra_info("ssl_object")
        if not server.admit(self) or (encryption and encryption.selected_alpn_protocol() != "h2"):
            self.abort()
            return
        transport.set_write_buffer_limits(high=_UNSENT)
        self._look()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to: the message that a large body becomes, or the buffer of all connections."""
        room = self._connection.room_for_body()
        self._into_room = room is not None
        return self._buffer if room is None else room

    def buffer_updated(self, nbytes: int) -> None:
        """Handle what was read, and write what that brought."""
        connection = self._connection
        self.heard = self._loop.time()
        connection.sender.awake = True
        if self._into_room:
            connection.received_to_room(nbytes)
        else:
            data = self._buffer[:nbytes]
            connection.receive(bytes(data) if nbytes <= _SMALL else data)
        self._flush()

    def eof_received(self) -> bool:
        """Let the transport close: a client that says nothing more does not listen either, as gRPC's do not."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the calls, and let go of what refers to this connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._ending = True
        self._connection.close()
        self._server.dismiss(self)
        del self._connection, self._watch, self._transport

    def pause_writing(self) -> None:
        """Hold everything back until the client reads; close a connection for which there is no memory."""
        if not self._unsent_memory.grow(self._transport.get_write_buffer_size()):
            self.abort()
        self._hold_back()

    def _hold_back(self) -> None:
        """Neither make more of the answers ready nor read more calls, until the client has read what it has."""
        self._connection.sender.open = False
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._unsent_memory.shrink()
        self.heard = self._loop.time()
        self._connection.sender.open = True
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self._connection.sender.go_on()

    def idle_since(self) -> float | None:
        """Return when something came last, on a connection without calls."""
        return None if self._ending or self._connection.streams else self.heard

    def evict(self) -> None:
        """Tell the client to take another connection, and close this one."""
        self._connection.close_to_new_calls("too many connections")
        self._flush()
        if self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.abort()  # with TLS, closing waits for the client

    # What the watch asks for

    def begun(self) -> bool:
        return self._connection.control.greeted

    def calls(self) -> int:
        return len(self._connection.streams)

    def activity(self) -> int:
        return self._connection.activity

    def ping(self, answered: Callable[[], None]) -> None:
        self._connection.control.ping(answered)

    def retire(self, text: str) -> None:
        self._connection.retire(text)

    def finish(self, text: str) -> None:
        self._connection.close_to_new_calls(text)
        self._flush_soon()

    def fail(self, text: str) -> None:
        self._connection.fail(NO_ERROR, text)

    def left(self) -> int:
        """Return how many bytes of its answers the client has yet to take."""
        return unread(self._transport) + self._connection.unsent()

    def abort(self) -> None:
        """Close at once."""
        self._ending = True
        self._transport.abort()

    def _look(self) -> None:
        now, unsent = self._loop.time(), unread(self._transport)
        if unsent < self._unsent:  # a slow client lives, and nothing of it is read as long as it does not read
            self.heard = now
        self._unsent = unsent
        again = self._watch.look(now)
        if again < math.inf and not self._ending:
            self._timer = self._loop.call_later(max(again - now, 0.001), self._look)

    def _flush_soon(self) -> None:
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
            sender.go_on()
        if self._connection.finished:
            self._end()

    def _end(self) -> None:
        """Close once the client has what was written, or had time to."""
        self._ending = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport.can_write_eof():
            with contextlib.suppress(OSError):  # the client is gone, which the transport did not hear yet
                self._transport.write_eof()
        elif not unread(self._transport):
            self._transport.close()
            return
        self._wait_for_client(math.inf, math.inf)

    def _wait_for_client(self, rest: float, until: float) -> None:
        """Look again until the client has everything, or has read nothing for long; most close the connection before."""
        self._timer = self._loop.call_later(_FAREWELL_S, self._look_at_client, rest, until)

    def _look_at_client(self, before: float, until: float) -> None:
        now, rest = self._loop.time(), unread(self._transport)
        if rest and (rest < before or now < until):
            self._wait_for_client(rest, now + _SILENCE_S if rest < before else until)
        elif rest or self._transport.can_write_eof():
            self._transport.abort()
        else:
            self._transport.close()  # says farewell in TLS too
