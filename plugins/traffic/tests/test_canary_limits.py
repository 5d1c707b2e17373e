from __future__ import annotations

import random

import pytest

from tritonpy_traffic.canary_limits import ResponseStats, find_violation
from tritonpy_traffic.spec import CanaryLimits

NONE = CanaryLimits(
    error_rate=None, error_rate_over_primary=None, latency_ms=None, latency_over_primary=None
)


def sample(count: int, error_rate: float = 0, ms: float = 10, seed: int = 0) -> ResponseStats:
    source, found = random.Random(seed), ResponseStats()
    for _ in range(count):
        found.add(round(source.lognormvariate(0, 0.2) * ms * 1e6), source.random() < error_rate)
    return found


def test_without_limits_there_is_no_violation() -> None:
    assert find_violation(NONE, sample(500, 1.0, 1000), sample(500), 0.01) == ""


@pytest.mark.parametrize(
    ("limits", "canary", "text"),
    [
        (CanaryLimits(error_rate=0.05), sample(200, 0.3), "error rate: "),
        (
            CanaryLimits(error_rate=None, error_rate_over_primary=0.01),
            sample(400, 0.2),
            "more is the limit",
        ),
        (
            CanaryLimits(latency_over_primary=None, latency_ms=15),
            sample(400, 0, 30),
            ", the limit is 15 ms",
        ),
        (CanaryLimits(latency_over_primary=1.5), sample(400, 0, 30), "times that is the limit"),
    ],
)
def test_each_violated_limit_is_named(
    limits: CanaryLimits, canary: ResponseStats, text: str
) -> None:
    assert text in find_violation(limits, canary, sample(1000), 0.01)
    assert find_violation(limits, sample(400, seed=1), sample(1000), 0.01) == ""


def test_a_canary_that_fails_as_often_as_the_primary_is_accepted() -> None:
    limits = CanaryLimits(error_rate=None, error_rate_over_primary=0.01)
    assert find_violation(limits, sample(500, 0.2, seed=1), sample(500, 0.2, seed=2), 0.01) == ""


def test_without_enough_primary_responses_there_is_no_violation() -> None:
    limits = CanaryLimits(error_rate=None)
    assert find_violation(limits, sample(50, 0.5, 1000), ResponseStats(), 0.01) == ""
    assert find_violation(limits, sample(50, 0, 1000), sample(10), 0.01) == ""


def test_a_good_canary_survives_repeated_checks() -> None:
    limits = CanaryLimits(
        error_rate=0.05, error_rate_over_primary=0.01, latency_ms=16, latency_over_primary=1.2
    )
    rejected = 0
    for seed in range(60):
        source, canary, primary = random.Random(seed), ResponseStats(), ResponseStats()
        for number in range(600):
            for one in (canary, primary):
                one.add(round(source.lognormvariate(0, 0.2) * 1e7), source.random() < 0.03)
            if number % 10 == 0 and find_violation(limits, canary, primary, 0.1):
                rejected += 1
                break
    assert rejected <= 60 * 0.1 + 3 * (60 * 0.09) ** 0.5
