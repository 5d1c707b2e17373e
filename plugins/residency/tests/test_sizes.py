from __future__ import annotations

import pytest

from tritonpy import MemoryUsage
from tritonpy.repository import MemorySettings
from tritonpy_residency.sizes import (
    ALL,
    MemoryLimits,
    bytes_in,
    format_bytes,
    format_sizes,
    max_sizes,
    scale_sizes,
    sizes_of,
    sum_sizes,
)


def test_pinned_memory_counts_for_the_host_and_each_gpu_separately():
    usages = [
        MemoryUsage("CPU", 0, 1),
        MemoryUsage("CPU_PINNED", 0, 2),
        MemoryUsage("GPU", 0, 4),
        MemoryUsage("GPU", 1, 8),
    ]
    assert sizes_of(usages) == {"cpu": 3, "0": 4, "1": 8}


def test_limits_apply_to_all_devices_together_and_to_each():
    limits = MemoryLimits(10, {"0": 4})
    assert limits.excess({"cpu": 6, "0": 4}) == {}
    assert limits.excess({"cpu": 6, "0": 5}) == {ALL: 1, "0": 1}
    assert limits.excess({"cpu": 11}) == {ALL: 1}
    assert MemoryLimits().excess({"cpu": 1 << 60}) == {}


def test_limits_are_those_of_the_configuration():
    assert MemoryLimits.of(MemorySettings(budget=5, devices={"cpu": 3})).by_device() == {
        ALL: 5,
        "cpu": 3,
    }


def test_sums_maxima_and_multiples_are_by_device():
    assert sum_sizes([{"cpu": 1}, {"cpu": 2, "0": 3}]) == {"cpu": 3, "0": 3}
    assert max_sizes({"cpu": 1, "0": 5}, {"cpu": 2}) == {"cpu": 2, "0": 5}
    assert scale_sizes({"cpu": 10}, 1.5) == {"cpu": 15}
    assert bytes_in({"cpu": 1, "0": 2}, ALL) == 3
    assert bytes_in({"cpu": 1}, "0") == 0


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_are_human_readable(size, text):
    assert format_bytes(size) == text


def test_sizes_name_their_devices_if_gpus_are_involved():
    assert format_sizes({"cpu": 1024}) == "1.0 KiB"
    assert format_sizes({"cpu": 1024, "0": 2048}) == "1.0 KiB of cpu and 2.0 KiB of GPU 0"
    assert format_sizes({}) == "0 B"
