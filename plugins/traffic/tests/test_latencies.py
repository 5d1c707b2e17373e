from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_traffic.latencies import Latencies

TIMES = st.lists(st.integers(1, 10**13), min_size=1, max_size=200)


def latencies_of(times: list[int]) -> Latencies:
    latencies = Latencies()
    for time in times:
        latencies.add(time)
    return latencies


@given(TIMES, st.floats(0.01, 1))
def test_a_quantile_is_at_most_slightly_too_high(times: list[int], share: float) -> None:
    exact = next(time for count, time in enumerate(sorted(times), 1) if count >= share * len(times))
    latencies = latencies_of(times)
    found = latencies.quantile(share)
    (last, _), _open = latencies.bounds()[-2:]
    assert found >= min(exact, 2**33 * 1000) / 1.1
    assert found <= max(exact * 1.1, 1001) or exact > last


@given(TIMES, st.integers(1, 10**13))
def test_above_counts_only_greater_latencies(times: list[int], bound: int) -> None:
    above = latencies_of(times).above(bound)
    assert above <= sum(time > bound for time in times)
    if bound < 10**12:
        assert above >= sum(time > 1.2 * bound + 2000 for time in times)


def test_exported_buckets_are_cumulative() -> None:
    latencies = latencies_of([500, 1_000_000, 3_000_000_000])
    bounds, counts = latencies.exported()
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 3
    assert bounds == sorted(bounds)
    assert (latencies.count, latencies.sum_ns) == (3, 3_001_000_500)


def test_the_quantile_without_data_is_0() -> None:
    assert Latencies().quantile(0.5) == 0
