from __future__ import annotations

from collections.abc import Callable

import pytest

from tritonpy_batching_slo.trials import Trials

PERIOD = 15
"""Batches per period."""


def simulate(rate: Callable[[bool, int], float], batches: int) -> list[bool]:
    """Run batches of one row at the given rates. Return whether each batch waited.

    `rate` maps (waits, number of the batch) to a rate.
    """
    trials, now, waited = Trials(), 0.0, list[bool]()
    for number in range(batches):
        waited.append(trials.waits)
        now += 1e6 / rate(trials.waits, number)
        trials.learn(1, int(now))
    return waited


def share(waited: list[bool]) -> float:
    return sum(waited) / len(waited)


def test_it_waits_before_the_first_trial() -> None:
    waited = simulate(lambda waits, number: 1.0, 2 * PERIOD)
    assert all(waited)


@pytest.mark.parametrize(
    ("gain", "expected"), [(1.3, True), (1.05, True), (1.0, False), (0.8, False)]
)
def test_the_alternative_with_the_higher_rate_is_kept(gain: float, expected: bool) -> None:
    waited = simulate(lambda waits, number: gain if waits else 1.0, 60 * PERIOD)
    last = waited[20 * PERIOD :]
    assert (share(last) if expected else 1 - share(last)) > 0.85


def test_trials_become_less_frequent_but_continue() -> None:
    waited = simulate(lambda waits, number: 1.2 if waits else 1.0, 200 * PERIOD)
    assert 1 / 15 > 1 - share(waited[40 * PERIOD :]) > 1 / 30


@pytest.mark.parametrize("growth", [1.002, 0.998])
def test_a_drift_of_the_load_does_not_count_as_gain(growth: float) -> None:
    waited = simulate(lambda waits, number: (1.1 if waits else 1.0) * growth**number, 60 * PERIOD)
    assert share(waited) > 0.8


def test_one_disturbed_period_does_not_decide() -> None:
    disturbed = range(PERIOD * 7, PERIOD * 8)
    waited = simulate(
        lambda waits, number: 0.1 if number in disturbed else 1.2 if waits else 1.0, 60 * PERIOD
    )
    assert share(waited) > 0.8


def test_the_preference_follows_a_change_of_load() -> None:
    change = 100 * PERIOD
    waited = simulate(
        lambda waits, number: 1.3 if waits is (number < change) else 1.0, 200 * PERIOD
    )
    assert share(waited[:change]) > 0.85
    assert 1 - share(waited[change + 40 * PERIOD :]) > 0.85
