"""Time stamps that this frontend adds to the trace of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from tritonpy import InferRequest, now_ns
from tritonpy.tracing import Trace, Tracer

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import GrpcCall


def sample(
    tracer: Tracer, request: InferRequest, metadata: Iterable[tuple[str, Any]], arrived_ns: int
) -> Trace | None:
    """Set and return the trace of `request` if the tracer selects it.

    `arrived_ns` is the arrival time of the message.
    """
    known = (
        {name: str(value) for name, value in metadata if name in tracer.headers}
        if tracer.headers
        else {}
    )
    trace = request.trace = tracer.sample(request.model_name, known)
    if trace is not None:
        trace.stamp("GRPC_WAITREAD_START", arrived_ns)
        trace.stamp("GRPC_WAITREAD_END", request.received_ns)
    return trace


def end_with_call(trace: Trace, call: GrpcCall) -> None:
    """End the trace of a unary call when the call has ended."""

    def done() -> None:
        trace.stamp("GRPC_SEND_END")
        trace.end()

    call.when_done(done)


class StreamTrace:
    """The trace of one request of a stream, until its last response is sent. Event loop only."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._unsent = 0
        self._complete = False

    def record_response(self, *, sends: bool, final: bool) -> None:
        """Record a response; `sends` is False if no message is sent for it."""
        self._unsent += sends
        self._complete = self._complete or final
        self._end_if_over()

    async def write(self, write: Callable[[bytes], Awaitable[None]], message: bytes) -> None:
        """Send a response and record its times."""
        started = now_ns()
        try:
            await write(message)
        finally:
            self._unsent -= 1
            self._trace.stamp("GRPC_SEND_START", started)
            self._trace.stamp("GRPC_SEND_END")
            self._end_if_over()

    def abandon(self) -> None:
        """Record that the waiting responses will not be sent."""
        self._unsent = 0
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._complete and self._unsent <= 0:
            self._trace.end()
