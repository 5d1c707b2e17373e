"""Triton's environment variables that delay calls, for tests.

Milliseconds unless the name says SEC.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import sleep
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy_frontend_grpc.call import GrpcCall, InferCall, StreamingCall
from tritonpy_frontend_grpc.service import InferenceService

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tritonpy import TritonError
    from tritonpy_frontend_grpc.call import Metadata
    from tritonpy_frontend_grpc.stream import InferStream
    from tritonpy_protos import Method

# One step here can be several steps of Triton's state machine. Their delays are added up.
_ARRIVAL = ("TRITONSERVER_DELAY_GRPC_PROCESS_ENTRY", "TRITONSERVER_DELAY_GRPC_PROCESS")
_RESPONSE = (
    "TRITONSERVER_DELAY_RESPONSE_COMPLETE_EXEC",
    "TRITONSERVER_DELAY_GRPC_ENQUEUE",
    "TRITONSERVER_DELAY_GRPC_COMPLETE",
    "TRITONSERVER_DELAY_RESPONSE_COMPLETION",
)
_WRITE = ("TRITONSERVER_DELAY_GRPC_RESPONSE",)
_MANAGEMENT = ("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC",)


class Delays(NamedTuple):
    """Delays in seconds.

    They are applied before an inference request is read, before its response is sent, before each
    write of a stream, and before a management call returns.
    """

    arrival_s: float
    response_s: float
    write_s: float
    management_s: float


def read_delays(environment: Mapping[str, str], log: logging.Logger) -> Delays | None:
    """Return the delays in the environment, or None.

    An invalid number is logged and counts as 0.
    """

    def total(names: tuple[str, ...]) -> float:
        return sum([_number(name, environment[name], log) for name in names if name in environment])

    delays = Delays(
        total(_ARRIVAL) / 1e3, total(_RESPONSE) / 1e3, total(_WRITE) / 1e3, total(_MANAGEMENT)
    )
    return delays if any(delays) else None


def _number(name: str, text: str, log: logging.Logger) -> int:
    try:
        return max(int(text), 0)
    except ValueError:
        log.error(
            "Unable to parse the debug variable %s. Value provided: '%s' is not a valid integer.",
            name,
            text,
        )
        return 0


def delayed_service(environment: Mapping[str, str], log: logging.Logger) -> type[InferenceService]:
    """Return the service class, with delays if the environment sets any."""
    delays = read_delays(environment, log)
    return (
        InferenceService
        if delays is None
        else type("DelayedService", (DelayedService,), {"delays": delays})
    )


class DelayedService(InferenceService):
    """The service with delays. `delayed_service` sets `delays`."""

    delays: Delays

    def management(self, method: Method) -> Callable[[bytes, GrpcCall], Awaitable[Message]]:
        """Return the method with a delay before its response."""
        handler = super().management(method)

        async def delayed(raw: bytes, call: GrpcCall) -> Message:
            message = await handler(raw, call)
            await sleep(self.delays.management_s)
            return message

        return delayed

    def infer(self, raw: bytes, call: InferCall) -> None:
        """Start the call after a delay."""
        starting = asyncio.create_task(self._infer_later(raw, call))
        self._tasks.add(starting)
        starting.add_done_callback(self._tasks.discard)

    async def _infer_later(self, raw: bytes, call: InferCall) -> None:
        await sleep(self.delays.arrival_s)
        if not call.over:
            super().infer(raw, call)

    def _end(self, call: InferCall, result: bytes | TritonError) -> None:
        ending = asyncio.create_task(self._end_later(call, result))
        self._tasks.add(ending)
        ending.add_done_callback(self._tasks.discard)

    async def _end_later(self, call: InferCall, result: bytes | TritonError) -> None:
        await sleep(self.delays.response_s)
        super()._end(call, result)

    async def stream(self, call: StreamingCall) -> None:
        """Serve the stream with a delay before each write."""
        await super().stream(_DelayedCall(call, self.delays.write_s))

    def _take(self, metadata: Metadata, stream: InferStream, raw: bytes) -> Awaitable[None]:
        return self._take_later(metadata, stream, raw)

    async def _take_later(self, metadata: Metadata, stream: InferStream, raw: bytes) -> None:
        await sleep(self.delays.arrival_s)
        await (super()._take(metadata, stream, raw) or sleep(0))


class _DelayedCall(StreamingCall):
    """A call with a delay before each write."""

    def __init__(self, call: StreamingCall, pause_s: float) -> None:
        self._call = call
        self._pause_s = pause_s

    def metadata(self) -> Metadata:
        return self._call.metadata()

    def deadline_ns(self) -> int:
        return self._call.deadline_ns()

    def when_done(self, callback: Callable[[], None]) -> None:
        self._call.when_done(callback)

    async def read(self) -> bytes | None:
        return await self._call.read()

    async def write(self, message: bytes) -> None:
        await sleep(self._pause_s)
        await self._call.write(message)
