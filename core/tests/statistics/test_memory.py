from __future__ import annotations

from tritonpy.api.engine import MemoryUsage
from tritonpy.statistics.memory import summed


def test_there_is_one_entry_per_kind_and_device_in_the_order_of_both() -> None:
    usages = [
        MemoryUsage("GPU", 1, 1),
        MemoryUsage("CPU", 0, 20),
        MemoryUsage("GPU", 0, 300),
        MemoryUsage("CPU_PINNED", 0, 4000),
        MemoryUsage("GPU", 1, 50000),
    ]
    assert summed(usages) == [
        MemoryUsage("CPU", 0, 20),
        MemoryUsage("CPU_PINNED", 0, 4000),
        MemoryUsage("GPU", 0, 300),
        MemoryUsage("GPU", 1, 50001),
    ]


def test_what_is_told_is_not_changed() -> None:
    usages = [MemoryUsage("CPU", 0, 1), MemoryUsage("CPU", 0, 2)]
    assert summed(usages) == [MemoryUsage("CPU", 0, 3)]
    assert usages == [MemoryUsage("CPU", 0, 1), MemoryUsage("CPU", 0, 2)]
    assert summed([]) == []
