"""The runtime's own state of received requests, until their final response."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from .ipc import Frame
from .ipc.windows import Windows

NULL_REQUEST = -1
"""The number of null requests, whose responses are discarded."""


class InflightRequests:
    """The state of each request, by number. Thread-safe.

    A request has a window from its first response on, if that is not final.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.cancelled: set[int] = set()
        # Requests without a final response when `execute` returned.
        self._unfinished: set[int] = set()
        self._traces: dict[int, str] = {}

    def cancel(self, frame: Frame) -> None:
        """Record cancelled requests."""
        self.cancelled.update(frame.words)

    def is_cancelled(self, number: int) -> bool:
        """Return true if the request was cancelled."""
        return number in self.cancelled

    def mark_unfinished(self, number: int) -> None:
        """Record that `execute` returned without the request's final response."""
        self._unfinished.add(number)

    def begin(self, number: int) -> None:
        """Record a response that was not final."""
        self.windows.begin(number)

    def has_begun(self, number: int) -> bool:
        """Return true if the request had a response."""
        return number in self.windows

    def trace(self, number: int, context: str) -> None:
        """Record the client's trace context of a request."""
        self._traces[number] = context

    def trace_of(self, number: int) -> str | None:
        """Return the trace context of a request, or None."""
        return self._traces.get(number)

    def __bool__(self) -> bool:
        """Return true if any state is recorded."""
        return bool(self.cancelled or self._unfinished or self.windows or self._traces)

    def end(self, numbers: Iterable[int]) -> None:
        """Remove requests that had their final response."""
        for number in numbers:
            self.cancelled.discard(number)
            self._unfinished.discard(number)
            self.windows.end(number)
            self._traces.pop(number, None)

    def tidy(self, waiting: Sized) -> None:
        """Remove cancellations that arrived after the final response of their request.

        `waiting` are the executions that have not started.
        """
        late = self.cancelled - self._unfinished
        if late and not waiting:  # a request always arrives before its cancellation
            self.cancelled -= late
