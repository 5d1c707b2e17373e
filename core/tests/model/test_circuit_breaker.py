from __future__ import annotations

from tritonpy.model.circuit_breaker import FAILURES, PAUSE_NS, CircuitBreaker


def broken() -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES):
        breaker.record_failure(0)
    return breaker


def test_calls_are_allowed_after_fewer_than_three_failures() -> None:
    breaker = CircuitBreaker()
    for _ in range(FAILURES - 1):
        breaker.record_failure(0)
    assert breaker.allows_call(0)


def test_after_three_failures_no_call_is_allowed() -> None:
    assert not any(broken().allows_call(now) for now in (0, 1, PAUSE_NS - 1))


def test_a_success_resets_the_count_of_failures() -> None:
    breaker = CircuitBreaker()
    for _ in range(5):
        breaker.record_failure(0)
        breaker.record_failure(0)
        breaker.record_success()
    assert breaker.allows_call(0)


def test_one_call_per_pause_is_allowed() -> None:
    breaker = broken()
    through = [now for now in range(0, 4 * PAUSE_NS, PAUSE_NS // 10) if breaker.allows_call(now)]
    assert through == [PAUSE_NS, 2 * PAUSE_NS, 3 * PAUSE_NS]


def test_a_successful_call_closes_the_breaker() -> None:
    breaker = broken()
    assert breaker.allows_call(PAUSE_NS)
    assert breaker.record_success()
    assert not breaker.record_success()
    assert all(breaker.allows_call(PAUSE_NS + turn) for turn in range(5))


def test_another_failure_starts_a_new_pause() -> None:
    breaker = broken()
    assert breaker.allows_call(PAUSE_NS)
    breaker.record_failure(PAUSE_NS + 5)
    assert not breaker.allows_call(2 * PAUSE_NS)
    assert breaker.allows_call(2 * PAUSE_NS + 5)
