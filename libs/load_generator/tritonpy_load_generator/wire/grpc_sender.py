"""Request sender over gRPC calls on shared connections."""

from __future__ import annotations

import asyncio

from tritonpy_load_generator.loops.exchange import Exchange, LostConnection, RequestSender
from tritonpy_load_generator.wire.grpc_channel import GrpcChannel, reset_error, status_error
from tritonpy_load_generator.wire.grpc_messages import GrpcMessages
from tritonpy_load_generator.wire.http2_connection import ClientConnection, ClientStream


class GrpcSender(RequestSender, ClientStream):
    """Sends one call at a time on its channel's connection; reads only the status of responses."""

    reads_data = False

    def __init__(self, number: int, channel: GrpcChannel, messages: GrpcMessages) -> None:
        ClientStream.__init__(self)
        self.number = number
        self._channel = channel
        self._messages = messages
        self._exchange: Exchange | None = None
        self._error: str | None = None
        self._has_status = False
        self._connecting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self._channel.connect()

    def send(self, exchange: Exchange) -> None:
        """Start a call; connect first if there is no connection."""
        self._exchange = exchange
        connection = self._channel.connection
        if connection is None:
            self._connecting = asyncio.get_running_loop().create_task(
                self._connect_and_send(exchange)
            )
        else:
            self._start(connection, exchange)

    def close(self) -> None:
        """Cancel the call in flight."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._exchange is not None:
            self._exchange = None
            self._channel.cancel(self)

    def headers_received(self, headers: dict[str, str]) -> None:
        """Keep the status."""
        self._error = status_error(headers)
        self._has_status = self._has_status or "grpc-status" in headers

    def ended(self, error: str | None) -> None:
        """End the exchange."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if error is not None:
            error = reset_error(error)
        elif self._error is not None:
            error = self._error
        elif not self._has_status:
            error = "UNKNOWN: the server ended the call without a status"
        self.on_end(self, exchange, error)

    def _start(self, connection: ClientConnection, exchange: Exchange) -> None:
        self._error, self._has_status = None, False
        connection.start(self, self._messages.message_for(exchange.job, self.number), end=True)

    async def _connect_and_send(self, exchange: Exchange) -> None:
        try:
            connection = await self._channel.connect()
        except OSError as error:
            self._exchange = None
            self.on_end(self, exchange, LostConnection(f"UNAVAILABLE: no connection: {error}"))
            return
        self._start(connection, exchange)
