"""Triton's variables for tests: they hold calls up, so that a test can act in the middle of one. In milliseconds where the name does not say SEC."""

from __future__ import annotations

import asyncio
import logging
from asyncio import sleep
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tritonpy_frontend_grpc.call import Call, InferCall, StreamingCall
from tritonpy_frontend_grpc.service import InferenceService

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tritonpy import TritonError
    from tritonpy_frontend_grpc.call import Metadata
    from tritonpy_frontend_grpc.stream import Stream
    from tritonpy_protos import Method

# The steps of Triton's state machine that follow one another here without a step of their own add up.
_ARRIVAL = ("TRITONSERVER_DELAY_GRPC_PROCESS_ENTRY", "TRITONSERVER_DELAY_GRPC_PROCESS")
_ANSWER = (
    "TRITONSERVER_DELAY_RESPONSE_COMPLETE_EXEC",
    "TRITONSERVER_DELAY_GRPC_ENQUEUE",
    "TRITONSERVER_DELAY_GRPC_COMPLETE",
    "TRITONSERVER_DELAY_RESPONSE_COMPLETION",
)
_WRITE = ("TRITONSERVER_DELAY_GRPC_RESPONSE",)
_MANAGEMENT = ("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC",)


class Delays(NamedTuple):
    """Seconds before an inference request is read, before its answer leaves, before a stream writes, and before a management call answers."""

    arrival_s: float
    answer_s: float
    write_s: float
    management_s: float


def delays_in(environment: Mapping[str, str], log: logging.Logger) -> Delays | None:
    """Return the delays that the variables ask for; None where there are none. A text that is no number is logged and counts as 0."""

    def total(names: tuple[str, ...]) -> float:
        return sum([_number(name, environment[name], log) for name in names if name in environment])

    delays = Delays(total(_ARRIVAL) / 1e3, total(_ANSWER) / 1e3, total(_WRITE) / 1e3, total(_MANAGEMENT))
    return delays if any(delays) else None


def _number(name: str, text: str, log: logging.Logger) -> int:
    try:
        return max(int(text), 0)
    except ValueError:
        log.error("Unable to parse the debug variable %s. Value provided: '%s' is not a valid integer.", name, text)
        return 0


def delayed_service(environment: Mapping[str, str], log: logging.Logger) -> type[InferenceService]:
    """Return the service to make: the plain one where nothing is to be held up."""
    delays = delays_in(environment, log)
    return InferenceService if delays is None else type("DelayedService", (DelayedService,), {"delays": delays})


class DelayedService(InferenceService):
    """The service with pauses; `delayed_service` gives it the delays."""

    delays: Delays

    def management(self, method: Method) -> Callable[[bytes, Call], Awaitable[Message]]:
        """Answer some time after the answer was there."""
        answer = super().management(method)

        async def delayed(raw: bytes, call: Call) -> Message:
            message = await answer(raw, call)
            await sleep(self.delays.management_s)
            return message

        return delayed

    def infer(self, raw: bytes, call: InferCall) -> None:
        """Read the message late, and answer late."""
        begun = asyncio.create_task(self._infer_later(raw, call))
        self._tasks.add(begun)
        begun.add_done_callback(self._tasks.discard)

    async def _infer_later(self, raw: bytes, call: InferCall) -> None:
        await sleep(self.delays.arrival_s)
        if not call.over:
            super().infer(raw, call)

    def _end(self, call: InferCall, answer: bytes | TritonError) -> None:
        ending = asyncio.create_task(self._end_later(call, answer))
        self._tasks.add(ending)
        ending.add_done_callback(self._tasks.discard)

    async def _end_later(self, call: InferCall, answer: bytes | TritonError) -> None:
        await sleep(self.delays.answer_s)
        super()._end(call, answer)

    async def stream(self, call: StreamingCall) -> None:
        """Write late."""
        await super().stream(_SlowlyWritten(call, self.delays.write_s))

    def _take(self, metadata: Metadata, stream: Stream, raw: bytes) -> Awaitable[None]:
        return self._take_later(metadata, stream, raw)

    async def _take_later(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        await sleep(self.delays.arrival_s)
        await (super()._take(metadata, stream, raw) or sleep(0))


class _SlowlyWritten(StreamingCall):
    """A call whose `write` takes its time."""

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
