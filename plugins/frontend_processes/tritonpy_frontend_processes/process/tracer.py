"""The tracer of a frontend process.

The engine's process chooses the traced requests. This process notes time stamps until it knows the
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonpy import InferRequest
from tritonpy.tracing import Trace, TraceFamily, TraceLevel, Tracer
from tritonpy_frontend_processes.requests_frame import TraceMessage
from tritonpy_frontend_processes.start_message import TracerState


class _TraceState:
    """The state of a trace.

    It has the number of time stamps that were sent, the request's number once the engine has chosen
    it, and whether it ended.
    """

    __slots__ = ("ended", "number", "sent")

    def __init__(self) -> None:
        self.number = 0
        self.sent = 0
        self.ended = False


class FrontendTracer(Tracer):
    """Notes time stamps of every request while any request may be traced.

    `notify(number, stamps)` is called with the time stamps of a chosen request when it ends.
    """

    def __init__(
        self, state: TracerState, notify: Callable[[int, list[tuple[str, int]]], None]
    ) -> None:
        self._notify = notify
        self.follow(state)

    def follow(self, state: TracerState) -> None:
        """Apply changed settings."""
        self.active, self.headers = state.active, state.headers

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        family = TraceFamily(
            TraceLevel.TIMESTAMPS, None, dict(headers), _trace_started, self._ended
        )
        family.state = _TraceState()
        return family.trace()

    def trace_message(self, _number: int, request: InferRequest) -> TraceMessage:
        """Return the trace data for the engine's process."""
        family = request.trace.family
        stamps = _stamps(family)
        family.state.sent = len(stamps)
        return TraceMessage(family.caller, stamps)

    def final_response(self, number: int, trace: Trace, chosen: bool) -> None:
        """Handle the final response, which shows whether the request is traced."""
        followed: _TraceState = trace.family.state
        if chosen:
            followed.number = number
            if followed.ended:
                self._send_rest(trace.family)

    def _ended(self, family: TraceFamily) -> None:
        family.state.ended = True
        if family.state.number:
            self._send_rest(family)

    def _send_rest(self, family: TraceFamily) -> None:
        self._notify(family.state.number, _stamps(family)[family.state.sent :])


def _trace_started(_trace: Trace) -> None:
    """Do nothing: models accept requests in the engine's process."""


def _stamps(family: TraceFamily) -> list[tuple[str, int]]:
    return [(stamp.name, stamp.ns) for stamp in family.traces[0].stamps()]
