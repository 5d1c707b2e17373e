from __future__ import annotations

from tritonpy import SERVER_METRICS
from tritonpy_metrics_prometheus.exposition import text_format
from tritonpy_metrics_prometheus.pinned_memory import PinnedMemoryCollector


def test_the_pool_is_shown_as_the_empty_one_that_it_is():
    families = list(PinnedMemoryCollector().collect())
    assert {family.type for family in families} == {"gauge"}
    assert {family.name for family in families} <= SERVER_METRICS
    samples = [line for line in text_format(families).decode().splitlines() if not line.startswith("#")]
    assert samples == ["nv_pinned_memory_pool_total_bytes 0", "nv_pinned_memory_pool_used_bytes 0"]
