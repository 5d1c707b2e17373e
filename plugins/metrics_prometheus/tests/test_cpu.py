from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.metrics import SERVER_METRICS
from tritonpy_metrics_prometheus.cpu import (
    CpuCollector,
    CpuTicks,
    parse_memory,
    parse_ticks,
    utilization,
)

STAT = "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 1\n"
MEMORY = "MemTotal:       24684096 kB\nMemFree:         1000000 kB\nMemAvailable:   24097680 kB\nHugePages_Total:       0\n"
ticks = st.builds(CpuTicks, st.integers(0, 2**63), st.integers(0, 2**63))


def test_busy_is_everything_but_idle_and_waiting_for_disks():
    assert parse_ticks(STAT) == CpuTicks(busy=100 + 20 + 30 + 6 + 7 + 8, idle=400 + 50)


def test_a_shorter_line_of_an_old_kernel_is_rejected():
    with pytest.raises(ValueError, match="not enough values"):
        parse_ticks("cpu 1 2 3 4\n")


def test_used_memory_is_what_is_not_available():
    assert parse_memory(MEMORY) == (25276514304, 25276514304 - 24676024320)


def test_utilization_is_the_busy_part_of_the_difference():
    assert utilization(CpuTicks(130, 470), CpuTicks(100, 400)) == 0.3


@given(ticks, ticks)
def test_utilization_is_always_a_fraction(now, before):
    assert 0 <= utilization(now, before) <= 1


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "meminfo").write_text(MEMORY)
    return tmp_path


def values(collector):
    return {family.name: family.samples[0].value for family in collector.collect()}


def test_the_first_value_covers_the_time_since_boot(proc):
    assert values(CpuCollector(1000, lambda: 0, proc)) == {
        "nv_cpu_utilization": 171 / 621,
        "nv_cpu_memory_total_bytes": 25276514304,
        "nv_cpu_memory_used_bytes": 600489984,
    }


def test_utilization_changes_only_when_the_interval_has_passed(proc):
    now = [0]
    collector = CpuCollector(1000, lambda: now[0], proc)
    (proc / "stat").write_text("cpu  200 20 30 400 50 6 7 8 0 0\n")
    now[0] = 999
    assert values(collector)["nv_cpu_utilization"] == 171 / 621
    now[0] = 1000
    assert values(collector)["nv_cpu_utilization"] == 1.0
    (proc / "stat").write_text("cpu  200 20 30 500 50 6 7 8 0 0\n")
    now[0] = 1999
    assert values(collector)["nv_cpu_utilization"] == 1.0
    now[0] = 2000
    assert values(collector)["nv_cpu_utilization"] == 0.0


def test_models_cannot_use_these_family_names(proc):
    assert {family.name for family in CpuCollector(1, lambda: 0, proc).collect()} <= SERVER_METRICS
