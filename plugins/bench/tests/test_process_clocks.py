from __future__ import annotations

from tritonpy_bench.load.process_clocks import spent


def test_what_a_process_costs_only_grows():
    first = spent()
    sum(range(200_000))
    second = spent()
    assert second.cpu > first.cpu
    assert second.starved >= first.starved >= 0
