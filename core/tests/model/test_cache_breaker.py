from __future__ import annotations

from tritonpy.model.cache_breaker import FAILURES, PAUSE_NS, Breaker


def broken() -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES):
        breaker.failed(0)
    return breaker


def test_calls_go_through_while_fewer_than_three_failed() -> None:
    breaker = Breaker()
    for _ in range(FAILURES - 1):
        breaker.failed(0)
    assert breaker.lets_through(0)


def test_after_three_failures_none_goes_through() -> None:
    assert not any(broken().lets_through(now) for now in (0, 1, PAUSE_NS - 1))


def test_a_success_between_failures_begins_anew() -> None:
    breaker = Breaker()
    for _ in range(5):
        breaker.failed(0)
        breaker.failed(0)
        breaker.succeeded()
    assert breaker.lets_through(0)


def test_one_call_a_pause_goes_through() -> None:
    breaker = broken()
    through = [now for now in range(0, 4 * PAUSE_NS, PAUSE_NS // 10) if breaker.lets_through(now)]
    assert through == [PAUSE_NS, 2 * PAUSE_NS, 3 * PAUSE_NS]


def test_a_call_that_succeeds_opens_the_way() -> None:
    breaker = broken()
    assert breaker.lets_through(PAUSE_NS)
    assert breaker.succeeded()
    assert not breaker.succeeded()
    assert all(breaker.lets_through(PAUSE_NS + turn) for turn in range(5))


def test_a_call_that_fails_again_closes_it_for_a_pause_from_then() -> None:
    breaker = broken()
    assert breaker.lets_through(PAUSE_NS)
    breaker.failed(PAUSE_NS + 5)
    assert not breaker.lets_through(2 * PAUSE_NS)
    assert breaker.lets_through(2 * PAUSE_NS + 5)
