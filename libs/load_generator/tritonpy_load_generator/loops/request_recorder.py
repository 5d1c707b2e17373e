"""Recording of a client process's requests between snapshots."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable

import numpy as np

from tritonpy_load_generator.figures.histogram import LatencyHistogram, make_histogram
from tritonpy_load_generator.figures.snapshot import Snapshot
from tritonpy_load_generator.loops.exchange import Exchange
from tritonpy_load_generator.loops.process_clocks import ProcessClocks

_OTHERS = "other errors"
_MAX_ERROR_TEXTS = 100


class RequestRecorder:
    """Records durations and returns them as histograms per span.

    `clock` is the monotonic clock in ns, and `read_clocks` returns the CPU times of the process.
    The first span starts at `since` (default: now).
    """

    def __init__(
        self,
        clock: Callable[[], int],
        read_clocks: Callable[[], ProcessClocks],
        since: int | None = None,
    ) -> None:
        self._clock = clock
        self._read_clocks = read_clocks
        self._open: dict[Exchange, None] = {}
        self._unsent_since: Callable[[], tuple[int, int | None]] = lambda: (0, None)
        self._begin(clock() if since is None else since)
        self._counting = False
        self._last_end = self._since

    def _begin(self, since: int) -> None:
        self._since, self._clocks_before = since, self._read_clocks()
        self._durations = {
            name: array("q")
            for name in ("latency", "service", "late", "waited", "first", "between")
        }
        self._latency = self._durations["latency"].append
        self._service = self._durations["service"].append
        self._late = self._durations["late"].append
        self._waited = self._durations["waited"].append
        self._errors: Counter[str] = Counter()
        self._started = self._responses = 0

    def watch_unsent(self, read_unsent: Callable[[], tuple[int, int | None]]) -> None:
        """Set the function that returns the number of due, unsent requests and the oldest time."""
        self._unsent_since = read_unsent

    def request_started(self, exchange: Exchange) -> None:
        """Record the start of a request."""
        self._open[exchange] = None
        if exchange.counted:
            if not self._counting:  # the warm-up before it is not part of the span
                self._counting, self._since = True, max(self._since, exchange.intended)
            self._started += 1
            self._late(exchange.noticed - exchange.intended)
            self._waited(exchange.sent - exchange.noticed)

    def request_ended(self, exchange: Exchange, error: str | None) -> None:
        """Record the end of a request; `error` is None on success."""
        del self._open[exchange]
        if not exchange.counted:
            return
        now = self._last_end = self._clock()
        if error is not None:
            self._errors[
                error if error in self._errors or len(self._errors) < _MAX_ERROR_TEXTS else _OTHERS
            ] += 1
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
        """The number of requests in flight."""
        return len(self._open)

    def take_snapshot(self, warming: bool, finished: bool) -> Snapshot:
        """Return the counts since the previous snapshot and start the next span.

        If the loop is `finished`, the span ends with the last request.
        """
        now, clocks = self._clock(), self._read_clocks()
        cpu, starved = (
            clocks.cpu - self._clocks_before.cpu,
            clocks.starved - self._clocks_before.starved,
        )
        end = self._last_end if finished else now
        unsent, waiting_since = self._unsent_since()
        started = [next(iter(self._open)).intended] if self._open else []
        oldest = min(started + ([] if waiting_since is None else [waiting_since]), default=now)
        taken = Snapshot(
            begin_ns=self._since,
            end_ns=max(end, self._since),
            **{name: _make_histogram(values) for name, values in self._durations.items()},
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


def _make_histogram(values: array[int]) -> LatencyHistogram:
    return make_histogram(np.frombuffer(values, np.int64) if values else ())
