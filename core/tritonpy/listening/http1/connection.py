"""A connection: passes HTTP requests on in their order, and ends what is no HTTP, too much, or too slow."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tritonpy.listening.acceptor import Evictable
from tritonpy.listening.http1.framing import fault_of, origin_form, without_upgrade
from tritonpy.listening.http1.limits import HttpLimits
from tritonpy.listening.http1.lingering_close import LingeringClose
from tritonpy.listening.http1.refusal import (
    BODY_TOO_LONG,
    HEAD_TOO_LARGE,
    STOPPING,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_HEADERS,
    TOO_SLOW,
    Refusal,
    Refused,
    refusal_of,
)

# Bytes of requests that are read ahead of their turn. Up to there the connection is read, so that a client that leaves is noticed.
MAX_AHEAD = 1 << 20
MAX_DROPPED = 64 * 1024 * 1024  # bytes of a body that are read and dropped where the answer does not need it
_STALLED_S = 1.0  # a body that did not move for so long may be given up when descriptors are short


class HttpConnection(HttpToolsProtocol, Evictable):
    """uvicorn's protocol with `limits`. One timer per connection checks them now and then; a request costs none."""

    limits = HttpLimits()
    refuses = False  # the server is stopping, and this connection came after it began to
    midway = False  # the parser has begun a request and not seen its end
    in_head = False
    idle_since_s = 0.0  # when the last reply was written, on the loop's clock
    _moved = 0.0  # when the head began, or the body came on
    _head_size = 0  # what came of a head that is not complete
    _trailers = 0
    _dropped = 0  # bytes of a body that came after its answer
    _unsent = 0  # what the client had not read at the last look
    _plain_head = b""  # the head again, without its wish for another protocol
    _timer: asyncio.TimerHandle | None = None
    _served: Any = None  # the request whose answer comes next, where others wait behind it
    _ahead = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, unless there are too many connections."""
        super().connection_made(transport)
        self.idle_since_s = self.loop.time()
        self._look_later(self.limits.head_s)
        is_new = not transport.get_extra_info("is_multiplexed")  # otherwise it is one request of an older connection
        self.refuses = is_new and not getattr(self.server_state, "accepting", True)
        if 0 < self.limits.connections < len(self.connections):
            self._log_refusal(TOO_MANY_CONNECTIONS)
            transport.write(TOO_MANY_CONNECTIONS.wire())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the timer, which would keep the connection's objects until it fires, and tell the request that is being served.

        The last request of the pipeline is told by uvicorn. Then drop all requests: they refer to the connection, and abandoned bodies would
        stay until the garbage collector runs.
        """
        if self._timer is not None:
            self._timer.cancel()
        served = self._served
        if served is not None and served is not self.cycle and not served.response_complete:
            served.disconnected = True
            served.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)
        self._served = self.cycle = None  # type: ignore[assignment]  # nothing asks for it any more

    def idle_since(self) -> float | None:
        """Return since when there is no complete request, or since when a body stands still; None where an answer is owed or unread."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if self.transport.is_closing() or self.flow.read_paused or self.transport.get_write_buffer_size():
            return None
        if self.midway and not self.in_head:
            alone = not self.pipeline
            return self._moved if alone and self.loop.time() - self._moved > _STALLED_S else None
        if busy:
            return None
        return self._moved if self.midway else self.idle_since_s

    def is_used(self, idle_s: float) -> bool:
        """Return whether its client has a request here, or had one less than `idle_s` seconds ago."""
        if self.refuses or self.transport.is_closing():
            return False
        if self.midway or (self.cycle is not None and not self.cycle.response_complete):
            return True
        return self.cycle is not None and self.loop.time() - self.idle_since_s < idle_s

    def evict(self) -> None:
        """Close it for a new connection."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self.feed(data)
        if self.pipeline:
            self.read_ahead(len(data))

    def feed(self, data: bytes) -> None:
        """Parse what came; the parser calls the methods `on_…`."""
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self.refuse(refusal_of(error, data))
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
                # The parser takes what follows for another protocol, even the request's own body.
                data = memoryview(data)[upgrade.args[0] :]
                self.parser.feed_data(self._plain_head)
            else:
                return

    def on_message_begin(self) -> None:
        """Begin a request; what ASGI needs is made when its path is known."""
        self.midway = self.in_head = True
        self._moved = self.loop.time()
        self._head_size = self._trailers = self._dropped = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes behind the body changes nothing and is dropped."""
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

    def judge_head(self) -> bool:
        """Return whether the request is to go on: not if it will be parsed again. Raises Refused where it cannot be served."""
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if len(self.url) + sum([len(name) + len(value) for name, value in self.headers]) > self.limits.head_size:
            raise Refused(HEAD_TOO_LARGE)
        fault = fault_of(version, self.headers)
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
        """Record that the request came on."""
        self._moved = self.loop.time()

    def on_headers_complete(self) -> None:
        """Begin a request."""
        if self.judge_head():
            self.begin_asgi()

    def begin_asgi(self) -> None:
        """Pass the request whose head is complete to the ASGI application."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        before = self.cycle
        super().on_headers_complete()
        # uvicorn stops reading at once, and would not notice a client that leaves
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.wait_in_pipeline(before, self.pipeline.popleft()[0])
            self.flow.resume_reading()
        if self.parser.get_http_version() == "1.0":
            _answer_without_chunks(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, or drop it where the request is answered."""
        self.moved()
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > MAX_DROPPED:
                raise Refused(BODY_TOO_LONG)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        if self.in_head:
            return  # it is going to be parsed again
        self.midway = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request of the pipeline, or note that the connection is idle: uvicorn's own makes a timer per reply."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.midway and not self.in_head and self.cycle.response_complete and self._is_too_long_to_drop():
            self.close_lingering()
            return
        self.flow.resume_reading()
        self.idle_since_s = self.loop.time()
        if self.pipeline:
            self.moved()
            self._start_asgi_task(*self._next_in_pipeline())

    def _is_too_long_to_drop(self) -> bool:
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length) > MAX_DROPPED

    def wait_in_pipeline(self, before: Any, cycle: Any) -> None:
        """Let `cycle` wait for its turn; `before` is the request that came before it."""
        if not self.pipeline:
            self._served = before
        self.pipeline.appendleft((cycle, self.app))

    def read_ahead(self, size: int) -> None:
        """Count bytes that were read while others wait; stop reading where that is enough."""
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
        """Answer in its turn, and end the connection."""
        self._log_refusal(refusal)
        has_cycle = self.midway and not self.in_head
        if has_cycle and self.cycle.response_complete:  # it was answered before its body came
            self.close_lingering()
            return
        self.midway = self.in_head = False
        if has_cycle and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()  # it waits behind others, and will never be complete
        elif has_cycle or self.cycle is None or self.cycle.response_complete:
            self.end_with(refusal)
            return
        self.flow.pause_reading()
        self.pipeline.appendleft((refusal, self.app))  # type: ignore[arg-type]  # it is looked at before it is started

    def end_with(self, refusal: Refusal) -> None:
        """Answer now, and end the connection once the client had time to read it."""
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
        """End the connection once the client had time to read its answer: not all that it sent was read."""
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

    def _look_later(self, seconds: float) -> None:
        self._timer = self.loop.call_later(min(seconds, self.limits.period_s), self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            self._end_if_unread()
            return
        left = self._left()
        if left > 0:
            self._look_later(left)
        elif self.midway:
            self.refuse(TOO_SLOW)
        else:
            self._end_if_unread()

    def _left(self) -> float:
        """Return in how many seconds the client's time is over."""
        limits, now = self.limits, self.loop.time()
        if self.midway and not self.flow.read_paused:
            return self._moved + (limits.head_s if self.in_head else limits.body_s) - now
        if self.midway or not (self.cycle is None or self.cycle.response_complete):
            self._moved = now
            return limits.period_s  # it waits for us
        return self.idle_since_s + (limits.head_s if self.cycle is None else limits.idle_s) - now

    def _end_if_unread(self) -> None:
        """Close what is idle; where the client has not read its answer, it gets time as long as it goes on reading."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self.transport.close()
        elif unsent != self._unsent:
            self._unsent = unsent
            self._timer = self.loop.call_later(self.limits.body_s, self._look)
        else:
            self.transport.abort()


class _Endless(int):
    """The number of bytes that are still to come, as uvicorn counts them, if it is not known: never too few, never too many."""

    def __lt__(self, _other: object) -> bool:
        return False

    def __sub__(self, _other: object) -> _Endless:
        return self

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _answer_without_chunks(cycle: Any) -> None:
    """Let a cycle of uvicorn's send a body of unknown length without chunks, which HTTP/1.0 lacks: the end of the connection ends it."""
    cycle.chunked_encoding, cycle.expected_content_length = False, _Endless()
