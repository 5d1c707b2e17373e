"""A fake clock, timer and senders that a test controls."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy_load_generator.loops.exchange import Exchange, RequestSender
from tritonpy_load_generator.loops.process_clocks import ProcessClocks
from tritonpy_load_generator.loops.request_recorder import RequestRecorder


class FakeTime:
    """A clock whose time is `now` in ns; `advance` calls the due timers."""

    def __init__(self) -> None:
        self.now = 0
        self.set: list[tuple[int, Callable[[], None]]] = []

    def clock(self) -> int:
        return self.now

    def at(self, due: int, call: Callable[[], None]) -> None:
        self.set.append((due, call))

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.at(self.now + round(seconds * 1e9), call)

    def advance(self, until: int) -> None:
        while due := [entry for entry in self.set if entry[0] <= until]:
            entry = min(due, key=lambda each: each[0])
            self.set.remove(entry)
            self.now = max(self.now, entry[0])
            entry[1]()
        self.now = until


class FakeCarrier(RequestSender):
    """Holds its request until the test responds."""

    def __init__(self, number: int, log: list[FakeCarrier]) -> None:
        self.number = number
        self.exchange: Exchange | None = None
        self._log = log

    def send(self, exchange: Exchange) -> None:
        assert self.exchange is None, "two requests on one carrier"
        self.exchange = exchange
        self._log.append(self)

    def respond(self, error: str | None = None) -> None:
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        self.on_end(self, exchange, error)

    def close(self) -> None:
        self.exchange = None


class LoopHarness:
    """A loop's clock, recorder and senders; `sent` has the senders in the order of use."""

    def __init__(self, senders: int) -> None:
        self.time = FakeTime()
        self.sent: list[FakeCarrier] = []
        self.senders = [FakeCarrier(number, self.sent) for number in range(senders)]
        self.recorder = RequestRecorder(self.time.clock, lambda: ProcessClocks(0, 0))

    @property
    def busy(self) -> list[FakeCarrier]:
        return [sender for sender in self.senders if sender.exchange is not None]

    def take_snapshot(self):
        return self.recorder.take_snapshot(warming=False, finished=False)
