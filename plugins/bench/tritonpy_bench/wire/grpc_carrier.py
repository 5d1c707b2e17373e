"""gRPC requests, one call each, on channels that are shared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from tritonpy_bench.load.exchange import Carrier, Exchange, Lost
from tritonpy_bench.wire.grpc_messages import GrpcMessages

_LOST = {grpc.StatusCode.UNAVAILABLE}


class GrpcCarrier(Carrier):
    """`call(message)` begins one call; what it returns is awaited for the answer's bytes."""

    def __init__(self, number: int, call: Callable[[bytes], Any], messages: GrpcMessages) -> None:
        self.number = number
        self._call = call
        self._messages = messages
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def send(self, exchange: Exchange) -> None:
        """Begin a call."""
        self._task = self._loop.create_task(self._exchange(exchange))

    def close(self) -> None:
        """Cancel the call that is in flight."""
        if self._task is not None:
            self._task.cancel()

    async def _exchange(self, exchange: Exchange) -> None:
        error: str | None = None
        try:
            await self._call(self._messages.of(exchange.job, self.number))
        except grpc.aio.AioRpcError as failure:
            error = error_text(failure)
        self.on_end(self, exchange, error)


def error_text(error: grpc.aio.AioRpcError) -> str:
    """Return an error as it is counted."""
    text = f"{error.code().name}: {error.details() or 'no text'}"
    return Lost(text) if error.code() in _LOST else text
