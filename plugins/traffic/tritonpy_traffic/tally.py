"""What is counted of a route, for metrics and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field

from tritonpy_traffic.latencies import Latencies
from tritonpy_traffic.spec import Target


@dataclass(slots=True)
class Tally:
    """The answers of one target of one route since the server started; times of those that did not fail."""

    target: Target
    requests: int = 0
    failures: int = 0
    skipped: int = 0  # requests that another target got, because this one did not take them
    latencies: Latencies = field(default_factory=Latencies)
    missing: bool = False  # it did not take the last one

    def add(self, ns: int, failed: bool) -> None:
        """Take note of an answer."""
        self.requests += 1
        if failed:
            self.failures += 1
        else:
            self.latencies.add(ns)

    def shown(self) -> dict[str, object]:
        """Return it as plain JSON."""
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


class Tallies:
    """The tallies of one route, by target; they outlive changes of the route. The caller holds the route's lock."""

    def __init__(self) -> None:
        self._by_label: dict[str, Tally] = {}
        self.rollbacks = 0
        self.promotions = 0

    def of(self, target: Target) -> Tally:
        """Return the tally of `target`."""
        tally = self._by_label.get(target.label)
        if tally is None:
            tally = self._by_label[target.label] = Tally(Target(target.model, target.version))
        return tally

    def all(self) -> list[Tally]:
        """Return all of them."""
        return list(self._by_label.values())
