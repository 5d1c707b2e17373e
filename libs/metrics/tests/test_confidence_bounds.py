from __future__ import annotations

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_metrics.confidence_bounds import (
    lower_bound,
    mean_radius,
    rate_exceeds,
    upper_bound,
)

TOTALS = st.integers(0, 5000)
RATES = st.floats(0.001, 0.999)


def outcomes(seed: int, rate: float, count: int) -> list[tuple[int, int]]:
    """Return (number of failures, total) after each of `count` trials."""
    source, bad, found = random.Random(seed), 0, []
    for total in range(1, count + 1):
        bad += source.random() < rate
        found.append((bad, total))
    return found


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("truth", [0.5, 1.0])
def test_the_error_probability_holds_over_all_trials(rate: float, truth: float) -> None:
    runs = 300
    wrong = sum(
        any(
            rate_exceeds(bad, total, rate, 0.05)
            for bad, total in outcomes(seed, rate * truth, 1000)
        )
        for seed in range(runs)
    )
    assert wrong <= 0.05 * runs + 3 * (0.05 * 0.95 * runs) ** 0.5


@pytest.mark.parametrize(
    ("rate", "true_rate", "within"), [(0.05, 1.0, 5), (0.05, 0.5, 40), (0.01, 0.05, 600)]
)
def test_a_much_higher_rate_is_found_soon(rate: float, true_rate: float, within: int) -> None:
    found = [
        next(
            total
            for bad, total in outcomes(seed, true_rate, 5000)
            if rate_exceeds(bad, total, rate, 0.01)
        )
        for seed in range(100)
    ]
    assert sorted(found)[90] <= within


def test_one_failure_is_not_significant() -> None:
    assert not rate_exceeds(1, 1, 0.05, 0.01)
    assert not rate_exceeds(1, 10, 0.05, 0.01)


@given(TOTALS, TOTALS, RATES)
def test_one_more_failure_keeps_the_result(bad: int, good: int, rate: float) -> None:
    if rate_exceeds(bad, bad + good, rate, 0.01):
        assert rate_exceeds(bad + 1, bad + good + 1, rate, 0.01)
        assert not good or rate_exceeds(bad + 1, bad + good, rate, 0.01)


@given(TOTALS, TOTALS)
def test_the_bounds_contain_the_observed_rate(bad: int, good: int) -> None:
    total = bad + good
    low, high = lower_bound(bad, total, 0.01), upper_bound(bad, total, 0.01)
    assert 0 <= low <= high <= 1
    if total:
        assert low - 1e-9 <= bad / total <= high + 1e-9
    else:
        assert (low, high) == (0, 1)


@given(TOTALS, TOTALS, RATES)
def test_the_lower_bound_is_the_highest_exceeded_rate(bad: int, good: int, rate: float) -> None:
    low = lower_bound(bad, bad + good, 0.01)
    if abs(low - rate) > 1e-6:
        assert rate_exceeds(bad, bad + good, rate, 0.01) == (rate < low)


@pytest.mark.parametrize(("rate", "expected"), [(0.0, True), (1.0, False)])
def test_rates_0_and_1(rate: float, expected: bool) -> None:
    assert rate_exceeds(3, 3, rate, 0.01) is expected
    assert not rate_exceeds(0, 3, rate, 0.01)


def test_the_interval_of_a_mean_covers_it_at_all_times():
    rng = random.Random(7)
    missed = 0
    for _ in range(400):
        values = []
        for _ in range(60):
            values.append(rng.gauss(0.3, 0.1))
            if abs(sum(values) / len(values) - 0.3) > mean_radius(values, 0.05):
                missed += 1
                break
    assert missed <= 0.05 * 400 * 1.4


def test_the_interval_of_a_mean_shrinks_with_values_and_needs_two():
    rng = random.Random(1)
    values = [rng.gauss(1, 0.05) for _ in range(40)]
    assert mean_radius(values[:1], 0.05) == inf
    radii = [mean_radius(values[:count], 0.05) for count in (5, 10, 40)]
    assert radii == sorted(radii, reverse=True)
    assert radii[-1] < 0.05
