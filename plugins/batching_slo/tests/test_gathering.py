from __future__ import annotations

import pytest

from tritonpy_batching_slo.cost import CostModel
from tritonpy_batching_slo.gathering import Gathering, longest_wait

US = 1_000


@pytest.fixture
def costs() -> CostModel:
    costs = CostModel()
    for _ in range(50):
        for rows in (1, 8, 32):
            costs.learn(rows, 1000 * US + 10 * US * rows)
    return costs


def swarm(begin: int, count: int, apart: int = 5 * US) -> list[tuple[int, int]]:
    return [(begin + apart * (index + 1), 1) for index in range(count)]


def after(costs: CostModel, rows: int, arrivals: list[tuple[int, int]], most: int = 64) -> float:
    gathering = Gathering()
    for _ in range(50):
        gathering.learn(costs, 0, rows, arrivals, most)
    return gathering.patience


def test_a_swarm_behind_each_batch_is_waited_for(costs):
    assert after(costs, 8, swarm(0, 8)) > 0


def test_no_longer_than_it_takes_to_come(costs):
    patience = after(costs, 8, swarm(0, 8))
    assert longest_wait(costs, 16, 0, patience) < 50 * US


def test_one_who_comes_alone_is_not(costs):
    assert after(costs, 1, []) == 0
    assert after(costs, 8, [(5_000 * US, 1)]) == 0


def test_rows_beyond_the_most_are_not(costs):
    assert after(costs, 8, swarm(0, 8), most=8) == 0


def test_where_a_batch_has_no_fixed_cost_nothing_is_worth_waiting():
    costs = CostModel()
    for rows in [1, 8, 32] * 50:
        costs.learn(rows, 10 * US * rows)
    assert after(costs, 8, swarm(0, 8, apart=50 * US)) == 0


def test_nothing_is_learnt_before_costs_are_known():
    assert after(CostModel(), 8, swarm(0, 8)) == 0


def test_other_clients_are_learnt_again(costs):
    gathering = Gathering()
    for _ in range(50):
        gathering.learn(costs, 0, 8, swarm(0, 8), 64)
    assert gathering.patience
    for _ in range(100):
        gathering.learn(costs, 0, 1, [], 64)
    assert not gathering.patience
