from __future__ import annotations

import pytest

from tritonpy_batching_slo.cost import CostModel
from tritonpy_batching_slo.wait_tuner import WaitTuner, longest_wait

US = 1_000


@pytest.fixture
def costs() -> CostModel:
    costs = CostModel()
    for _ in range(50):
        for rows in (1, 8, 32):
            costs.learn(rows, 1000 * US + 10 * US * rows)
    return costs


def burst(begin: int, count: int, apart: int = 5 * US) -> list[tuple[int, int]]:
    return [(begin + apart * (index + 1), 1) for index in range(count)]


def tuned_factor(
    costs: CostModel, rows: int, arrivals: list[tuple[int, int]], most: int = 64
) -> float:
    tuner = WaitTuner()
    for _ in range(50):
        tuner.learn(costs, 0, rows, arrivals, most)
    return tuner.wait_factor


def test_it_waits_for_a_burst_after_each_batch(costs):
    assert tuned_factor(costs, 8, burst(0, 8)) > 0


def test_it_waits_no_longer_than_a_burst_takes(costs):
    wait_factor = tuned_factor(costs, 8, burst(0, 8))
    assert longest_wait(costs, 16, 0, wait_factor) < 50 * US


def test_it_does_not_wait_for_single_requests(costs):
    assert tuned_factor(costs, 1, []) == 0
    assert tuned_factor(costs, 8, [(5_000 * US, 1)]) == 0


def test_it_does_not_wait_beyond_the_row_limit(costs):
    assert tuned_factor(costs, 8, burst(0, 8), most=8) == 0


def test_it_does_not_wait_if_batches_have_no_fixed_cost():
    costs = CostModel()
    for rows in [1, 8, 32] * 50:
        costs.learn(rows, 10 * US * rows)
    assert tuned_factor(costs, 8, burst(0, 8, apart=50 * US)) == 0


def test_nothing_is_learned_before_costs_are_known():
    assert tuned_factor(CostModel(), 8, burst(0, 8)) == 0


def test_a_change_of_clients_is_learned(costs):
    tuner = WaitTuner()
    for _ in range(50):
        tuner.learn(costs, 0, 8, burst(0, 8), 64)
    assert tuner.wait_factor
    for _ in range(100):
        tuner.learn(costs, 0, 1, [], 64)
    assert not tuner.wait_factor
