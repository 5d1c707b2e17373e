from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_traffic.canary import CanaryRun, CanaryState, Ledger
from tritonpy_traffic.spec import Canary, Limits, Step

STEPS = [Step(0.1, seconds=10, requests=5), Step(0.5, requests=5)]
LAX = Limits(error_rate=None, error_rate_over_primary=None, latency_over_primary=None)


def run(**more: object) -> CanaryRun:
    return CanaryRun(Canary("model", 2, steps=STEPS, limits=LAX, **more), 0)  # type: ignore[arg-type]


@given(st.floats(0.001, 1), st.lists(st.integers(0, 3), max_size=400))
def test_whatever_happens_failures_stay_under_their_share(share: float, events: list[int]) -> None:
    ledger = Ledger(share)
    for event in events:
        if event == 0:
            ledger.answers += 1
        elif event == 1 and ledger.has_room():
            ledger.enter()
        elif ledger.open:
            ledger.leave(answered=event != 3, failed=event == 2)
        assert ledger.failures <= share * ledger.answers
        assert ledger.failures + ledger.open <= share * ledger.answers or not ledger.open


def test_a_step_ends_when_its_time_and_its_answers_are_there() -> None:
    canary = run()
    assert canary.share == 0.1
    for _ in range(5):
        canary.answered(1000, failed=False)
    assert not canary.look(9_999_999_999)
    assert canary.look(10_000_000_000)
    assert (canary.step, canary.share, canary.canary.answers) == (1, 0.5, 0)
    assert not canary.look(10**12)
    for _ in range(5):
        canary.answered(1000, failed=False)
    assert canary.look(10**12)
    assert (canary.state, canary.share) == (CanaryState.PROMOTED, 0)
    assert not canary.look(10**13)


def test_one_that_is_not_promoted_by_itself_stays_at_its_last_share() -> None:
    canary = CanaryRun(Canary("model", 2, steps=STEPS, limits=LAX, promote=False), 0, step=1)
    for _ in range(5):
        canary.answered(1000, failed=False)
    assert canary.look(1)
    assert (canary.state, canary.share, canary.live) == (CanaryState.WAITING, 0.5, True)
    assert not canary.look(2)


def test_one_that_waits_is_still_judged() -> None:
    canary = CanaryRun(Canary("model", 2, steps=STEPS), 0, CanaryState.WAITING, 1)
    for _ in range(10):
        canary.answered(1000, failed=True)
    assert canary.look(1)
    assert (canary.state, canary.share) == (CanaryState.ROLLED_BACK, 0)
    assert "10 of 10 answers failed" in canary.reason


def test_a_good_canary_rises_to_its_end_and_a_bad_one_seldom_gets_far() -> None:
    limits = Limits(latency_over_primary=None)
    steps = [Step(0.1, requests=200), Step(0.5, requests=200)]
    ends = {True: 0, False: 0}
    for good in ends:
        for seed in range(40):
            source = random.Random(seed)
            canary = CanaryRun(Canary("model", 2, steps=steps, limits=limits), 0)
            while canary.live:
                canary.primary_answered(1000, failed=source.random() < 0.001)
                canary.answered(1000, failed=source.random() < (0.001 if good else 0.15))
                canary.look(0)
            ends[good] += canary.state is CanaryState.PROMOTED
    assert ends[True] >= 39
    assert ends[False] == 0


def test_what_no_single_step_shows_is_found_in_all_of_them() -> None:
    steps = [Step(0.05 * number, requests=60) for number in range(1, 11)]
    canary = CanaryRun(Canary("model", 2, steps=steps, limits=Limits(error_rate=0.05, error_rate_over_primary=None)), 0)
    while canary.live:
        for number in range(20):
            canary.answered(1000, failed=number in {0, 7, 14})
        canary.look(0)
    assert canary.state is CanaryState.ROLLED_BACK
    assert canary.step > 0
    assert int(canary.reason.split(" of ")[1].split()[0]) > 60


def test_one_that_becomes_bad_late_is_judged_by_its_step() -> None:
    steps = [Step(0.1, requests=5000), Step(0.5, requests=5000)]
    canary = CanaryRun(Canary("model", 2, steps=steps), 0)
    for _ in range(5000):
        canary.answered(1000, failed=False)
    assert canary.look(0)
    while canary.live:
        canary.answered(1000, failed=True)
        canary.look(0)
    assert canary.canary.answers < 10
