"""Triton's pool of pinned host memory: dashboards ask for it, and this server keeps none."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector


class PinnedMemoryCollector(Collector):
    """Yields the families of a pool of no bytes: frameworks pin what they copy to their GPUs themselves."""

    def collect(self) -> Iterator[Metric]:
        """Yield total and used bytes."""
        for what in ("total", "used"):
            name = f"nv_pinned_memory_pool_{what}_bytes"
            metric = Metric(name, f"Pinned host memory in the server's pool ({what}), in bytes", "gauge")
            metric.add_sample(name, {}, 0)
            yield metric
