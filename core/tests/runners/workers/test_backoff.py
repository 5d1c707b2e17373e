from __future__ import annotations

from tritonpy.runners.workers.backoff import SETTLED_S, Backoff

LONGEST_S = 30.0


def test_the_first_restart_is_at_once():
    assert Backoff().delay_s(0.0) == 0


def test_each_further_one_waits_longer_and_no_longer_than_the_limit():
    backoff = Backoff()
    delays = [backoff.delay_s(1.0) for _ in range(12)]
    assert delays[:5] == [0, 0.25, 0.5, 1, 2]
    assert delays == sorted(delays)
    assert delays[-1] == LONGEST_S


def test_a_long_life_makes_the_next_restart_immediate_again():
    backoff = Backoff()
    for _ in range(5):
        backoff.delay_s(0.0)
    assert backoff.delay_s(SETTLED_S - 1) > 0
    assert backoff.delay_s(SETTLED_S) == 0
    assert backoff.delay_s(0.0) == 0.25
