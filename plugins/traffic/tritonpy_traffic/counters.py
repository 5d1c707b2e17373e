"""Counters of routes for metrics and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field

from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.spec import Target


@dataclass(slots=True)
class TargetCounters:
    """Counts the responses of one target of a route since server start.

    `latencies` are those of successful responses.
    """

    target: Target
    requests: int = 0
    failures: int = 0
    skipped: int = 0  # requests that another target received instead
    latencies: Latencies = field(default_factory=Latencies)
    missing: bool = False  # the last request was skipped because the target is not ready

    def add(self, ns: int, failed: bool) -> None:
        """Record a response."""
        self.requests += 1
        if failed:
            self.failures += 1
        else:
            self.latencies.add(ns)

    def to_json(self) -> dict[str, object]:
        """Return the counters as plain JSON."""
        times = self.latencies
        return {
            "model": self.target.model,
            "version": self.target.version,
            "requests": self.requests,
            "failures": self.failures,
            "skipped": self.skipped,
            "mean_ms": round(times.sum_ns / times.count / 1e6, 3) if times.count else None,
            "p50_ms": round(times.quantile(0.5) / 1e6, 3) if times.count else None,
            "p95_ms": round(times.quantile(0.95) / 1e6, 3) if times.count else None,
        }


class RouteCounters:
    """Counters of one route by target.

    They outlive changes of the route. The caller holds its lock.
    """

    def __init__(self) -> None:
        self._by_label: dict[str, TargetCounters] = {}
        self.rollbacks = 0
        self.promotions = 0

    def of(self, target: Target) -> TargetCounters:
        """Return the counters of `target`."""
        target_counters = self._by_label.get(target.label)
        if target_counters is None:
            target_counters = self._by_label[target.label] = TargetCounters(
                Target(target.model, target.version)
            )
        return target_counters

    def all(self) -> list[TargetCounters]:
        """Return the counters of all targets."""
        return list(self._by_label.values())
