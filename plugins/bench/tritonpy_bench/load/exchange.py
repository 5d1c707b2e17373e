"""One request on its way, and what carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tritonpy_bench.load.jobs import Job


class Exchange:
    """A request and its times, in ns of the monotonic clock; `counted` is false while a loop warms up and when it ends."""

    __slots__ = ("between", "counted", "first", "intended", "job", "last", "noticed", "responses", "sent")

    def __init__(self, job: Job, intended: int, noticed: int, sent: int, counted: bool = True) -> None:
        self.job = job
        self.intended = intended
        self.noticed = noticed
        self.sent = sent
        self.counted = counted
        self.responses = 1
        self.first = 0
        self.last = 0
        self.between: list[int] | None = None

    def answered(self, now: int) -> None:
        """Note one answer of a stream, the last or one of many."""
        if self.between is None:
            self.responses = 0
            self.between = []
        else:
            self.between.append(now - self.last)
        self.first = self.first or now
        self.last = now
        self.responses += 1


class Lost(str):
    """The text of an error that says that there is no connection: who sends again should wait a little."""

    __slots__ = ()


class Carrier(ABC):
    """Takes one request at a time to the server. `number` is its place; `on_end` is called from the event loop, never from inside `send`."""

    number: int
    on_end: Callable[[Carrier, Exchange, str | None], None]
    """With None when it succeeded, or with the text of what went wrong."""

    async def open(self) -> None:
        """Connect (optional). Raises OSError."""

    @abstractmethod
    def send(self, exchange: Exchange) -> None:
        """Send a request; the one before has ended."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is in flight, without a word."""
