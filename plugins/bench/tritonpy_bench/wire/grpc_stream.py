"""gRPC requests on two-way streams, several in flight on each."""

from __future__ import annotations

import asyncio
import time
import zlib

from google.protobuf.message import DecodeError

from tritonpy_bench.load.exchange import Carrier, Exchange, Lost
from tritonpy_bench.wire.grpc_channel import GrpcChannel, reset_error, status_error
from tritonpy_bench.wire.grpc_messages import GrpcMessages, unframe
from tritonpy_bench.wire.http2_connection import Http2Connection, Http2Stream
from tritonpy_protos.grpc_service_pb2 import ModelStreamInferResponse

_FINAL = "triton_final_response"


class GrpcStream(Http2Stream):
    """One stream that carriers share; it begins with its first request, and anew when it broke.

    Answers find their request by its id. With `decoupled` a request ends with the answer that says that it is the final one.
    """

    def __init__(self, channel: GrpcChannel, decoupled: bool) -> None:
        super().__init__()
        self._channel = channel
        self._decoupled = decoupled
        self._open: dict[str, tuple[StreamCarrier, Exchange]] = {}
        self._connection: Http2Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._queued: list[bytes] = []
        self._rest = b""
        self._error: str | None = None
        self._count = 0

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self._channel.connect()

    def send(self, carrier: StreamCarrier, exchange: Exchange, messages: GrpcMessages) -> None:
        """Put a request on the stream."""
        self._count += 1
        request_id = str(self._count)
        self._open[request_id] = (carrier, exchange)
        message = messages.of(exchange.job, carrier.number, request_id)
        if self._connection is not None:
            self._connection.send(self, message, end=False)
        elif self._connecting is not None:
            self._queued.append(message)
        elif (connection := self._channel.connection) is not None:
            self._begin(connection, message)
        else:
            self._queued.append(message)
            self._connecting = asyncio.get_running_loop().create_task(self._connect_and_begin())

    def forget(self, carrier: StreamCarrier) -> None:
        """Give up what a carrier has in flight."""
        self._open = {name: entry for name, entry in self._open.items() if entry[0] is not carrier}

    def close(self) -> None:
        """End the stream on this side; without requests in flight nothing has to be reset."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None and self._connection.usable and not self._open:
            self._connection.send(self, b"", end=True)

    def headers_received(self, headers: dict[str, str]) -> None:
        """Keep what the trailers say."""
        self._error = status_error(headers)

    def data_received(self, data: bytes) -> None:
        """Take the responses that are complete."""
        now = time.monotonic_ns()
        try:
            messages, self._rest = unframe(self._rest + data)
            for message in messages:
                self._answered(ModelStreamInferResponse.FromString(message), now)
        except (zlib.error, DecodeError) as error:
            self._channel.cancel(self)
            self._lose(f"INTERNAL: a response cannot be read: {error}")

    def ended(self, error: str | None) -> None:
        """Everything in flight is lost with the stream."""
        if error is not None:
            error = reset_error(error)
        self._lose(error or self._error or "the server ended the stream")

    def _begin(self, connection: Http2Connection, message: bytes) -> None:
        self._connection, self._rest, self._error = connection, b"", None
        connection.start(self, message, end=False)

    async def _connect_and_begin(self) -> None:
        try:
            connection = await self._channel.connect()
        except OSError as error:
            self._queued.clear()
            self._connecting = None
            self._lose(f"UNAVAILABLE: no connection: {error}")
            return
        self._connecting = None
        first, *more = self._queued
        self._queued.clear()
        self._begin(connection, first)
        for message in more:
            connection.send(self, message, end=False)

    def _lose(self, error: str) -> None:
        self._connection = None
        lost, self._open = self._open, {}
        for carrier, exchange in lost.values():
            carrier.on_end(carrier, exchange, Lost(error))

    def _answered(self, answer: ModelStreamInferResponse, now: int) -> None:
        response = answer.infer_response
        final = self._final(answer)
        name = response.id
        if answer.error_message and name not in self._open:  # a server that does not say whose error it is
            name = next(iter(self._open), "")
        entry = self._open.get(name)
        if entry is None:
            return
        carrier, exchange = entry
        if not answer.error_message and (
            response.outputs or not self._decoupled
        ):  # what is empty only says that it is the end
            exchange.answered(now)
        if final:
            del self._open[name]
            if exchange.between is None:  # no answer but the end
                exchange.responses, exchange.between = 0, []
            carrier.on_end(carrier, exchange, answer.error_message or None)

    def _final(self, answer: ModelStreamInferResponse) -> bool:
        if answer.error_message or not self._decoupled:
            return True
        return (
            answer.infer_response.parameters[_FINAL].bool_param if _FINAL in answer.infer_response.parameters else False
        )


class StreamCarrier(Carrier):
    """A place on a stream."""

    def __init__(self, number: int, stream: GrpcStream, messages: GrpcMessages) -> None:
        self.number = number
        self._stream = stream
        self._messages = messages

    async def open(self) -> None:
        """Connect. Raises OSError."""
        await self._stream.open()

    def send(self, exchange: Exchange) -> None:
        """Put a request on the stream."""
        self._stream.send(self, exchange, self._messages)

    def close(self) -> None:
        """Forget what is in flight."""
        self._stream.forget(self)
