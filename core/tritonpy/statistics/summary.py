"""Count, sum and recent quantiles of what was observed: Prometheus' summary, which prometheus-client has without its quantiles."""

from __future__ import annotations

from collections import deque

from tritonpy.api.engine import SummarySnapshot
from tritonpy.config.server.latency_settings import Quantiles
from tritonpy.statistics.sketch import Sketch

AGE_NS = 60_000_000_000
"""Quantiles speak of the last minute, count and sum of all time."""
SKETCHES = 5
TURN_NS = AGE_NS // SKETCHES
BUFFER = 500


class Summary:
    """Takes an observation for the price of an append; sorting is done for many at once. Not thread-safe.

    Every sketch gets every value. At each turn the oldest one, which the quantiles are read from, gives way to an empty one: they are those of
    the last 48 to 60 s.
    """

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._quantiles = quantiles
        self._count = 0
        self._sum = 0
        self._buffer: list[int] = []
        self._sketches = deque(Sketch(quantiles) for _ in range(SKETCHES))
        self._turn_ns = now_ns + TURN_NS

    def observe(self, value: int, now_ns: int) -> None:
        """Take note of one value."""
        self._count += 1
        self._sum += value
        if now_ns >= self._turn_ns or len(self._buffer) >= BUFFER:
            self._settle(now_ns)
        self._buffer.append(value)

    def snapshot(self, now_ns: int) -> SummarySnapshot:
        """Return what there is; a quantile of nothing is None."""
        self._settle(now_ns)
        oldest = self._sketches[0]
        return SummarySnapshot(self._count, self._sum, [(each, oldest.quantile(each)) for each in self._quantiles])

    def _settle(self, now_ns: int) -> None:
        self._buffer.sort()
        for sketch in self._sketches:
            sketch.add(self._buffer)
        self._buffer.clear()
        if now_ns < self._turn_ns:
            return
        turns = (now_ns - self._turn_ns) // TURN_NS + 1
        self._turn_ns += turns * TURN_NS
        for _ in range(min(turns, SKETCHES)):
            self._sketches.popleft()
            self._sketches.append(Sketch(self._quantiles))
