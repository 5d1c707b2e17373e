from __future__ import annotations

from tritonpy_engine_rpc.backoff import SETTLED_S, Backoff


def test_the_first_restart_is_immediate():
    assert Backoff().after_death_s(0.0) == 0


def test_workers_that_die_early_restart_after_at_most_one_second():
    backoff = Backoff()
    assert [backoff.after_death_s(1.0) for _ in range(6)] == [0, 0.25, 0.5, 1, 1, 1]


def test_a_long_life_makes_the_next_restart_immediate_again():
    backoff = Backoff()
    for _ in range(5):
        backoff.after_death_s(0.0)
    assert backoff.after_death_s(SETTLED_S - 1) > 0
    assert backoff.after_death_s(SETTLED_S) == 0
    assert backoff.after_death_s(0.0) == 0.25


def test_failed_starts_are_retried_with_increasing_delays():
    backoff = Backoff()
    delays = [backoff.after_failed_start_s() for _ in range(40)]
    assert delays[:4] == [0.25, 0.5, 1, 2]
    assert delays == sorted(delays)
    assert delays[-1] == 30


def test_a_successful_start_resets_the_delay():
    backoff = Backoff()
    for _ in range(8):
        backoff.after_failed_start_s()
    backoff.after_death_s(1.0)
    assert backoff.after_failed_start_s() == 0.25
