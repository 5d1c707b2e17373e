from __future__ import annotations

from tritonpy_residency.capacity_errors import capacity_error_text
from tritonpy_residency.eviction import ResidentModel
from tritonpy_residency.sizes import MemoryLimits

MIB = 1 << 20


def test_the_text_has_the_numbers_of_each_exceeded_limit():
    residents = [
        ResidentModel("idle", {"cpu": 2 * MIB}),
        ResidentModel("busy", {"cpu": 3 * MIB, "0": 4 * MIB}, idle=False),
        ResidentModel("pinned", {"cpu": MIB}, permanent=True),
    ]
    text = capacity_error_text(
        residents,
        {"cpu": MIB},
        {"cpu": 6 * MIB, "0": MIB},
        MemoryLimits(16 * MIB, {"cpu": 8 * MIB, "0": 8 * MIB}),
    )
    assert text == (
        "it needs 6.0 MiB of cpu and 1.0 MiB of GPU 0, and the memory budget is 16.0 MiB, of which 11.0 MiB are held "
        "(2.0 MiB by idle models that can be evicted, 1.0 MiB by models that cannot); the memory budget of cpu is 8.0 MiB, of which 7.0 MiB are held "
        "(2.0 MiB by idle models that can be evicted, 1.0 MiB by models that cannot)"
    )


def test_without_demand_the_text_says_how_much_is_held():
    assert capacity_error_text(
        [ResidentModel("a", {"cpu": 3 * MIB})], {}, {}, MemoryLimits(2 * MIB)
    ).startswith("the memory budget is 2.0 MiB")
