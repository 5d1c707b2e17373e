"""Triton's variables for tests: they hold calls up, so that a test can act in the middle of one. In milliseconds where the name does not say SEC."""

from __future__ import annotations

import logging
from asyncio import sleep
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

from tritonpy import InferResponse
from tritonpy_frontend_grpc.service import Context, InferenceService
from tritonpy_frontend_grpc.stream import Stream
from tritonpy_protos import Method

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.access import Metadata

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

    def _management_handler(self, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
        handler = super()._management_handler(method)
        answer: Any = handler.unary_unary

        async def call(raw: bytes, context: Context) -> Any:
            message = await answer(raw, context)
            await sleep(self.delays.management_s)
            return message

        return grpc.unary_unary_rpc_method_handler(call, None, handler.response_serializer)

    async def _answer(self, raw: bytes, context: Context) -> InferResponse:
        await sleep(self.delays.arrival_s)
        response = await super()._answer(raw, context)
        await sleep(self.delays.answer_s)
        return response

    async def _stream(self, messages: object, context: Context) -> None:
        await super()._stream(messages, _SlowlyWritten(context, self.delays.write_s))  # type: ignore[arg-type]

    def _take(self, metadata: Metadata, stream: Stream, raw: bytes) -> Awaitable[None]:
        return self._take_later(metadata, stream, raw)

    async def _take_later(self, metadata: Metadata, stream: Stream, raw: bytes) -> None:
        await sleep(self.delays.arrival_s)
        await (super()._take(metadata, stream, raw) or sleep(0))


class _SlowlyWritten:
    """A call's context whose `write` takes its time."""

    def __init__(self, context: Context, pause_s: float) -> None:
        self._context = context
        self._pause_s = pause_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def write(self, message: bytes) -> None:
        await sleep(self._pause_s)
        await self._context.write(message)
