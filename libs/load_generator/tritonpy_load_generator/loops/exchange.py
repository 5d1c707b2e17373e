"""A request in flight with its times, and the interface of request senders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tritonpy_load_generator.loops.jobs import Job


class Exchange:
    """A request and its times in ns of the monotonic clock.

    `counted` is false for requests of the warm-up and those that only end a sequence.
    """

    __slots__ = (
        "between",
        "counted",
        "first",
        "intended",
        "job",
        "last",
        "noticed",
        "responses",
        "sent",
    )

    def __init__(
        self, job: Job, intended: int, noticed: int, sent: int, counted: bool = True
    ) -> None:
        self.job = job
        self.intended = intended
        self.noticed = noticed
        self.sent = sent
        self.counted = counted
        self.responses = 1
        self.first = 0
        self.last = 0
        self.between: list[int] | None = None

    def add_response(self, now: int) -> None:
        """Record one response of a stream, received at `now`."""
        if self.between is None:
            self.responses = 0
            self.between = []
        else:
            self.between.append(now - self.last)
        self.first = self.first or now
        self.last = now
        self.responses += 1


class LostConnection(str):
    """An error text for a missing connection: the sender pauses before the next request."""

    __slots__ = ()


class RequestSender(ABC):
    """Sends one request at a time to the server; `number` is its slot.

    `on_end` is called from the event loop, never from within `send`.
    """

    number: int
    on_end: Callable[[RequestSender, Exchange, str | None], None]
    """Called with None if the request succeeded, else with the error text."""

    async def open(self) -> None:
        """Connect (optional). Raises OSError."""

    @abstractmethod
    def send(self, exchange: Exchange) -> None:
        """Send a request; the previous one has ended."""

    @abstractmethod
    def close(self) -> None:
        """Cancel the request in flight without calling `on_end`."""
