"""Memory usage of a model version, summed over its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tritonpy.api.engine import MemoryUsage


def total_memory_usage(usages: Iterable[MemoryUsage]) -> list[MemoryUsage]:
    """Return one entry per kind of memory and device, sorted: CPU, CPU_PINNED, GPU."""
    totals: Counter[tuple[str, int]] = Counter()
    for usage in usages:
        totals[usage.type, usage.id] += usage.byte_size
    return [MemoryUsage(kind, device, totals[kind, device]) for kind, device in sorted(totals)]
