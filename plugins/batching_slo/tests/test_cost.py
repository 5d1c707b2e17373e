from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_batching_slo.cost import UNLIMITED_ROWS, CostModel

MS = 1_000_000


def trained_model(*batches: tuple[int, float]) -> CostModel:
    costs = CostModel()
    for rows, cost_ns in batches:
        costs.learn(rows, cost_ns)
    return costs


def test_costs_are_zero_before_the_first_batch():
    costs = CostModel()
    assert (costs.cost(64), costs.tail_cost(64), costs.max_rows(1)) == (0, 0, UNLIMITED_ROWS)


def test_a_line_is_found_through_noise():
    random = Random(0)
    costs = trained_model(
        *[
            (rows, (4 + 0.5 * rows) * MS * random.uniform(0.9, 1.1))
            for rows in random.choices(range(1, 33), k=300)
        ]
    )
    assert costs.fixed_ns == pytest.approx(4 * MS, rel=0.15)
    assert costs.row_ns == pytest.approx(0.5 * MS, rel=0.15)


def test_batches_of_one_size_determine_its_cost():
    costs = trained_model(*[(8, 6 * MS)] * 50)
    assert costs.cost(8) == pytest.approx(6 * MS)
    assert costs.cost(4) == pytest.approx(4.5 * MS)


def test_a_single_slow_batch_changes_little():
    random = Random(1)
    costs = trained_model(*[(rows, (2 + rows) * MS) for rows in random.choices(range(1, 9), k=100)])
    before = costs.cost(8)
    costs.learn(8, 1000 * MS)
    assert costs.cost(8) == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("factor", [0.25, 0.5, 2.0, 10.0])
def test_a_jump_of_costs_is_learned_within_a_few_batches(factor: float):
    random = Random(2)
    sizes = random.choices(range(1, 17), k=120)
    costs = trained_model(*[(rows, (3 + 0.2 * rows) * MS) for rows in sizes[:100]])
    for rows in sizes[100:]:
        costs.learn(rows, factor * (3 + 0.2 * rows) * MS)
    assert costs.cost(12) == pytest.approx(factor * 5.4 * MS, rel=0.15)


def test_slow_batches_are_in_the_tail():
    random = Random(3)
    costs = trained_model(
        *[(4, 5 * MS * (2 if random.random() < 0.05 else 1)) for _ in range(2000)]
    )
    assert 1.5 <= costs.tail <= 2.5


def test_max_rows_cost_at_most_the_given_cost():
    costs = trained_model(*[(rows, (3 + rows) * MS) for rows in range(1, 17)] * 20)
    assert costs.cost(costs.max_rows(10 * MS)) <= 10 * MS < costs.cost(costs.max_rows(10 * MS) + 1)
    assert costs.max_rows(0.1 * MS) == 1


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(1, 1e12)), max_size=60))
def test_no_data_makes_a_cost_negative(batches):
    costs = trained_model(*batches)
    assert costs.fixed_ns >= 0
    assert costs.row_ns >= 0
    assert costs.tail >= 1
    assert costs.max_rows(1e6) >= 1
