"""HTTP/1.1 connections: requests in order, with limits for size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tritonpy_http1.limits import HttpLimits
from tritonpy_http1.refusal import (
    BODY_TOO_LONG,
    HEAD_TOO_LARGE,
    STOPPING,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_HEADERS,
    TOO_SLOW,
    Refusal,
    Refused,
    refusal_for,
)

# Bytes of pipelined requests that are read ahead. Reading on detects a client that disconnects.
MAX_AHEAD = 1 << 20
MAX_DROPPED = 64 * 1024 * 1024  # bytes of a body that are read and dropped after an early response
_STALLED_S = 1.0  # a body without progress for this long may be abandoned when descriptors run low


LINGER_S = 2.0
MAX_BYTES = 1024 * 1024


Headers = list[tuple[bytes, bytes]]
_TWO_HOSTS = Refusal(400, "The request has more than one Host header")
_OLD_CODING = Refusal(400, "Transfer-Encoding needs HTTP/1.1")
_UNKNOWN_CODING = Refusal(501, "Transfer-Encoding must be 'chunked'")
_UNKNOWN_VERSION = Refusal(505, "Only HTTP/1.1 and HTTP/1.0 are supported")


def framing_error(version: str, headers: Headers) -> Refusal | None:
    """Return the refusal for an invalid head, or None. Header names are in lower case.

    The parser has already refused invalid lengths, a length together with a transfer coding, and
    nonstandard line ends and names.
    """
    if version not in {"1.1", "1.0"}:
        return _UNKNOWN_VERSION
    hosts, codings = 0, []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings.append(value)
    if hosts > 1:
        return _TWO_HOSTS
    if codings and version == "1.0":
        return _OLD_CODING
    if codings and [coding.strip().lower() for coding in codings] != [b"chunked"]:
        return _UNKNOWN_CODING
    return None


def origin_form(url: bytes) -> bytes:
    """Return path and query of a request target.

    Clients of proxies send `http://host/path`, which means the same.
    """
    if not url[:8].lower().startswith((b"http://", b"https://")):
        return url
    _, _, rest = url.partition(b"://")
    authority = min(
        (at for mark in (b"/", b"?") if (at := rest.find(mark)) >= 0), default=len(rest)
    )
    path = rest[authority:]
    return path if path.startswith(b"/") else b"/" + path


def without_upgrade(
    method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """Return the head of a request without its upgrade headers, which a server may ignore."""
    lines = [method + b" " + url + b" HTTP/" + version.encode()]
    for name, value in headers:
        if name == b"connection":
            value = b",".join(  # noqa: PLW2901
                token for token in value.split(b",") if token.strip().lower() != b"upgrade"
            )
        if name != b"upgrade":
            lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])


class LingeringClose(asyncio.Protocol):
    """Replaces `protocol` on its transport, half-closes the connection, and discards further data.

    Closing a TCP connection with unread bytes resets it, and the client may lose the response with
    the error.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._protocol = protocol
        self._transport = transport
        self._read = 0
        self._timer = loop.call_later(LINGER_S, transport.abort)
        transport.set_protocol(self)
        try:
            transport.write_eof()
        except OSError:  # the client has disconnected
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Discard data, up to a limit."""
        self._read += len(data)
        if self._read > MAX_BYTES:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the replaced protocol."""
        self._timer.cancel()
        self._protocol.connection_lost(exc)


