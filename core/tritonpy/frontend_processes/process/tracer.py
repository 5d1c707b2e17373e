"""The tracer of a frontend process: the engine's process chooses, this one notes until it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tritonpy.api.tracer import Tracer
from tritonpy.frontend_processes.requests_frame import TraceSaid
from tritonpy.frontend_processes.start import TracerState
from tritonpy.types import InferRequest, Trace, TraceFamily, TraceLevel


class _Followed:
    """The state of a trace: how many of its notes are told, whose they are once the engine chose it, and whether it ended."""

    __slots__ = ("ended", "number", "told")

    def __init__(self) -> None:
        self.number = 0
        self.told = 0
        self.ended = False


class FrontendTracer(Tracer):
    """Notes moments of every request while any may be traced; `tell(number, stamps)` gets those of a chosen one when it ends."""

    def __init__(self, state: TracerState, tell: Callable[[int, list[tuple[str, int]]], None]) -> None:
        self._tell = tell
        self.follow(state)

    def follow(self, state: TracerState) -> None:
        """Take note that the settings have changed."""
        self.active, self.headers = state.active, state.headers

    def sample(self, model_name: str, headers: Mapping[str, str]) -> Trace | None:
        family = TraceFamily(TraceLevel.TIMESTAMPS, None, dict(headers), _begun, self._ended)
        family.state = _Followed()
        return family.trace()

    def begun(self, _number: int, request: InferRequest) -> TraceSaid:
        """Return what the engine's process is to know of a request."""
        family = request.trace.family
        stamps = _stamps(family)
        family.state.told = len(stamps)
        return TraceSaid(family.caller, stamps)

    def answered(self, number: int, trace: Trace, chosen: bool) -> None:
        """Take note of the final answer, which says whether the request is traced."""
        followed: _Followed = trace.family.state
        if chosen:
            followed.number = number
            if followed.ended:
                self._tell_rest(trace.family)

    def _ended(self, family: TraceFamily) -> None:
        family.state.ended = True
        if family.state.number:
            self._tell_rest(family)

    def _tell_rest(self, family: TraceFamily) -> None:
        self._tell(family.state.number, _stamps(family)[family.state.told :])


def _begun(_trace: Trace) -> None:
    """Models take requests elsewhere."""


def _stamps(family: TraceFamily) -> list[tuple[str, int]]:
    return [(stamp.name, stamp.ns) for stamp in family.traces[0].stamps()]
