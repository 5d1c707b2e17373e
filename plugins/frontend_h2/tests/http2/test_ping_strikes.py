from __future__ import annotations

from tritonpy_frontend_h2.http2.ping_strikes import PingRules, PingStrikeCounter


def test_pings_at_the_interval_are_accepted():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=1))
    assert not any(pings.record_ping(10.0 * at, 0, idle=False) for at in range(100))


def test_strikes_above_the_limit_are_too_many():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=2))
    assert [pings.record_ping(at, 0, idle=False) for at in range(4)] == [False, False, False, True]


def test_the_interval_without_calls_is_two_hours_by_default():
    rules = PingRules(interval_s=10, strikes=1)
    reserved, open_ = PingStrikeCounter(rules), PingStrikeCounter(rules._replace(without_calls=True))
    assert [reserved.record_ping(at, 0, idle=True) for at in (0, 7000, 14_000)] == [False, False, True]
    assert [open_.record_ping(at, 0, idle=True) for at in (0, 7000, 14_000)] == [False, False, False]


def test_response_data_resets_the_strikes():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=1))
    assert not any(pings.record_ping(at, at // 2, idle=False) for at in range(100))


def test_the_number_of_strikes_may_be_unlimited():
    pings = PingStrikeCounter(PingRules(interval_s=10, strikes=0))
    assert not any(pings.record_ping(0, 0, idle=True) for _ in range(100))
