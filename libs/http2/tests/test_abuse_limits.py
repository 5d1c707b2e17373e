from __future__ import annotations

import pytest

from tritonpy_http2.abuse_limits import AbuseBudget, PingRules, PingStrikeCounter
from tritonpy_http2.codes import ENHANCE_YOUR_CALM
from tritonpy_http2.errors import Http2ConnectionError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def spend(budget, count):
    for _ in range(count):
        budget.charge("x")


def test_the_credit_is_limited():
    budget = AbuseBudget(Clock())
    spend(budget, 1000)
    with pytest.raises(Http2ConnectionError) as error:
        budget.charge("resets")
    assert (error.value.code, error.value.text) == (ENHANCE_YOUR_CALM, "too many resets")


def test_time_refills_the_credit_up_to_its_maximum():
    clock = Clock()
    budget = AbuseBudget(clock)
    spend(budget, 1000)
    clock.now = 2.0
    spend(budget, 200)
    with pytest.raises(Http2ConnectionError):
        budget.charge("x")
    clock.now = 1e6
    spend(budget, 1000)
    with pytest.raises(Http2ConnectionError):
        budget.charge("x")


def test_every_completed_call_refunds_credit():
    budget = AbuseBudget(Clock())
    for _ in range(10_000):
        budget.refund()
        budget.charge("x")


def test_pings_at_the_interval_are_accepted():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=1))
    assert not any(pings.record_ping(10.0 * at, 0, idle=False) for at in range(100))


def test_strikes_above_the_limit_are_too_many():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=2))
    assert [pings.record_ping(at, 0, idle=False) for at in range(4)] == [False, False, False, True]


def test_the_interval_without_calls_is_two_hours_by_default():
    rules = PingRules(interval_s=10, strikes=1)
    reserved, open_ = (
        PingStrikeCounter(rules),
        PingStrikeCounter(rules._replace(without_calls=True)),
    )
    assert [reserved.record_ping(at, 0, idle=True) for at in (0, 7000, 14_000)] == [
        False,
        False,
        True,
    ]
    assert [open_.record_ping(at, 0, idle=True) for at in (0, 7000, 14_000)] == [
        False,
        False,
        False,
    ]


def test_response_data_resets_the_strikes():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=1))
    assert not any(pings.record_ping(at, at // 2, idle=False) for at in range(100))


def test_the_number_of_strikes_may_be_unlimited():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=0))
    assert not any(pings.record_ping(0, 0, idle=True) for _ in range(100))
