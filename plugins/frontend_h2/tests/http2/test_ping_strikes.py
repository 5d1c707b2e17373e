from __future__ import annotations

from tritonpy_frontend_h2.http2.ping_strikes import PingRules, PingStrikes


def test_pings_at_the_interval_are_no_strikes():
    pings = PingStrikes(PingRules(interval_s=10, strikes=1))
    assert not any(pings.is_too_many(10.0 * at, 0, idle=False) for at in range(100))


def test_one_strike_more_than_are_allowed_is_too_many():
    pings = PingStrikes(PingRules(interval_s=10, strikes=2))
    assert [pings.is_too_many(at, 0, idle=False) for at in range(4)] == [False, False, False, True]


def test_without_calls_the_interval_is_two_hours_unless_pings_are_welcome():
    rules = PingRules(interval_s=10, strikes=1)
    reserved, open_ = PingStrikes(rules), PingStrikes(rules._replace(without_calls=True))
    assert [reserved.is_too_many(at, 0, idle=True) for at in (0, 7000, 14_000)] == [False, False, True]
    assert [open_.is_too_many(at, 0, idle=True) for at in (0, 7000, 14_000)] == [False, False, False]


def test_an_answer_wipes_the_strikes_out():
    pings = PingStrikes(PingRules(interval_s=10, strikes=1))
    assert not any(pings.is_too_many(at, at // 2, idle=False) for at in range(100))


def test_no_number_of_strikes_may_be_too_many():
    pings = PingStrikes(PingRules(interval_s=10, strikes=0))
    assert not any(pings.is_too_many(0, 0, idle=True) for _ in range(100))
