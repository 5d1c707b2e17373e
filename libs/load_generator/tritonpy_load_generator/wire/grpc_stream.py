"""Request sender over bidirectional gRPC streams with several requests in flight."""

from __future__ import annotations

import asyncio
import time
import zlib

from google.protobuf.message import DecodeError

from tritonpy_load_generator.loops.exchange import Exchange, LostConnection, RequestSender
from tritonpy_load_generator.wire.grpc_channel import GrpcChannel, reset_error, status_error
from tritonpy_load_generator.wire.grpc_messages import GrpcMessages, unframe
from tritonpy_load_generator.wire.http2_connection import ClientConnection, ClientStream
from tritonpy_protos.grpc_service_pb2 import ModelStreamInferResponse

_FINAL = "triton_final_response"


class GrpcStream(ClientStream):
    """One stream shared by senders; it starts with its first request and restarts after a failure.

    Responses are matched to requests by id. If `decoupled`, a request ends with its final response.
    """

    def __init__(self, channel: GrpcChannel, decoupled: bool) -> None:
        super().__init__()
        self._channel = channel
        self._decoupled = decoupled
        self._open: dict[str, tuple[StreamSender, Exchange]] = {}
        self._connection: ClientConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._queued: list[bytes] = []
        self._remainder = b""
        self._error: str | None = None
        self._count = 0

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self._channel.connect()

    def send(self, sender: StreamSender, exchange: Exchange, messages: GrpcMessages) -> None:
        """Send a request on the stream."""
        self._count += 1
        request_id = str(self._count)
        self._open[request_id] = (sender, exchange)
        message = messages.message_for(exchange.job, sender.number, request_id)
        if self._connection is not None:
            self._connection.send(self, message, end=False)
        elif self._connecting is not None:
            self._queued.append(message)
        elif (connection := self._channel.connection) is not None:
            self._begin(connection, message)
        else:
            self._queued.append(message)
            self._connecting = asyncio.get_running_loop().create_task(self._connect_and_begin())

    def discard(self, sender: StreamSender) -> None:
        """Forget a sender's request in flight."""
        self._open = {name: entry for name, entry in self._open.items() if entry[0] is not sender}

    def close(self) -> None:
        """Half-close the stream if no request is in flight; the channel resets it otherwise."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None and self._connection.usable and not self._open:
            self._connection.send(self, b"", end=True)

    def headers_received(self, headers: dict[str, str]) -> None:
        """Keep the status in the trailers."""
        self._error = status_error(headers)

    def data_received(self, data: bytes) -> None:
        """Process the complete responses."""
        now = time.monotonic_ns()
        try:
            messages, self._remainder = unframe(self._remainder + data)
            for message in messages:
                self._handle_response(ModelStreamInferResponse.FromString(message), now)
        except (zlib.error, DecodeError) as error:
            self._channel.cancel(self)
            self._fail_all(f"INTERNAL: a response cannot be read: {error}")

    def ended(self, error: str | None) -> None:
        """Fail all requests in flight."""
        if error is not None:
            error = reset_error(error)
        self._fail_all(error or self._error or "the server ended the stream")

    def _begin(self, connection: ClientConnection, message: bytes) -> None:
        self._connection, self._remainder, self._error = connection, b"", None
        connection.start(self, message, end=False)

    async def _connect_and_begin(self) -> None:
        try:
            connection = await self._channel.connect()
        except OSError as error:
            self._queued.clear()
            self._connecting = None
            self._fail_all(f"UNAVAILABLE: no connection: {error}")
            return
        self._connecting = None
        first, *more = self._queued
        self._queued.clear()
        self._begin(connection, first)
        for message in more:
            connection.send(self, message, end=False)

    def _fail_all(self, error: str) -> None:
        self._connection = None
        lost, self._open = self._open, {}
        for sender, exchange in lost.values():
            sender.on_end(sender, exchange, LostConnection(error))

    def _handle_response(self, message: ModelStreamInferResponse, now: int) -> None:
        response = message.infer_response
        final = self._final(message)
        name = response.id
        if (
            message.error_message and name not in self._open
        ):  # the server omits the id of the failed request
            name = next(iter(self._open), "")
        entry = self._open.get(name)
        if entry is None:
            return
        sender, exchange = entry
        if not message.error_message and (
            response.outputs or not self._decoupled
        ):  # an empty response only marks the end
            exchange.add_response(now)
        if final:
            del self._open[name]
            if exchange.between is None:  # no response but the final empty one
                exchange.responses, exchange.between = 0, []
            sender.on_end(sender, exchange, message.error_message or None)

    def _final(self, message: ModelStreamInferResponse) -> bool:
        if message.error_message or not self._decoupled:
            return True
        return (
            message.infer_response.parameters[_FINAL].bool_param
            if _FINAL in message.infer_response.parameters
            else False
        )


class StreamSender(RequestSender):
    """Sends one request at a time on a shared stream."""

    def __init__(self, number: int, stream: GrpcStream, messages: GrpcMessages) -> None:
        self.number = number
        self._stream = stream
        self._messages = messages

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self._stream.open()

    def send(self, exchange: Exchange) -> None:
        """Send a request on the stream."""
        self._stream.send(self, exchange, self._messages)

    def close(self) -> None:
        """Forget the request in flight."""
        self._stream.discard(self)
