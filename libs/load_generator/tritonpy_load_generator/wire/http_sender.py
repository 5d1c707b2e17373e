"""Request sender over one HTTP/1.1 connection; it reads only the status of successful responses."""

from __future__ import annotations

import asyncio
import json
import ssl

import httptools

from tritonpy_load_generator.loops.exchange import Exchange, LostConnection, RequestSender
from tritonpy_load_generator.wire.address import Address
from tritonpy_load_generator.wire.http_messages import HttpMessages

_MAX_ERROR_CHARS = 300


class HttpSender(RequestSender):
    """Connects on `open` or at the first request; reconnects after the server closed."""

    def __init__(
        self, number: int, address: Address, context: ssl.SSLContext | None, messages: HttpMessages
    ) -> None:
        self.number = number
        self._address = address
        self._context = context
        self._messages = messages
        self._loop = asyncio.get_running_loop()
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._exchange: Exchange | None = None

    async def open(self) -> None:
        """Connect. Raises OSError."""
        address = self._address
        _, self._connection = await self._loop.create_connection(
            lambda: _Connection(self),
            address.host,
            address.port,
            ssl=self._context,
            server_hostname=address.host if self._context else None,
        )

    def send(self, exchange: Exchange) -> None:
        """Send a request; connect first if there is no connection."""
        self._exchange = exchange
        if self._connection is None:
            self._connecting = self._loop.create_task(self._connect_and_send(exchange))
        else:
            self._write(self._connection.transport, exchange)

    def close(self) -> None:
        """Abort the connection; the request in flight ends without a call of `on_end`."""
        self._exchange = None
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.transport.abort()
            self._connection = None

    def response_ended(self, connection: _Connection, error: str | None, keep: bool) -> None:
        """End the request in flight; `keep` is true if the connection can be reused."""
        if connection is not self._connection:
            return
        if not keep:
            self._connection = None
            connection.transport.close()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:  # a server may send a response without a request, such as 408
            self.on_end(self, exchange, error)

    async def _connect_and_send(self, exchange: Exchange) -> None:
        try:
            await self.open()
        except OSError as error:
            self._exchange = None
            self.on_end(self, exchange, LostConnection(f"no connection: {error}"))
            return
        if self._connection is not None:
            self._write(self._connection.transport, exchange)

    def _write(self, transport: asyncio.Transport, exchange: Exchange) -> None:
        job = exchange.job
        parts = self._messages.message_for(job, self.number).parts(job.sequence)
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)


class _Connection(asyncio.Protocol):
    """A connection of a sender. The sender ignores the events of a connection that it gave up."""

    transport: asyncio.Transport

    def __init__(self, sender: HttpSender) -> None:
        self._sender = sender
        self._chunks: list[bytes] = []
        self.on_body = self._chunks.append
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = transport  # type: ignore[assignment]  # a stream's

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._sender.response_ended(
                self, LostConnection(f"the response is not HTTP: {error}"), keep=False
            )

    def on_message_complete(self) -> None:
        """End the request, unless the response is informational (100 to 199)."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        error = None if status == 200 else _error(status, b"".join(self._chunks))
        self._chunks.clear()
        self._sender.response_ended(self, error, self._parser.should_keep_alive())

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the request in flight."""
        text = (
            "the server closed the connection before it responded"
            if error is None
            else f"connection lost: {error}"
        )
        self._sender.response_ended(self, LostConnection(text), keep=False)


def _error(status: int, body: bytes) -> str:
    """Return the status and the server's error text."""
    try:
        plain = json.loads(body)
    except ValueError:
        plain = None
    text = (plain.get("error") or plain.get("detail")) if isinstance(plain, dict) else None
    return (
        f"{status}: "
        f"{text or body[:_MAX_ERROR_CHARS].decode('utf-8', 'replace').strip() or 'no text'}"
    )[: _MAX_ERROR_CHARS + 5]
