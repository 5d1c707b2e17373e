from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_traffic.canary import CanaryRun, CanaryState, FailureBudget
from tritonpy_traffic.spec import Canary, CanaryLimits, CanaryStep

STEPS = [CanaryStep(0.1, seconds=10, requests=5), CanaryStep(0.5, requests=5)]
LAX = CanaryLimits(error_rate=None, error_rate_over_primary=None, latency_over_primary=None)


def run(**more: object) -> CanaryRun:
    return CanaryRun(Canary("model", 2, steps=STEPS, limits=LAX, **more), 0)  # type: ignore[arg-type]


@given(st.floats(0.001, 1), st.lists(st.integers(0, 3), max_size=400))
def test_failures_never_exceed_their_share(share: float, events: list[int]) -> None:
    failure_budget = FailureBudget(share)
    for event in events:
        if event == 0:
            failure_budget.responses += 1
        elif event == 1 and failure_budget.can_reserve():
            failure_budget.begin_request()
        elif failure_budget.open:
            failure_budget.end_request(counted=event != 3, failed=event == 2)
        assert failure_budget.failures <= share * failure_budget.responses
        assert (
            failure_budget.failures + failure_budget.open <= share * failure_budget.responses
            or not failure_budget.open
        )


def test_a_step_ends_when_its_time_and_its_responses_are_reached() -> None:
    canary = run()
    assert canary.share == 0.1
    for _ in range(5):
        canary.record_response(1000, failed=False)
    assert not canary.evaluate(9_999_999_999)
    assert canary.evaluate(10_000_000_000)
    assert (canary.step, canary.share, canary.canary.responses) == (1, 0.5, 0)
    assert not canary.evaluate(10**12)
    for _ in range(5):
        canary.record_response(1000, failed=False)
    assert canary.evaluate(10**12)
    assert (canary.state, canary.share) == (CanaryState.PROMOTED, 0)
    assert not canary.evaluate(10**13)


def test_a_canary_without_automatic_promotion_stays_at_its_last_share() -> None:
    canary = CanaryRun(Canary("model", 2, steps=STEPS, limits=LAX, promote=False), 0, step=1)
    for _ in range(5):
        canary.record_response(1000, failed=False)
    assert canary.evaluate(1)
    assert (canary.state, canary.share, canary.is_live) == (CanaryState.WAITING, 0.5, True)
    assert not canary.evaluate(2)


def test_a_waiting_canary_is_still_judged() -> None:
    canary = CanaryRun(Canary("model", 2, steps=STEPS), 0, CanaryState.WAITING, 1)
    for _ in range(10):
        canary.record_response(1000, failed=True)
    assert canary.evaluate(1)
    assert (canary.state, canary.share) == (CanaryState.ROLLED_BACK, 0)
    assert "10 of 10 responses failed" in canary.reason


def test_a_good_canary_is_promoted_and_a_bad_one_is_rolled_back() -> None:
    limits = CanaryLimits(latency_over_primary=None)
    steps = [CanaryStep(0.1, requests=200), CanaryStep(0.5, requests=200)]
    ends = {True: 0, False: 0}
    for good in ends:
        for seed in range(40):
            source = random.Random(seed)
            canary = CanaryRun(Canary("model", 2, steps=steps, limits=limits), 0)
            while canary.is_live:
                canary.record_primary_response(1000, failed=source.random() < 0.001)
                canary.record_response(1000, failed=source.random() < (0.001 if good else 0.15))
                canary.evaluate(0)
            ends[good] += canary.state is CanaryState.PROMOTED
    assert ends[True] >= 39
    assert ends[False] == 0


def test_a_violation_is_found_over_all_steps() -> None:
    steps = [CanaryStep(0.05 * number, requests=60) for number in range(1, 11)]
    canary = CanaryRun(
        Canary(
            "model",
            2,
            steps=steps,
            limits=CanaryLimits(error_rate=0.05, error_rate_over_primary=None),
        ),
        0,
    )
    while canary.is_live:
        for number in range(20):
            canary.record_response(1000, failed=number in {0, 7, 14})
        canary.evaluate(0)
    assert canary.state is CanaryState.ROLLED_BACK
    assert canary.step > 0
    assert int(canary.reason.split(" of ")[1].split()[0]) > 60


def test_a_canary_that_becomes_bad_late_is_judged_by_its_step() -> None:
    steps = [CanaryStep(0.1, requests=5000), CanaryStep(0.5, requests=5000)]
    canary = CanaryRun(Canary("model", 2, steps=steps), 0)
    for _ in range(5000):
        canary.record_response(1000, failed=False)
    assert canary.evaluate(0)
    while canary.is_live:
        canary.record_response(1000, failed=True)
        canary.evaluate(0)
    assert canary.canary.responses < 10
