from __future__ import annotations

import pytest

from tritonpy_analyzer.cost_model import (
    Execution,
    ExecutionCost,
    QueueSimulation,
    executions_between,
    fit_cost,
)
from tritonpy_analyzer.space import BATCH, BATCHING, DELAY, INSTANCES


def executions(law, batches=(1, 2, 4, 8), instances=1, count=10):
    return [Execution(instances, each, count, count * law(each)) for each in batches]


def test_the_law_of_cost_is_found():
    measured = executions(lambda rows: 0.004 + 0.0006 * rows)
    measured += executions(lambda rows: 1.5 * (0.004 + 0.0006 * rows), instances=2)
    cost = fit_cost(measured)
    assert cost.fixed_s == pytest.approx(0.004)
    assert cost.row_s == pytest.approx(0.0006)
    assert cost.slowdown(2) == pytest.approx(1.5)
    assert cost.slowdown(3) == pytest.approx(2.0)
    assert cost.seconds(16, 1) == pytest.approx(0.0136)


def test_one_batch_size_has_a_constant_cost_and_no_execution_has_none():
    cost = fit_cost([Execution(1, 4, 5, 0.05)])
    assert cost.seconds(1, 1) == cost.seconds(8, 1) == pytest.approx(0.01)
    assert fit_cost([]) is None
    assert fit_cost([Execution(2, 4, 5, 0.05)]) is None


def test_a_cost_that_grows_faster_than_the_batch_is_proportional():
    cost = fit_cost(executions(lambda rows: 0.001 * rows**2))
    assert cost.fixed_s == 0.0
    assert cost.row_s > 0


def test_executions_are_the_difference_of_two_statistics():
    def reading(count, ns):
        stage = {"count": count, "ns": ns}
        return [
            {
                "batch_stats": [
                    {
                        "batch_size": 4,
                        "compute_input": stage,
                        "compute_infer": stage,
                        "compute_output": stage,
                    }
                ]
            }
        ]

    (found,) = executions_between(reading(10, 1_000_000), reading(30, 3_000_000), 2)
    assert (found.instances, found.batch, found.count) == (2, 4, 20)
    assert found.seconds == pytest.approx(0.006)
    (reloaded,) = executions_between(reading(30, 3_000_000), reading(5, 500_000), 1)
    assert reloaded.count == 5
    assert executions_between(reading(10, 1), reading(10, 1), 1) == []


def values(batch=8, instances=1, batching=True, delay=0):
    return {BATCH: batch, INSTANCES: instances, BATCHING: batching, DELAY: delay}


def test_the_predicted_rate_grows_with_batches_and_instances_up_to_the_latency_limit():
    simulation = QueueSimulation(ExecutionCost(0.004, 0.0005, {}), 0.0, 1)
    alone = simulation.rate(values(batching=False), 0.03, 0.01)
    batched = simulation.rate(values(), 0.03, 0.01)
    two = simulation.rate(values(instances=2), 0.03, 0.01)
    assert alone < batched < two
    huge = simulation.rate(values(batch=128), 0.03, 0.01)
    assert huge < simulation.rate(values(batch=32), 0.03, 0.01) * 1.01


def test_an_execution_longer_than_the_limit_has_no_rate():
    simulation = QueueSimulation(ExecutionCost(0.05, 0.0, {}), 0.0, 1)
    assert simulation.rate(values(), 0.03, 0.01) == 0.0


def test_the_predicted_rate_of_a_single_server_agrees_with_theory():
    # M/D/1 at utilization u: the mean wait is u / (2 (1 - u)) service times.
    simulation = QueueSimulation(ExecutionCost(0.01, 0.0, {}), 0.0, 1)
    rate = simulation.rate(values(batch=1), 0.05, 0.01)
    assert 55 < rate < 85


def test_the_predicted_latency_grows_with_the_rate():
    simulation = QueueSimulation(ExecutionCost(0.01, 0.0, {}), 0.001, 1)
    latencies = [simulation.latency(values(batch=1), rate, 0.01) for rate in (1, 50, 80)]
    assert latencies[0] < latencies[1] < latencies[2]
    assert latencies[0] > 0.011
