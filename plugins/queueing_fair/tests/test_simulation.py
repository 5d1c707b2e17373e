from __future__ import annotations

from bench.fair_simulation import GREEDY, MODEST, capacity, run


def test_a_greedy_tenant_delays_only_itself() -> None:
    unfair, fair = run(fair=False), run(fair=True)
    for tenant in MODEST:
        assert fair[tenant].throughput >= 0.95 * 0.1 * capacity()
        assert fair[tenant].quantile_ms(0.99) < 0.05 * unfair[tenant].quantile_ms(0.99)
    in_all = [sum(outcome.throughput for outcome in each.values()) for each in (unfair, fair)]
    assert in_all[1] >= 0.98 * in_all[0]  # no request waits while an instance is free
    assert fair[GREEDY].throughput >= 0.6 * capacity()
