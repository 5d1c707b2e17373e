from __future__ import annotations

from tritonpy.api.engine import MemoryUsage
from tritonpy.statistics.memory import total_memory_usage


def test_entries_are_per_kind_and_device_and_sorted() -> None:
    usages = [
        MemoryUsage("GPU", 1, 1),
        MemoryUsage("CPU", 0, 20),
        MemoryUsage("GPU", 0, 300),
        MemoryUsage("CPU_PINNED", 0, 4000),
        MemoryUsage("GPU", 1, 50000),
    ]
    assert total_memory_usage(usages) == [
        MemoryUsage("CPU", 0, 20),
        MemoryUsage("CPU_PINNED", 0, 4000),
        MemoryUsage("GPU", 0, 300),
        MemoryUsage("GPU", 1, 50001),
    ]


def test_the_given_usages_do_not_change() -> None:
    usages = [MemoryUsage("CPU", 0, 1), MemoryUsage("CPU", 0, 2)]
    assert total_memory_usage(usages) == [MemoryUsage("CPU", 0, 3)]
    assert usages == [MemoryUsage("CPU", 0, 1), MemoryUsage("CPU", 0, 2)]
    assert total_memory_usage([]) == []
