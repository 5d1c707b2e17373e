"""The policy under whole loads, in simulated time with recorded costs. Deterministic."""

from __future__ import annotations

import pytest

from bench.discrete_events import Costs, Load, Simulation
from bench.slo_simulation import (
    CASES,
    LARGEST,
    Case,
    Figures,
    bursty,
    capacity,
    cost_increase,
    judge,
    preferred,
    slo,
    steady,
)
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_slo.policy import SloPolicy

MS = 1_000_000
TARGETS_MS = {"deep": 3.0, "wide": 60.0, "convolution": 3.0}
MODELS = list(TARGETS_MS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_under_a_full_load_the_target_is_kept_at_the_best_throughput(case: Case) -> None:
    verdict = judge(case)
    assert verdict.slo.p99_ms <= case.target_ms, verdict
    assert verdict.share >= 0.9, verdict


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_independent_clients_are_served_in_time(model: str, share: float) -> None:
    load = steady(model, share)
    outcome = slo(TARGETS_MS[model], model).run(load)
    assert len(outcome.responses) == len(load.times)
    assert Figures.of(outcome).p99_ms <= TARGETS_MS[model]


@pytest.mark.parametrize("model", MODELS)
def test_bursts_are_served_in_time(model: str) -> None:
    load = bursty(model, 0.25)
    outcome = slo(TARGETS_MS[model], model).run(load)
    assert len(outcome.responses) == len(load.times)
    assert Figures.of(outcome).p99_ms <= TARGETS_MS[model]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", [1.0, 0.2])
def test_too_much_load_is_served_at_full_speed_however_tight_the_target(
    model: str, target: float
) -> None:
    load = steady(model, 1.3)
    outcome = slo(target * TARGETS_MS[model], model).run(load)
    assert len(outcome.responses) == len(load.times)
    assert (
        Figures.of(outcome).throughput
        >= 0.9 * Figures.of(preferred(0, 0, model).run(load)).throughput
    )
    assert Figures.of(outcome).throughput >= 0.85 * capacity(model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_changed_costs_are_learned(model: str, factor: float) -> None:
    load = steady(model, 0.4)
    outcome = slo(TARGETS_MS[model], model, factor=cost_increase(load, factor)).run(load)
    assert outcome.between(0.6, 1).quantile_ms(0.99) <= TARGETS_MS[model]


class Linear(Costs):
    """Linear batch costs without noise."""

    def __init__(self, fixed_ns: int, row_ns: int) -> None:
        self._fixed_ns, self._row_ns = fixed_ns, row_ns

    def draw(self, rows: int, now_ns: int) -> int:
        return self._fixed_ns + self._row_ns * rows


def rates(costs: Costs, clients: int, turnaround_ns: int) -> tuple[float, float]:
    """Return the throughput with "slo" and without delay.

    Each client sends its next request `turnaround_ns` after a response.
    """
    load = Load(8.0, clients, turnaround_ns=turnaround_ns)
    text = f"max_batch_size: {LARGEST} dynamic_batching {{ }}"
    parameters = 'parameters { key: "slo_ms" value { string_value: "60" } }'
    outcomes = (
        Simulation(text + parameters, SloPolicy, costs).run(load),
        Simulation(text, PreferredPolicy, costs).run(load),
    )
    slo_rate, plain_rate = (outcome.between(0.3, 1).throughput for outcome in outcomes)
    return slo_rate, plain_rate


def test_it_waits_for_bursts_if_calls_are_expensive() -> None:
    slo_rate, plain_rate = rates(Linear(5 * MS, MS // 10), 16, MS)
    assert slo_rate > 1.3 * plain_rate


@pytest.mark.parametrize(
    ("fixed_us", "clients", "turnaround_us"), [(1000, 8, 600), (300, 16, 300), (0, 16, 300)]
)
def test_it_does_not_wait_if_that_costs_throughput(
    fixed_us: int, clients: int, turnaround_us: int
) -> None:
    slo_rate, plain_rate = rates(Linear(fixed_us * 1000, MS // 2), clients, turnaround_us * 1000)
    assert slo_rate > 0.99 * plain_rate


def test_the_same_load_gives_the_same_result() -> None:
    load = steady("deep", 0.7, batches=20)
    first, second = (slo(2.0, "deep").run(load).responses for _ in range(2))
    assert first == second
