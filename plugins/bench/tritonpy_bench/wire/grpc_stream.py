"""gRPC requests on two-way streams, several in flight on each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc

from tritonpy_bench.load.exchange import Carrier, Exchange, Lost
from tritonpy_bench.wire.grpc_carrier import error_text
from tritonpy_bench.wire.grpc_messages import GrpcMessages
from tritonpy_protos.grpc_service_pb2 import ModelStreamInferResponse

_FINAL = "triton_final_response"


class GrpcStream:
    """One stream that carriers share; it begins with its first request, and anew when it broke. `begin()` begins a call.

    Answers find their request by its id. With `decoupled` a request ends with the answer that says that it is the final one.
    """

    def __init__(self, begin: Callable[[], Any], decoupled: bool) -> None:
        self._begin = begin
        self._decoupled = decoupled
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, tuple[StreamCarrier, Exchange]] = {}
        self._unwritten: asyncio.Queue[bytes] = asyncio.Queue()
        self._call: Any = None
        self._task: asyncio.Task[None] | None = None
        self._count = 0

    def send(self, carrier: StreamCarrier, exchange: Exchange, messages: GrpcMessages) -> None:
        """Put a request on the stream."""
        self._count += 1
        request_id = str(self._count)
        self._open[request_id] = (carrier, exchange)
        if self._call is None:
            self._call = self._begin()
            self._unwritten = asyncio.Queue()
            self._task = self._loop.create_task(self._run(self._call, self._unwritten))
        self._unwritten.put_nowait(messages.of(exchange.job, carrier.number, request_id))

    def forget(self, carrier: StreamCarrier) -> None:
        """Give up what a carrier has in flight."""
        self._open = {name: entry for name, entry in self._open.items() if entry[0] is not carrier}

    def close(self) -> None:
        """End the stream without waiting for anything."""
        self._open.clear()
        if self._task is not None:
            self._task.cancel()
        if self._call is not None:
            self._call.cancel()

    async def _run(self, call: Any, unwritten: asyncio.Queue[bytes]) -> None:
        writing = self._loop.create_task(self._write(call, unwritten))
        try:
            error = await self._read(call)
        finally:
            writing.cancel()
        self._call = None
        broken, self._open = self._open, {}
        for carrier, exchange in broken.values():
            carrier.on_end(carrier, exchange, Lost(error))

    async def _write(self, call: Any, unwritten: asyncio.Queue[bytes]) -> None:
        try:
            while True:
                await call.write(await unwritten.get())
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # who reads is told why

    async def _read(self, call: Any) -> str:
        """Take answers to the end of the stream; return why it ended."""
        try:
            while (raw := await call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # the stubs lack it
                self._answered(ModelStreamInferResponse.FromString(raw), time.monotonic_ns())
        except grpc.aio.AioRpcError as failure:
            return error_text(failure)
        return "the server ended the stream"

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

    def send(self, exchange: Exchange) -> None:
        """Put a request on the stream."""
        self._stream.send(self, exchange, self._messages)

    def close(self) -> None:
        """Forget what is in flight."""
        self._stream.forget(self)