class HttpConnection(HttpToolsProtocol):
    """uvicorn's protocol with `limits`.

    One timer per connection checks them; requests add no timers.
    """

    limits = HttpLimits()
    refuses = False  # the connection was accepted while the server is stopping
    in_request = False  # the parser is within a request
    in_head = False
    idle_since_s = 0.0  # when the last response was written, by the loop's clock
    _progress_s = 0.0  # when the head began, or the last part of the body arrived
    _head_size = 0  # bytes of an incomplete head
    _trailers = 0
    _dropped = 0  # bytes of a body that arrived after its response
    _unsent = 0  # unread bytes at the last check
    _plain_head = b""  # the head without its upgrade headers
    _timer: asyncio.TimerHandle | None = None
    _served: Any = None  # the request that is being served while others wait
    _ahead = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the connection, unless there are too many connections."""
        super().connection_made(transport)
        self.idle_since_s = self.loop.time()
        self._schedule_check(self.limits.head_s)
        # A multiplexed connection is one request of a connection that was accepted earlier.
        is_new = not transport.get_extra_info("is_multiplexed")
        self.refuses = is_new and not getattr(self.server_state, "accepting", True)
        if 0 < self.limits.connections < len(self.connections):
            self._log_refusal(TOO_MANY_CONNECTIONS)
            transport.write(TOO_MANY_CONNECTIONS.wire())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer and notify the request that is being served.

        The timer would keep the connection's objects. uvicorn notifies the last request of the
        pipeline. All requests are dropped, since they refer to the connection and their bodies
        would stay until the garbage collector runs.
        """
        if self._timer is not None:
            self._timer.cancel()
        served = self._served
        if served is not None and served is not self.cycle and not served.response_complete:
            served.disconnected = True
            served.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)
        self._served = self.cycle = None  # type: ignore[assignment]  # no longer used

    def idle_since(self) -> float | None:
        """Return since when the connection has no complete request, or a body has stalled.

        Returns None while a response is owed or unread.
        """
        busy = self.cycle is not None and not self.cycle.response_complete
        if (
            self.transport.is_closing()
            or self.flow.read_paused
            or self.transport.get_write_buffer_size()
        ):
            return None
        if self.in_request and not self.in_head:
            alone = not self.pipeline
            return (
                self._progress_s
                if alone and self.loop.time() - self._progress_s > _STALLED_S
                else None
            )
        if busy:
            return None
        return self._progress_s if self.in_request else self.idle_since_s

    def is_used(self, idle_s: float) -> bool:
        """Return whether the client has a request in flight, or had one within `idle_s` seconds."""
        if self.refuses or self.transport.is_closing():
            return False
        if self.in_request or (self.cycle is not None and not self.cycle.response_complete):
            return True
        return self.cycle is not None and self.loop.time() - self.idle_since_s < idle_s

    def evict(self) -> None:
        """Abort the connection to free its descriptor."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        self.feed(data)
        if self.pipeline:
            self.read_ahead(len(data))

    def feed(self, data: bytes) -> None:
        """Parse received data. The parser calls the methods `on_…`."""
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self.refuse(refusal_for(error, data))
            return
        if self.in_head:
            self._head_size += len(data)
            if self._head_size > self.limits.head_size:
                self.refuse(HEAD_TOO_LARGE)

    def _parse(self, data: bytes | memoryview) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # The parser treats the following data, even the request's body, as another
                # protocol.
                data = memoryview(data)[upgrade.args[0] :]
                self.parser.feed_data(self._plain_head)
            else:
                return

    def on_message_begin(self) -> None:
        """Start a request. ASGI objects are created when its path is known."""
        self.in_request = self.in_head = True
        self._progress_s = self.loop.time()
        self._head_size = self._trailers = self._dropped = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header. Trailers are counted and dropped."""
        if not self.in_head:
            self._trailers += 1
            if self._trailers > self.limits.headers:
                raise Refused(TOO_MANY_HEADERS)
            return
        if len(self.headers) >= self.limits.headers:
            raise Refused(TOO_MANY_HEADERS)
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def check_head(self) -> bool:
        """Return whether to serve the request; False if its head is parsed again.

        A head is parsed again without its upgrade headers. Raises Refused if the request cannot be
        served.
        """
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if (
            len(self.url) + sum([len(name) + len(value) for name, value in self.headers])
            > self.limits.head_size
        ):
            raise Refused(HEAD_TOO_LARGE)
        fault = framing_error(version, self.headers)
        if fault is not None:
            raise Refused(fault)
        if method == b"CONNECT":
            raise Refused(Refusal(404, "Not Found"))
        if self.parser.should_upgrade():
            self._plain_head = without_upgrade(method, self.url, version, self.headers)
            return False
        self.url = origin_form(self.url)
        if self.refuses:
            raise Refused(STOPPING)
        if version == "1.0":
            self.expect_100_continue = False
        self.in_head = False
        self.moved()
        return True

    def moved(self) -> None:
        """Record progress of the request."""
        self._progress_s = self.loop.time()

    def on_headers_complete(self) -> None:
        """Start the request after its head is checked."""
        if self.check_head():
            self.begin_asgi()

    def begin_asgi(self) -> None:
        """Start the ASGI application for the request."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        before = self.cycle
        super().on_headers_complete()
        # uvicorn pauses reading and would not notice a disconnect
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.wait_in_pipeline(before, self.pipeline.popleft()[0])
            self.flow.resume_reading()
        if self.parser.get_http_version() == "1.0":
            _disable_chunks(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body, or drop it after the response."""
        self.moved()
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > MAX_DROPPED:
                raise Refused(BODY_TOO_LONG)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record the end of the request."""
        if self.in_head:
            return  # the head is parsed again
        self.in_request = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or record that the connection is idle.

        uvicorn's own method creates a timer per response.
        """
        if self.transport.is_closing():
            return
        if (
            self.in_request
            and not self.in_head
            and self.cycle.response_complete
            and self._is_too_long_to_drop()
        ):
            self.close_lingering()
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        self.idle_since_s = self.loop.time()
        if self.pipeline:
            self.moved()
            self._start_asgi_task(*self._next_in_pipeline())

    def _is_too_long_to_drop(self) -> bool:
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length) > MAX_DROPPED

    def wait_in_pipeline(self, before: Any, cycle: Any) -> None:
        """Queue the request `cycle`; `before` is the request before it."""
        if not self.pipeline:
            self._served = before
        self.pipeline.appendleft((cycle, self.app))

    def read_ahead(self, size: int) -> None:
        """Count bytes that were read ahead, and pause reading at the limit."""
        self._ahead += size
        if self._ahead > MAX_AHEAD:
            self.flow.pause_reading()

    def _next_in_pipeline(self) -> tuple[Any, Any]:
        cycle: Any
        cycle, app = self.pipeline.pop()
        self._served = None if type(cycle) is Refusal else cycle
        if not self.pipeline:
            self._ahead = 0
        return cycle, app

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if type(cycle) is Refusal:
            self.end_with(cycle)
        else:
            super()._start_asgi_task(cycle, app)

    def refuse(self, refusal: Refusal) -> None:
        """Respond to the request in order, and close the connection."""
        self._log_refusal(refusal)
        has_cycle = self.in_request and not self.in_head
        if has_cycle and self.cycle.response_complete:  # the response preceded the body
            self.close_lingering()
            return
        self.in_request = self.in_head = False
        if has_cycle and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()  # it waits behind others and stays incomplete
        elif has_cycle or self.cycle is None or self.cycle.response_complete:
            self.end_with(refusal)
            return
        self.flow.pause_reading()
        self.pipeline.appendleft((refusal, self.app))  # type: ignore[arg-type]  # checked in `_start_asgi_task`

    def end_with(self, refusal: Refusal) -> None:
        """Send the refusal, and close the connection after the client had time to read it."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            if getattr(cycle, "response_started", False):
                self.transport.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(refusal.wire())
        self.close_lingering()

    def close_lingering(self) -> None:
        """Close the connection with unread data after the client had time to read its response."""
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            LingeringClose(self, self.transport, self.loop)
        else:
            self.transport.close()

    def _log_refusal(self, refusal: Refusal) -> None:
        if refusal is STOPPING:
            return
        peer = f"{self.client[0]}:{self.client[1]}" if self.client else "a Unix socket"
        self.logger.warning("refused a request from %s: %s", peer, refusal.text)

    def _schedule_check(self, seconds: float) -> None:
        self._timer = self.loop.call_later(min(seconds, self.limits.period_s), self._check_timeouts)

    def _check_timeouts(self) -> None:
        if self.transport.is_closing():
            self._end_if_unread()
            return
        left = self._time_left()
        if left > 0:
            self._schedule_check(left)
        elif self.in_request:
            self.refuse(TOO_SLOW)
        else:
            self._end_if_unread()

    def _time_left(self) -> float:
        """Return the seconds until the client's timeout."""
        limits, now = self.limits, self.loop.time()
        if self.in_request and not self.flow.read_paused:
            return self._progress_s + (limits.head_s if self.in_head else limits.body_s) - now
        if self.in_request or not (self.cycle is None or self.cycle.response_complete):
            self._progress_s = now
            return limits.period_s  # the client waits for the server
        return self.idle_since_s + (limits.head_s if self.cycle is None else limits.idle_s) - now

    def _end_if_unread(self) -> None:
        """Close an idle connection.

        A client with unread responses gets more time while it reads.
        """
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self.transport.close()
        elif unsent != self._unsent:
            self._unsent = unsent
            self._timer = self.loop.call_later(self.limits.body_s, self._check_timeouts)
        else:
            self.transport.abort()


class _Endless(int):
    """A count of remaining body bytes with which uvicorn accepts a body of any length."""

    def __lt__(self, _other: object) -> bool:
        return False

    def __sub__(self, _other: object) -> _Endless:
        return self

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _disable_chunks(cycle: Any) -> None:
    """Let a uvicorn cycle send a body of unknown length without chunks, since HTTP/1.0 has none.

    The end of the connection marks the end of the body.
    """
    cycle.chunked_encoding, cycle.expected_content_length = False, _Endless()
