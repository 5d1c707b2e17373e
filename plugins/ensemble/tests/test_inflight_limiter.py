from __future__ import annotations

from functools import partial

from tritonpy_ensemble.inflight_limiter import InflightLimiter


def test_calls_above_the_limit_wait_in_order():
    limiter, started = InflightLimiter(2), []
    assert [limiter.try_acquire("me", partial(started.append, number)) for number in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    limiter.release()
    assert started == [2]
    limiter.release()
    limiter.release()
    assert started == [2, 3, 4]


def test_new_calls_do_not_overtake_waiting_ones():
    limiter, started = InflightLimiter(1), []
    limiter.try_acquire("a", partial(started.append, "a"))
    limiter.try_acquire(
        "b", lambda: started.append("b") or limiter.try_acquire("d", partial(started.append, "d"))
    )
    limiter.try_acquire("c", partial(started.append, "c"))
    limiter.release()
    assert started == ["b"]
    limiter.release()
    limiter.release()
    assert started == ["b", "c", "d"]


def test_released_capacity_is_available_to_the_next_call():
    limiter = InflightLimiter(1)
    assert limiter.try_acquire("a", list)
    limiter.release()
    assert limiter.try_acquire("b", list)
    assert not limiter.try_acquire("c", list)


def test_removed_calls_are_not_started():
    limiter, started = InflightLimiter(1), []
    limiter.try_acquire("a", list)
    for owner in ("b", "c", "b", "d"):
        limiter.try_acquire(owner, partial(started.append, owner))
    assert limiter.remove("b") == 2
    assert limiter.remove("b") == 0
    for _ in range(3):
        limiter.release()
    assert started == ["c", "d"]


def test_a_long_queue_of_short_calls_needs_no_deep_stack():
    limiter, started = InflightLimiter(1), []
    limiter.try_acquire("first", list)

    def start_and_release(number):
        started.append(number)
        limiter.release()

    for number in range(10_000):
        limiter.try_acquire(number, partial(start_and_release, number))
    limiter.release()
    assert started == list(range(10_000))
