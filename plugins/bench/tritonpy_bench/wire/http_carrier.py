"""One connection of HTTP/1.1: writes bytes that lie ready, and looks at no more of an answer than it must."""

from __future__ import annotations

import asyncio
import json
import ssl

import httptools

from tritonpy_bench.load.exchange import Carrier, Exchange, Lost
from tritonpy_bench.wire.address import Address
from tritonpy_bench.wire.http_messages import HttpMessages

_SHOWN = 300


class HttpCarrier(Carrier):
    """Connects when it is opened, or at its first request, and again when the server closed the connection."""

    def __init__(self, number: int, address: Address, context: ssl.SSLContext | None, messages: HttpMessages) -> None:
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
        where = self._address
        _, self._connection = await self._loop.create_connection(
            lambda: _Connection(self),
            where.host,
            where.port,
            ssl=self._context,
            server_hostname=where.host if self._context else None,
        )

    def send(self, exchange: Exchange) -> None:
        """Write a request; connect first where there is no connection."""
        self._exchange = exchange
        if self._connection is None:
            self._connecting = self._loop.create_task(self._connect_and_send(exchange))
        else:
            self._write(self._connection.transport, exchange)

    def close(self) -> None:
        """Cut the connection; what is in flight ends without a word."""
        self._exchange = None
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.transport.abort()
            self._connection = None

    def answered(self, connection: _Connection, error: str | None, keep: bool) -> None:
        """Take the end of a request; `keep` says whether the connection may carry another one."""
        if connection is not self._connection:
            return
        if not keep:
            self._connection = None
            connection.transport.close()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:  # a server may say something unasked, such as that it waited too long
            self.on_end(self, exchange, error)

    async def _connect_and_send(self, exchange: Exchange) -> None:
        try:
            await self.open()
        except OSError as error:
            self._exchange = None
            self.on_end(self, exchange, Lost(f"no connection: {error}"))
            return
        if self._connection is not None:
            self._write(self._connection.transport, exchange)

    def _write(self, transport: asyncio.Transport, exchange: Exchange) -> None:
        job = exchange.job
        parts = self._messages.of(job, self.number).parts(job.sequence)
        if len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)


class _Connection(asyncio.Protocol):
    """One connection of a carrier, which outlives it: what a connection says after it was given up is nobody's."""

    transport: asyncio.Transport

    def __init__(self, carrier: HttpCarrier) -> None:
        self._carrier = carrier
        self._chunks: list[bytes] = []
        self.on_body = self._chunks.append
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is written to."""
        self.transport = transport  # type: ignore[assignment]  # a stream's

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._carrier.answered(self, Lost(f"the answer is no HTTP: {error}"), keep=False)

    def on_message_complete(self) -> None:
        """End the request; an answer of 100 to 199 is not the last one."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        error = None if status == 200 else _error(status, b"".join(self._chunks))
        self._chunks.clear()
        self._carrier.answered(self, error, self._parser.should_keep_alive())

    def connection_lost(self, error: Exception | None) -> None:
        """Count what was in flight as lost."""
        text = "the server closed the connection before it answered" if error is None else f"connection lost: {error}"
        self._carrier.answered(self, Lost(text), keep=False)


def _error(status: int, body: bytes) -> str:
    """Return the status and the text that the server gave."""
    try:
        plain = json.loads(body)
    except ValueError:
        plain = None
    text = (plain.get("error") or plain.get("detail")) if isinstance(plain, dict) else None
    return f"{status}: {text or body[:_SHOWN].decode('utf-8', 'replace').strip() or 'no text'}"[: _SHOWN + 5]
