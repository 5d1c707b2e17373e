from __future__ import annotations

from tritonpy.repository.budget.eviction import Resident
from tritonpy.repository.budget.no_room import refusal
from tritonpy.repository.budget.sizes import Limits

MIB = 1 << 20


def test_the_text_has_each_bound_that_is_too_low_with_all_its_numbers():
    residents = [
        Resident("idle", {"cpu": 2 * MIB}),
        Resident("busy", {"cpu": 3 * MIB, "0": 4 * MIB}, idle=False),
        Resident("pinned", {"cpu": MIB}, fixed=True),
    ]
    text = refusal(
        residents, {"cpu": MIB}, {"cpu": 6 * MIB, "0": MIB}, Limits(16 * MIB, {"cpu": 8 * MIB, "0": 8 * MIB})
    )
    assert text == (
        "it needs 6.0 MiB of cpu and 1.0 MiB of GPU 0, and the memory budget is 16.0 MiB, of which 11.0 MiB are held "
        "(2.0 MiB by idle models that could go, 1.0 MiB by models that cannot); the memory budget of cpu is 8.0 MiB, of which 7.0 MiB are held "
        "(2.0 MiB by idle models that could go, 1.0 MiB by models that cannot)"
    )


def test_where_nothing_more_is_asked_for_the_text_tells_what_is_held():
    assert refusal([Resident("a", {"cpu": 3 * MIB})], {}, {}, Limits(2 * MIB)).startswith(
        "the memory budget is 2.0 MiB"
    )
