from __future__ import annotations

import random

import pytest

from tritonpy_traffic.judgement import Sample, judge
from tritonpy_traffic.spec import Limits

NONE = Limits(error_rate=None, error_rate_over_primary=None, latency_ms=None, latency_over_primary=None)


def sample(count: int, error_rate: float = 0, ms: float = 10, seed: int = 0) -> Sample:
    source, found = random.Random(seed), Sample()
    for _ in range(count):
        found.add(round(source.lognormvariate(0, 0.2) * ms * 1e6), source.random() < error_rate)
    return found


def test_no_limits_are_never_passed() -> None:
    assert judge(NONE, sample(500, 1.0, 1000), sample(500), 0.01) == ""


@pytest.mark.parametrize(
    ("limits", "canary", "said"),
    [
        (Limits(error_rate=0.05), sample(200, 0.3), "error rate: "),
        (Limits(error_rate=None, error_rate_over_primary=0.01), sample(400, 0.2), "more is the limit"),
        (Limits(latency_over_primary=None, latency_ms=15), sample(400, 0, 30), ", the limit is 15 ms"),
        (Limits(latency_over_primary=1.5), sample(400, 0, 30), "times that is the limit"),
    ],
)
def test_each_limit_is_told_by_the_canary_that_passes_it(limits: Limits, canary: Sample, said: str) -> None:
    assert said in judge(limits, canary, sample(1000), 0.01)
    assert judge(limits, sample(400, seed=1), sample(1000), 0.01) == ""


def test_a_canary_is_no_worse_than_a_primary_that_fails_as_often() -> None:
    limits = Limits(error_rate=None, error_rate_over_primary=0.01)
    assert judge(limits, sample(500, 0.2, seed=1), sample(500, 0.2, seed=2), 0.01) == ""


def test_nothing_is_told_of_a_primary_that_nobody_knows() -> None:
    limits = Limits(error_rate=None)
    assert judge(limits, sample(50, 0.5, 1000), Sample(), 0.01) == ""
    assert judge(limits, sample(50, 0, 1000), sample(10), 0.01) == ""


def test_a_good_canary_that_is_judged_again_and_again_survives() -> None:
    limits = Limits(error_rate=0.05, error_rate_over_primary=0.01, latency_ms=16, latency_over_primary=1.2)
    condemned = 0
    for seed in range(60):
        source, canary, primary = random.Random(seed), Sample(), Sample()
        for number in range(600):
            for one in (canary, primary):
                one.add(round(source.lognormvariate(0, 0.2) * 1e7), source.random() < 0.03)
            if number % 10 == 0 and judge(limits, canary, primary, 0.1):
                condemned += 1
                break
    assert condemned <= 60 * 0.1 + 3 * (60 * 0.09) ** 0.5
