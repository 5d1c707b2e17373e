from __future__ import annotations

from tritonpy_load_generator.loops.process_clocks import read_process_clocks


def test_process_times_only_increase():
    first = read_process_clocks()
    sum(range(200_000))
    second = read_process_clocks()
    assert second.cpu > first.cpu
    assert second.starved >= first.starved >= 0
