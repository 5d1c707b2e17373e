"""What must be known of received requests until their final answer, beside the objects that the model holds."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from .ipc import Frame


class OpenRequests:
    """Facts by request number; each method is safe in any thread."""

    def __init__(self) -> None:
        self._cancelled: set[int] = set()
        self._left: set[int] = set()  # without a final answer when `execute` returned
        self._begun: set[int] = set()  # had an answer that was not final
        self._traces: dict[int, str] = {}

    def cancel(self, frame: Frame) -> None:
        """Take note of requests that nobody waits for any more."""
        self._cancelled.update(frame.words)

    def is_cancelled(self, number: int) -> bool:
        """Say whether the client gave it up."""
        return number in self._cancelled

    def leave(self, number: int) -> None:
        """Take note that `execute` returned without a final answer."""
        self._left.add(number)

    def begin(self, number: int) -> None:
        """Take note of an answer that was not final."""
        self._begun.add(number)

    def has_begun(self, number: int) -> bool:
        """Say whether it had an answer."""
        return number in self._begun

    def trace(self, number: int, context: str) -> None:
        """Take note of the trace that the client propagated."""
        self._traces[number] = context

    def trace_of(self, number: int) -> str | None:
        """Return it."""
        return self._traces.get(number)

    def __bool__(self) -> bool:
        """Whether anything is known of any request."""
        return bool(self._cancelled or self._left or self._begun or self._traces)

    def end(self, numbers: Iterable[int]) -> None:
        """Forget requests that have their final answer."""
        for number in numbers:
            self._cancelled.discard(number)
            self._left.discard(number)
            self._begun.discard(number)
            self._traces.pop(number, None)

    def tidy(self, waiting: Sized) -> None:
        """Forget cancellations that came too late; `waiting` are the executions that have not begun."""
        late = self._cancelled - self._left
        if late and not waiting:  # in this order: a request comes before its cancellation
            self._cancelled -= late
