"""What closed and open loops share: a budget of requests, errors that are waited out, and an orderly end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tritonpy_bench.load.exchange import Carrier, Exchange, Lost
from tritonpy_bench.load.jobs import Jobs
from tritonpy_bench.load.ledger import Ledger

PAUSE_S = 0.1
"""How long a place rests after its connection was lost: a server that is gone is not hammered."""


class Budget:
    """How many requests are made: `warmup` that are not counted, then `limit` (None: as many as there is time for)."""

    def __init__(self, warmup: int = 0, limit: int | None = None) -> None:
        self._warmup = warmup
        self._left = None if limit is None else warmup + limit
        self._begun = self._ended = 0

    @property
    def spent(self) -> bool:
        """No more may begin."""
        return self.spent_with(0)

    def spent_with(self, more: int) -> bool:
        """No more may begin, when `more` beside those that did will."""
        return self._left is not None and self._begun + more >= self._left

    @property
    def warming(self) -> bool:
        """Some that are not counted have not ended."""
        return self._ended < self._warmup

    def begin(self) -> bool:
        """Take one; return whether it counts."""
        self._begun += 1
        return self._begun > self._warmup

    def end(self, counted: bool) -> None:
        """Note an end."""
        self._ended += not counted


class Loop(ABC):
    """Sends requests by its carriers, one in flight on each. `later(seconds, call)` is the event loop's timer.

    Times come from `clock` (ns). Subclasses decide when a carrier that is free sends again.
    """

    def __init__(
        self,
        carriers: Sequence[Carrier],
        jobs: Jobs,
        ledger: Ledger,
        budget: Budget,
        clock: Callable[[], int],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._carriers = carriers
        self._jobs = jobs
        self._ledger = ledger
        self._budget = budget
        self._clock = clock
        self._later = later
        self._stopping = False
        self._on_quiet: Callable[[], None] | None = None
        for carrier in carriers:
            carrier.on_end = self._ended

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def _free(self, carrier: Carrier) -> None:
        """Give a carrier that has nothing in flight its next request, or let it rest."""

    @property
    def warming(self) -> bool:
        """Requests that are not counted are under way."""
        return self._budget.warming

    @property
    def finished(self) -> bool:
        """All requests of the budget were made and have ended."""
        return self._budget.spent and not self._ledger.in_flight

    def stop(self, on_quiet: Callable[[], None]) -> None:
        """Begin no more, but for the last request of each open sequence; `on_quiet` is called when nothing is in flight any more."""
        self._stopping = True
        self._on_quiet = on_quiet
        self._end_open()
        self._tell_quiet()

    def _end_open(self) -> None:
        """End what carriers that are idle have open; the busy ones are told to when they are free."""

    def _send(self, carrier: Carrier, intended: int | None = None, noticed: int | None = None) -> None:
        """Send the place's next request; it was due at `intended`, which was seen at `noticed` (default of both: now)."""
        counted = self._budget.begin()
        job = self._jobs.take(carrier.number)
        now = self._clock()
        exchange = Exchange(
            job, now if intended is None else intended, now if noticed is None else noticed, now, counted
        )
        self._ledger.began(exchange)
        carrier.send(exchange)

    def _close(self, carrier: Carrier) -> None:
        """End what the carrier's place has open."""
        job = self._jobs.closing(carrier.number)
        if job is not None:
            now = self._clock()
            exchange = Exchange(job, now, now, now, counted=False)
            self._ledger.began(exchange)
            carrier.send(exchange)

    def _ended(self, carrier: Carrier, exchange: Exchange, error: str | None) -> None:
        self._ledger.ended(exchange, error)
        if not self._stopping:
            self._budget.end(exchange.counted)
        if isinstance(error, Lost):
            self._later(PAUSE_S, lambda: self._free(carrier))
        else:
            self._free(carrier)
        self._tell_quiet()

    def _tell_quiet(self) -> None:
        if self._on_quiet is not None and not self._ledger.in_flight:
            self._on_quiet()
