"""Adapters from the call contexts of grpc.aio to `GrpcCall`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from tritonpy import TritonError, now_ns
from tritonpy_frontend_grpc.call import InferCall, Metadata, StreamingCall

Context = grpc.aio.ServicerContext[Any, Any]


class AioCall(StreamingCall):
    """A streaming call on grpc.aio."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def metadata(self) -> Metadata:
        return read_metadata(self._context)

    def deadline_ns(self) -> int:
        return read_deadline(self._context)

    def when_done(self, callback: Callable[[], None]) -> None:
        call_when_done(self._context, callback)

    async def read(self) -> bytes | None:
        raw: Any = await self._context.read()
        return None if raw is grpc.aio.EOF else raw  # type: ignore[attr-defined]

    async def write(self, message: bytes) -> None:
        try:
            await self._context.write(message)
        except grpc.aio.InternalError:  # the client disconnected during the write
            raise asyncio.CancelledError from None


class AioInferCall(InferCall):
    """A call of ModelInfer on grpc.aio. Its task awaits `outcome`."""

    __slots__ = ("_context", "outcome")

    def __init__(self, context: Context, outcome: asyncio.Future[bytes | TritonError]) -> None:
        super().__init__()
        self.outcome = outcome
        self._context = context

    def metadata(self) -> Metadata:
        return read_metadata(self._context)

    def deadline_ns(self) -> int:
        return read_deadline(self._context)

    def when_done(self, callback: Callable[[], None]) -> None:
        call_when_done(self._context, callback)

    def finish(self, result: bytes | TritonError) -> None:
        if not self.outcome.done():
            self.outcome.set_result(result)


def read_metadata(context: Context) -> Metadata:
    """Return the metadata of the call."""
    return context.invocation_metadata() or ()


def read_deadline(context: Context) -> int:
    """Return the deadline of the call in ns on the server's clock, 0 for none."""
    left_s = context.time_remaining()
    return 0 if left_s is None else now_ns() + max(int(left_s * 1e9), 0)


def call_when_done(context: Context, callback: Callable[[], None]) -> None:
    """Call `callback` when the call has ended."""
    called: Any = lambda _: callback()  # noqa: E731  its type is a class, not a protocol
    context.add_done_callback(called)
