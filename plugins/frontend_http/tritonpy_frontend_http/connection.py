"""A connection: hands on what is HTTP, and ends what is none, too much, or too slow."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tritonpy_frontend_http.farewell import Farewell
from tritonpy_frontend_http.framing import fault_of, origin_form, without_upgrade
from tritonpy_frontend_http.limits import Limits
from tritonpy_frontend_http.refusal import (
    HEAD_TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_HEADERS,
    TOO_SLOW,
    Refusal,
    Refused,
    refusal_of,
)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with `limits`. One timer per connection looks round now and then; a request costs none."""

    limits = Limits()
    midway = False  # the parser has begun a request and not seen its end
    in_head = False
    idle_since = 0.0  # when the last reply was written, on the loop's clock
    _moved = 0.0  # when the head began, or the body came on
    _head_size = 0  # what came of a head that is not complete
    _trailers = 0
    _unsent = 0  # what the client had not read at the last look
    _plain_head = b""  # the head again, without its wish for another protocol
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, unless there are too many connections."""
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._look_later(self.limits.head_s)
        if 0 < self.limits.connections < len(self.connections):
            self._log_refusal(TOO_MANY_CONNECTIONS)
            transport.write(TOO_MANY_CONNECTIONS.wire())
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer, which would keep the connection's objects until it rings."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

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
        self._head_size = self._trailers = 0
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
        """Say whether the request is to go on: not if it will be parsed again. Raises Refused where it cannot be served."""
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
        if version == "1.0":
            self.expect_100_continue = False
        self.in_head = False
        self.moved()
        return True

    def moved(self) -> None:
        """Take note that the request came on."""
        self._moved = self.loop.time()

    def refuse(self, refusal: Refusal) -> None:
        """Answer in its turn, and end the connection."""
        self._log_refusal(refusal)
        has_cycle = self.midway and not self.in_head
        self.midway = self.in_head = False
        if has_cycle and self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()  # it waits behind others, and will never be complete
        elif has_cycle or self.cycle is None or self.cycle.response_complete:
            self.say_farewell(refusal)
            return
        self.flow.pause_reading()
        self.pipeline.appendleft((refusal, self.app))  # type: ignore[arg-type]  # it is looked at before it is started

    def say_farewell(self, refusal: Refusal) -> None:
        """Answer now, and end the connection once the client had time to read it."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            if getattr(cycle, "response_started", False):
                self.transport.abort()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(refusal.wire())
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            Farewell(self, self.transport, self.loop)
        else:
            self.transport.close()

    def _log_refusal(self, refusal: Refusal) -> None:
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
        return self.idle_since + (limits.head_s if self.cycle is None else limits.idle_s) - now

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
