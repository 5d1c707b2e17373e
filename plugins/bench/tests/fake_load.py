"""A clock, a timer and carriers that a test moves by hand."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy_bench.load.exchange import Carrier, Exchange
from tritonpy_bench.load.ledger import Ledger
from tritonpy_bench.load.process_clocks import Spent


class FakeTime:
    """`now` in ns; what was to be called at a time is called when `advance` passes it."""

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


class FakeCarrier(Carrier):
    """Keeps what it was given until the test answers."""

    def __init__(self, number: int, log: list[FakeCarrier]) -> None:
        self.number = number
        self.exchange: Exchange | None = None
        self._log = log

    def send(self, exchange: Exchange) -> None:
        assert self.exchange is None, "two requests on one carrier"
        self.exchange = exchange
        self._log.append(self)

    def answer(self, error: str | None = None) -> None:
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        self.on_end(self, exchange, error)

    def close(self) -> None:
        self.exchange = None


class World:
    """So many carriers; `sent` are those that were used, in order."""

    def __init__(self, carriers: int) -> None:
        self.time = FakeTime()
        self.sent: list[FakeCarrier] = []
        self.carriers = [FakeCarrier(number, self.sent) for number in range(carriers)]
        self.ledger = Ledger(self.time.clock, lambda: Spent(0, 0))

    @property
    def busy(self) -> list[FakeCarrier]:
        return [carrier for carrier in self.carriers if carrier.exchange is not None]

    def take(self):
        return self.ledger.take(warming=False, finished=False)
