"""HTTP connections that note when each part of a response arrives.

Parts are only stored while the load runs; `replies` reads them afterwards.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

import httptools

from tritonpy_load_generator.wire.address import Address


class TimedExchange:
    """One request and its response, with times in ns of one monotonic clock.

    `due_ns` is when the request was due, `sent_ns` when it was sent. `parts` are the arrivals of
    the response's body. `error` says why there is no complete response.
    """

    __slots__ = (
        "due_ns", "ended_ns", "error", "is_cancelled",
        "output_tokens", "parts", "sent_ns", "status",
    )  # fmt: skip

    def __init__(self, output_tokens: int, due_ns: int = 0) -> None:
        self.output_tokens = output_tokens
        self.due_ns = due_ns
        self.sent_ns = 0
        self.ended_ns = 0
        self.status = 0
        self.parts: list[tuple[int, bytes]] = []
        self.error = ""
        self.is_cancelled = False


class _Connection(asyncio.Protocol):
    """One connection with keep-alive; one exchange at a time."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._parser: Any = None
        self._exchange: TimedExchange | None = None
        self._done: asyncio.Future[None] | None = None
        self._now = 0
        self._complete = False
        self.is_open = True

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._now = time.perf_counter_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(f"the response is no HTTP: {error}")
        if self._complete:
            self._end("")

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._end("the server closed the connection")

    def on_body(self, body: bytes) -> None:
        assert self._exchange is not None  # noqa: S101
        self._exchange.parts.append((self._now, body))

    def on_message_complete(self) -> None:
        self._complete = True

    async def send(self, request: bytes, exchange: TimedExchange) -> None:
        """Send a request and wait for the end of its response."""
        self._parser = httptools.HttpResponseParser(self)
        self._exchange, self._complete = exchange, False
        self._done = asyncio.get_running_loop().create_future()
        exchange.sent_ns = time.perf_counter_ns()
        self._transport.write(request)
        await self._done

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _end(self, error: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.ended_ns = time.perf_counter_ns()
        exchange.error = error
        if self._complete or self._parser is not None:
            exchange.status = _status(self._parser)
        if self._complete and not self._parser.should_keep_alive():
            self.close()
        if self._done is not None and not self._done.done():
            self._done.set_result(None)


def _status(parser: Any) -> int:
    try:
        return int(parser.get_status_code())
    except (TypeError, ValueError):
        return 0


class ConnectionPool:
    """Connections to one server, as many as requests are in flight."""

    def __init__(self, address: Address, context: ssl.SSLContext | None) -> None:
        self._address = address
        self._context = context
        self._idle: list[_Connection] = []

    async def exchange(
        self, request: bytes, exchange: TimedExchange, leaves_after_s: float | None = None
    ) -> None:
        """Send a request; close its connection after `leaves_after_s` seconds if that is given."""
        try:
            connection = await self._open()
        except OSError as error:
            exchange.sent_ns = exchange.ended_ns = time.perf_counter_ns()
            exchange.error = f"cannot connect: {error.strerror or error}"
            return
        try:
            async with asyncio.timeout(leaves_after_s):
                await connection.send(request, exchange)
        except TimeoutError:
            connection.close()
            exchange.is_cancelled = True
            exchange.ended_ns = time.perf_counter_ns()
        except asyncio.CancelledError:
            connection.close()
            raise
        if connection.is_open:
            self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _open(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection, self._address.host, self._address.port, ssl=self._context
        )
        return connection
