"""A Prometheus summary with count, sum and recent quantiles.

The prometheus-client package has summaries without quantiles.
"""

from __future__ import annotations

from collections import deque

from tritonpy.api.engine import SummarySnapshot
from tritonpy.config.server.latency_settings import Quantiles
from tritonpy.statistics.quantile_sketch import QuantileSketch

AGE_NS = 60_000_000_000
"""Quantiles cover the last minute, count and sum the whole time."""
SKETCHES = 5
ROTATION_NS = AGE_NS // SKETCHES
BUFFER = 500


class Summary:
    """A summary that buffers observations and sorts many at once. It is not thread-safe.

    Every sketch gets every value, and quantiles come from the oldest sketch. A rotation replaces it
    with an empty one, so that quantiles cover the last 48 to 60 s.
    """

    def __init__(self, quantiles: Quantiles, now_ns: int) -> None:
        self._quantiles = quantiles
        self._count = 0
        self._sum = 0
        self._buffer: list[int] = []
        self._sketches = deque(QuantileSketch(quantiles) for _ in range(SKETCHES))
        self._rotation_ns = now_ns + ROTATION_NS

    def observe(self, value: int, now_ns: int) -> None:
        """Record one value."""
        self._count += 1
        self._sum += value
        if now_ns >= self._rotation_ns or len(self._buffer) >= BUFFER:
            self._flush(now_ns)
        self._buffer.append(value)

    def snapshot(self, now_ns: int) -> SummarySnapshot:
        """Return count, sum and quantiles. A quantile without values is None."""
        self._flush(now_ns)
        oldest = self._sketches[0]
        return SummarySnapshot(self._count, self._sum, [(each, oldest.quantile(each)) for each in self._quantiles])

    def _flush(self, now_ns: int) -> None:
        self._buffer.sort()
        for sketch in self._sketches:
            sketch.add(self._buffer)
        self._buffer.clear()
        if now_ns < self._rotation_ns:
            return
        rotations = (now_ns - self._rotation_ns) // ROTATION_NS + 1
        self._rotation_ns += rotations * ROTATION_NS
        for _ in range(min(rotations, SKETCHES)):
            self._sketches.popleft()
            self._sketches.append(QuantileSketch(self._quantiles))
