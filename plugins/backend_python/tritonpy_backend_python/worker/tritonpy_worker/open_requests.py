"""What must be known of received requests until their final answer, beside the objects that the model holds."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from .ipc import Frame
from .ipc.windows import Windows

NULL_REQUEST = -1
"""The number of requests that no client made, and whose answers go nowhere."""


class OpenRequests:
    """Facts by request number; each method is safe in any thread. Those that had an answer which was not final have a window."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.cancelled: set[int] = set()
        self._left: set[int] = set()  # without a final answer when `execute` returned
        self._traces: dict[int, str] = {}

    def cancel(self, frame: Frame) -> None:
        """Take note of requests that nobody waits for any more."""
        self.cancelled.update(frame.words)

    def is_cancelled(self, number: int) -> bool:
        """Say whether the client gave it up."""
        return number in self.cancelled

    def leave(self, number: int) -> None:
        """Take note that `execute` returned without a final answer."""
        self._left.add(number)

    def begin(self, number: int) -> None:
        """Take note of an answer that was not final."""
        self.windows.begin(number)

    def has_begun(self, number: int) -> bool:
        """Say whether it had an answer."""
        return number in self.windows

    def trace(self, number: int, context: str) -> None:
        """Take note of the trace that the client propagated."""
        self._traces[number] = context

    def trace_of(self, number: int) -> str | None:
        """Return it."""
        return self._traces.get(number)

    def __bool__(self) -> bool:
        """Whether anything is known of any request."""
        return bool(self.cancelled or self._left or self.windows or self._traces)

    def end(self, numbers: Iterable[int]) -> None:
        """Forget requests that have their final answer."""
        for number in numbers:
            self.cancelled.discard(number)
            self._left.discard(number)
            self.windows.end(number)
            self._traces.pop(number, None)

    def tidy(self, waiting: Sized) -> None:
        """Forget cancellations that came too late; `waiting` are the executions that have not begun."""
        late = self.cancelled - self._left
        if late and not waiting:  # in this order: a request comes before its cancellation
            self.cancelled -= late
