"""What a client process notes of its requests, between one look and the next."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable

import numpy as np

from tritonpy_bench.figures.histogram import Histogram, histogram
from tritonpy_bench.figures.snapshot import Snapshot
from tritonpy_bench.load.exchange import Exchange
from tritonpy_bench.load.process_clocks import Spent

_OTHERS = "other errors"
_MOST_TEXTS = 100


class Ledger:
    """Durations as they come; `take` makes histograms of them and begins anew. Times in ns, `clock` is the monotonic one,
    `spent` tells what the process costs.

    The first span begins at `since` (default: now).
    """

    def __init__(self, clock: Callable[[], int], spent: Callable[[], Spent], since: int | None = None) -> None:
        self._clock = clock
        self._spent = spent
        self._open: dict[Exchange, None] = {}
        self._unsent_since: Callable[[], tuple[int, int | None]] = lambda: (0, None)
        self._begin(clock() if since is None else since)
        self._counting = False
        self._last_end = self._since

    def _begin(self, since: int) -> None:
        self._since, self._spent_before = since, self._spent()
        self._durations = {name: array("q") for name in ("latency", "service", "late", "waited", "first", "between")}
        self._latency = self._durations["latency"].append
        self._service = self._durations["service"].append
        self._late = self._durations["late"].append
        self._waited = self._durations["waited"].append
        self._errors: Counter[str] = Counter()
        self._started = self._responses = 0

    def watch_unsent(self, look: Callable[[], tuple[int, int | None]]) -> None:
        """Have `look` tell how many requests are due and not sent, and when the oldest of them was to start."""
        self._unsent_since = look

    def began(self, exchange: Exchange) -> None:
        """Note a request that goes out."""
        self._open[exchange] = None
        if exchange.counted:
            if not self._counting:  # what came before was to warm up, and its time does not count
                self._counting, self._since = True, max(self._since, exchange.intended)
            self._started += 1
            self._late(exchange.noticed - exchange.intended)
            self._waited(exchange.sent - exchange.noticed)

    def ended(self, exchange: Exchange, error: str | None) -> None:
        """Note its end; `error` None is success."""
        del self._open[exchange]
        if not exchange.counted:
            return
        now = self._last_end = self._clock()
        if error is not None:
            self._errors[error if error in self._errors or len(self._errors) < _MOST_TEXTS else _OTHERS] += 1
            return
        self._latency(now - exchange.intended)
        self._service(now - exchange.sent)
        self._responses += exchange.responses
        if exchange.between is not None:
            if exchange.first:
                self._durations["first"].append(exchange.first - exchange.sent)
            self._durations["between"].extend(exchange.between)

    @property
    def in_flight(self) -> int:
        """How many requests are unanswered."""
        return len(self._open)

    def take(self, warming: bool, finished: bool) -> Snapshot:
        """Return what was noted since the last look; where all is `finished`, the span ends with the last request."""
        now, spent = self._clock(), self._spent()
        cpu, starved = spent.cpu - self._spent_before.cpu, spent.starved - self._spent_before.starved
        end = self._last_end if finished else now
        unsent, waiting_since = self._unsent_since()
        begun = [next(iter(self._open)).intended] if self._open else []
        oldest = min(begun + ([] if waiting_since is None else [waiting_since]), default=now)
        taken = Snapshot(
            begin_ns=self._since,
            end_ns=max(end, self._since),
            **{name: _counted(values) for name, values in self._durations.items()},
            started=self._started,
            succeeded=len(self._durations["latency"]),
            responses=self._responses,
            errors=dict(self._errors),
            cpu_ns=cpu,
            busiest=cpu / max(end - self._since, 1),
            starved=min(starved / max(end - self._since, 1), 1.0),
            in_flight=len(self._open),
            oldest_ns=max(now - oldest, 0),
            unsent=unsent,
            warming=warming,
            finished=finished,
        )
        self._begin(now)
        return taken


def _counted(values: array[int]) -> Histogram:
    return histogram(np.frombuffer(values, np.int64) if values else ())
