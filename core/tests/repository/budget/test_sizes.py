from __future__ import annotations

import pytest

from tritonpy.api.engine import MemoryUsage
from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.repository.budget.sizes import (
    ALL,
    Limits,
    added,
    held_in,
    larger,
    scaled,
    sizes_of,
    spelled,
    spelled_sizes,
)


def test_pinned_memory_is_the_hosts_and_each_gpu_is_a_place_of_its_own():
    usages = [
        MemoryUsage("CPU", 0, 1),
        MemoryUsage("CPU_PINNED", 0, 2),
        MemoryUsage("GPU", 0, 4),
        MemoryUsage("GPU", 1, 8),
    ]
    assert sizes_of(usages) == {"cpu": 3, "0": 4, "1": 8}


def test_limits_are_exceeded_in_all_places_together_and_in_single_ones():
    limits = Limits(10, {"0": 4})
    assert limits.excess({"cpu": 6, "0": 4}) == {}
    assert limits.excess({"cpu": 6, "0": 5}) == {ALL: 1, "0": 1}
    assert limits.excess({"cpu": 11}) == {ALL: 1}
    assert Limits().excess({"cpu": 1 << 60}) == {}


def test_limits_are_those_of_the_configuration():
    assert Limits.of(MemorySettings(budget=5, devices={"cpu": 3})).by_place() == {ALL: 5, "cpu": 3}


def test_sums_maxima_and_multiples_are_by_place():
    assert added([{"cpu": 1}, {"cpu": 2, "0": 3}]) == {"cpu": 3, "0": 3}
    assert larger({"cpu": 1, "0": 5}, {"cpu": 2}) == {"cpu": 2, "0": 5}
    assert scaled({"cpu": 10}, 1.5) == {"cpu": 15}
    assert held_in({"cpu": 1, "0": 2}, ALL) == 3
    assert held_in({"cpu": 1}, "0") == 0


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")])
def test_sizes_are_spelled_for_people(size, text):
    assert spelled(size) == text


def test_sizes_name_their_places_where_there_is_more_than_the_host():
    assert spelled_sizes({"cpu": 1024}) == "1.0 KiB"
    assert spelled_sizes({"cpu": 1024, "0": 2048}) == "1.0 KiB of cpu and 2.0 KiB of GPU 0"
    assert spelled_sizes({}) == "0 B"
