"""What this frontend adds to the trace of a request: when it came and when its answers went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from tritonpy import InferRequest, Trace, Tracer, now_ns

if TYPE_CHECKING:
    from tritonpy_frontend_grpc.call import Call


def sample(tracer: Tracer, request: InferRequest, metadata: Iterable[tuple[str, Any]], arrived_ns: int) -> Trace | None:
    """Put a trace into `request`, if it is chosen, and return it; `arrived_ns` is when its message was there."""
    known = {name: str(value) for name, value in metadata if name in tracer.headers} if tracer.headers else {}
    trace = request.trace = tracer.sample(request.model_name, known)
    if trace is not None:
        trace.stamp("GRPC_WAITREAD_START", arrived_ns)
        trace.stamp("GRPC_WAITREAD_END", request.received_ns)
    return trace


def end_with_call(trace: Trace, call: Call) -> None:
    """End the trace of a call with one answer when that was sent, or nobody waits for it any more."""

    def done() -> None:
        trace.stamp("GRPC_SEND_END")
        trace.end()

    call.when_done(done)


class StreamTrace:
    """The trace of one request of a stream: it ends when the last answer was sent. Used on the event loop only."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._unsent = 0
        self._complete = False

    def answered(self, *, sends: bool, final: bool) -> None:
        """Take note of an answer, which is sent unless it only says that there is nothing more."""
        self._unsent += sends
        self._complete = self._complete or final
        self._end_if_over()

    async def write(self, write: Callable[[bytes], Awaitable[None]], message: bytes) -> None:
        """Send an answer."""
        started = now_ns()
        try:
            await write(message)
        finally:
            self._unsent -= 1
            self._trace.stamp("GRPC_SEND_START", started)
            self._trace.stamp("GRPC_SEND_END")
            self._end_if_over()

    def abandon(self) -> None:
        """Take note that nothing of what waits will be sent."""
        self._unsent = 0
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._complete and self._unsent <= 0:
            self._trace.end()
